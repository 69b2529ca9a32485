"""A machine that lives through sessions: random commands, every law after each.

It has few rules with many kinds each: chance picks among rules, and those that are always
there must not crowd out the ones that bring a session on.
"""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from engine.core import commands as cmd
from engine.core.due import wake_at
from engine.core.handle import Outcome
from engine.core.messages import ToolMessage
from engine.core.pending import pending
from engine.core.status import active_turn
from engine.core.worker import DecisionResponse, Error, GiveResult
from tests.properties import moves, moves_inputs, moves_workers
from tests.properties.agents import WANTS, agent
from tests.properties.laws import judge
from tests.properties.world import World

PICK = st.integers(0, 999)
PICKS = st.lists(PICK, max_size=3)
ASKED = st.lists(PICK, max_size=3)
"""Tools that a model asks for."""

MANY = 3
"""Questions that are open; more of them are not asked from outside."""
SECONDS = (0, 1, 5, 31, 59, 61, 301)
THEN = st.lists(PICK, max_size=2)
"""What is under way and ends well before anybody does something else."""

MEANWHILE = ("paused", "held", "left", "clicked", "settled")
"""What may happen while a worker thinks."""
REPORTS = (
    cmd.FinishModelCall,
    cmd.FinishToolCall,
    cmd.FailCall,
    cmd.FailDecision,
    cmd.SettleCall,
)
"""What outside work came to: each is taken once."""


class Machine(RuleBasedStateMachine):
    """One session, from its first message to wherever chance leads it."""

    world: World

    @initialize(wants=st.sampled_from(WANTS), send_tree=st.booleans(), first=PICK)
    def begin(self, wants: frozenset[str] | None, first: int, *, send_tree: bool) -> None:
        """A first message: mostly in a view, else at the head, or behind something else."""
        self.world = World(agent(wants, send_tree=send_tree), judge)
        if first % 5 == 1:
            self.world.do(moves_inputs.action(first))
        if first % 5 == 2:
            self.world.do(moves_inputs.say(self.world, queue=first % 2 == 0))
            return
        self.world.do(
            moves.view(
                self.world, end=2, new=1, picks=[], solve=False, lenient=True, regenerate=True
            )
        )

    # --------------------------------------------------------------- pages

    @rule(
        end=PICK,
        new=st.integers(0, 2),
        picks=PICKS,
        solve=st.booleans(),
        lenient=st.booleans(),
        regenerate=st.booleans(),
        named=st.booleans(),
        then=THEN,
    )
    def send_a_view(
        self,
        end: int,
        new: int,
        picks: list[int],
        then: list[int],
        *,
        solve: bool,
        lenient: bool,
        regenerate: bool,
        named: bool,
    ) -> None:
        """A page sends its conversation, and once more."""
        command = moves.view(
            self.world,
            end=end,
            new=new,
            picks=picks,
            solve=solve,
            lenient=lenient,
            regenerate=regenerate,
        )
        if named:
            command = replace(command, turn_id=moves_inputs.turn_id(self.world, end))
        self.world.do(command)
        if self.world.state.control.turns:
            self._changes_nothing(command)
        self._goes_on(then)

    @precondition(lambda self: self.world.head is not None)
    @rule(keep=st.integers(0, 2), then=THEN)
    def edit(self, keep: int, then: list[int]) -> None:
        """A page shows only the first messages and a new one: often above an open question."""
        self.world.do(moves.edit(self.world, keep))
        self._goes_on(then)

    @precondition(lambda self: any(t.parked for t in self.world.state.control.turns))
    @rule(pick=PICK, new=st.integers(0, 1), answers=st.booleans(), then=THEN)
    def come_back(self, pick: int, new: int, then: list[int], *, answers: bool) -> None:
        """A page shows the branch of a parked turn again, with an answer or without."""
        command = moves.come_back(self.world, pick, new=new, answers=answers)
        assert command is not None
        self.world.do(command)
        self._goes_on(then)

    # ------------------------------------------------------------- clients

    @rule(
        kind=st.sampled_from(("append", "queue", "act")),
        pick=PICK,
        picks=PICKS,
        queue=st.booleans(),
        named=st.booleans(),
        then=THEN,
    )
    def say(
        self, kind: str, pick: int, picks: list[int], then: list[int], *, queue: bool, named: bool
    ) -> None:
        """A client sends messages to the head, new and known, or clicks a button."""
        match kind:
            case "append":
                command = moves_inputs.append(self.world, pick, picks, queue=queue, named=named)
                self._append(command)
            case "queue":
                for _ in picks:
                    self._append(moves_inputs.say(self.world, queue=True))
            case _:
                self.world.do(moves_inputs.action(pick))
        self._goes_on(then)

    @precondition(lambda self: self.world.interrupt_ids())
    @rule(
        kind=st.sampled_from(("all", "leave", "leave", "one")),
        pick=PICK,
        new=st.integers(0, 1),
        machine=st.booleans(),
        then=THEN,
    )
    def answer(self, kind: str, pick: int, new: int, then: list[int], *, machine: bool) -> None:
        """Somebody answers what is asked: all of it in a view, an approval, or any question."""
        if kind == "all":
            self.world.do(moves.answer_everything(self.world, pick, new))
            self._goes_on(then)
            return
        command = moves.give_leave(self.world, pick, machine=machine) if kind == "leave" else None
        self._once(command or moves.resume(self.world, pick, machine=machine))

    @precondition(lambda self: len(self.world.state.control.interrupts) < MANY)
    @rule(pick=PICK, about=st.booleans(), seconds=st.sampled_from((0, 61, 301)), then=THEN)
    def ask_a_person(self, pick: int, seconds: int, then: list[int], *, about: bool) -> None:
        """Somebody outside pauses the branch: now and then, or about a call, and time passes."""
        command = moves.ask_about_a_call(self.world, pick) if about else None
        if command is not None:
            self.world.do(command)
            self.world.pass_time(seconds)
        elif pick % 3 == 0:
            self.world.do(moves.ask_a_person(self.world, pick))
        else:
            self._goes_on(then)

    @precondition(lambda self: self.world.calls("client", "worker", "function"))
    @rule(pick=PICK, machine=st.booleans(), fails=st.booleans())
    def settle(self, pick: int, *, machine: bool, fails: bool) -> None:
        """Somebody ends a call that runs outside, and once more."""
        self._once(moves_inputs.settle(self.world, pick, machine=machine, fails=fails))

    @precondition(lambda self: self._is_open())
    @rule(pick=PICK, then=THEN, twice=st.booleans())
    def cancel(self, pick: int, then: list[int], *, twice: bool) -> None:
        """Everything is stopped, of a running turn now and then; twice is the same as once."""
        if pick % 8 and active_turn(self.world.state):
            self._goes_on(then)
            return
        self.world.do(cmd.CancelSession())
        if twice:
            self._changes_nothing(cmd.CancelSession())

    # ---------------------------------------------------- models and tools

    @precondition(lambda self: bool(pending(self.world.state)))
    @rule(then=st.lists(PICK, min_size=1, max_size=4))
    def work_goes_on(self, then: list[int]) -> None:
        """Whatever is under way ends well: models' calls, tools, questions to the worker."""
        self._goes_on(then)

    @precondition(lambda self: self.world.calls("llm"))
    @rule(pick=PICK, asked=ASKED)
    def model_answers(self, pick: int, asked: list[int]) -> None:
        """A model's reply comes, and once more; a worker takes it as it is proposed."""
        self._once(moves.model_answers(self.world, pick, asked))
        if self.world.decisions_out() and pick % 2:
            self.worker_answers("proposed", "", pick, 0, [])

    @precondition(lambda self: self.world.calls("llm", "function"))
    @rule(pick=PICK, fails=st.booleans())
    def a_call_ends(self, pick: int, *, fails: bool) -> None:
        """A tool returns, or a call fails; and says so twice."""
        returned = None if fails else moves.tool_returns(self.world, pick)
        self._once(returned or moves.call_fails(self.world, pick))

    # ------------------------------------------------------------- workers

    @precondition(lambda self: self.world.decisions_out())
    @rule(
        kind=st.sampled_from(moves_workers.RESPONSES),
        meanwhile=st.sampled_from(("", "", *MEANWHILE)),
        pick=PICK,
        keep=st.integers(0, 2),
        then=THEN,
    )
    def worker_answers(
        self, kind: str, meanwhile: str, pick: int, keep: int, then: list[int]
    ) -> None:
        """A worker answers; while it thought, its branch was paused or left, or more came.

        `held`: it accepts while paused, and what it starts is cancelled. `clicked`: it is
        done, and the client had clicked once more. `settled`: a backend was faster.
        """
        if meanwhile == "settled":
            self._settle_what_is_run(pick)
        if meanwhile in {"paused", "held", "left"}:
            self.world.do(moves.ask_a_person(self.world, pick))
        if meanwhile == "left":
            self.edit(keep, then)
        if meanwhile == "clicked":
            self.world.do(moves_inputs.action(pick))
        chosen = {"held": "proposed", "clicked": "done"}.get(meanwhile, kind)
        if self.world.decisions_out():
            self._answers(chosen, pick)
        if meanwhile == "held":
            self.cancel(0, [], twice=False)

    @precondition(lambda self: self.world.decisions_out())
    @rule(pick=PICK, retryable=st.booleans(), paused=st.booleans())
    def worker_fails(self, pick: int, *, retryable: bool, paused: bool) -> None:
        """A worker does not answer, and says so twice; its branch may be paused by then."""
        if paused:
            self.world.do(moves.ask_a_person(self.world, pick))
        decision = moves.choose(self.world.decisions_out(), pick)
        if decision is None:
            return
        error = Error(code="worker_error", message="no", retryable=retryable)
        self._once(cmd.FailDecision(decision_id=decision.id, attempt=decision.attempt, error=error))

    # ----------------------------------------------------- time and crashes

    @precondition(lambda self: wake_at(self.world.state) is not None)
    @rule(seconds=st.sampled_from((*SECONDS, None, None)), then=THEN)
    def time_passes(self, seconds: int | None, then: list[int]) -> None:
        """The clock moves on, or just until the next thing is due; all that is due happens."""
        due = wake_at(self.world.state)
        if seconds is None and due is not None:
            self.world.pass_time((due - self.world.now).total_seconds())
        else:
            self.world.pass_time(seconds or 0)
        self._goes_on(then)

    @precondition(lambda self: self._is_open())
    @rule(split=PICK, pick=PICK, then=THEN)
    def crash(self, split: int, pick: int, then: list[int]) -> None:
        """The process dies, now and then, and another continues from the log.

        Then a report that was taken long ago is delivered once more.
        """
        if split % 3 and (split % 3 == 1 or not self.world.calls("function", "worker")):
            self._goes_on(then)
            return
        self.world.restart(split)
        self.world.do(cmd.Recover())
        reports = [done for done in self.world.done if isinstance(done, REPORTS)]
        old = moves.choose(reports, pick)
        if old is not None:
            self._changes_nothing(old)

    # ---------------------------------------------------------- what is shared

    def _goes_on(self, picks: list[int]) -> None:
        for pick in picks:
            if pick % 4 == 0 and self.world.decisions_out():
                self.worker_answers("proposed", MEANWHILE[pick % len(MEANWHILE)], pick, 0, [])
                continue
            command = moves_workers.work_goes_on(self.world, pick)
            if command is not None:
                self.world.do(command)

    def _is_open(self) -> bool:
        control = self.world.state.control
        return bool(control.turns or control.interrupts)

    def _answers(self, kind: str, pick: int) -> None:
        command = moves_workers.worker_answers(self.world, kind, pick)
        assert command is not None
        outcome = self.world.do(command)
        assert outcome is not None
        if self.world.state.decision(command.decision_id) is None:
            self._changes_nothing(command)
        if kind == "proposed":
            assert not any(e.body.type == "decision.errored" for e in outcome.events)
        if kind == "rubbish":
            assert outcome.events[0].body.type == "decision.errored"

    def _settle_what_is_run(self, pick: int) -> None:
        """Somebody ends a call while its worker is at it; the worker comes too late."""
        for out in filter(self.world.is_own_tool, self.world.decisions_out()):
            self.world.do(moves_inputs.settle_asked(out))
            late = DecisionResponse(actions=(GiveResult(result={"n": pick}),))
            self._changes_nothing(
                cmd.AnswerDecision(decision_id=out.id, attempt=out.attempt, response=late)
            )

    def _append(self, command: cmd.AppendMessages) -> None:
        """Send messages, and again: nothing happens, and what is new belongs to its turn."""
        last = command.messages[-1]
        is_new = last.id not in moves_inputs.known_ids(self.world)
        first = self.world.do(command)
        if first is None:
            return
        again = self._changes_nothing(command)
        assert again is not None
        says_new = is_new and not isinstance(last, ToolMessage)
        if says_new or first.receipt.turn_id in {command.turn_id, None}:
            assert again.receipt.turn_id == first.receipt.turn_id

    def _once(self, command: cmd.Command | None) -> None:
        if command is not None and self.world.do(command) is not None:
            self._changes_nothing(command)

    def _changes_nothing(self, command: cmd.Command) -> Outcome | None:
        log = len(self.world.log)
        outcome = self.world.do(command)
        assert len(self.world.log) == log, f"a duplicate of {type(command).__name__} was taken"
        return outcome
