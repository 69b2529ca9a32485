"""A machine that lives through sessions: random commands, every law after each."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from engine.core import commands as cmd
from engine.core.worker import Error
from tests.properties import moves
from tests.properties.laws import judge
from tests.properties.world import WANTS, World, agent

PICK = st.integers(0, 60)
PICKS = st.lists(PICK, max_size=3)


class Machine(RuleBasedStateMachine):
    """One session, from its first message to wherever chance leads it."""

    world: World

    @initialize(wants=st.sampled_from(WANTS))
    def begin(self, wants: frozenset[str] | None) -> None:
        """A first message."""
        self.world = World(agent(wants), judge)
        self.world.do(
            moves.view(
                self.world, end=2, new=1, picks=[], solve=False, lenient=True, regenerate=True
            )
        )

    # ------------------------------------------------------------- clients

    @rule(
        end=PICK,
        new=st.integers(0, 2),
        picks=PICKS,
        solve=st.booleans(),
        lenient=st.booleans(),
        regenerate=st.booleans(),
    )
    def send_a_view(
        self, end: int, new: int, picks: list[int], *, solve: bool, lenient: bool, regenerate: bool
    ) -> None:
        """A page sends its conversation."""
        command = moves.view(
            self.world,
            end=end,
            new=new,
            picks=picks,
            solve=solve,
            lenient=lenient,
            regenerate=regenerate,
        )
        self.world.do(command)
        if self.world.state.control.turns:
            self._changes_nothing(command)

    @precondition(lambda self: self.world.state.control.interrupts)
    @rule(pick=PICK, new=st.integers(0, 1))
    def answer_everything(self, pick: int, new: int) -> None:
        """A page answers every open question, and may add a message."""
        answers = tuple(
            cmd.Answer(
                interrupt_id=i.id,
                payload=pick % 2 == 0 or moves.PAYLOADS[pick % 6],
                cancelled=pick % 4 == 0,
            )
            for i in self.world.state.control.interrupts
        )
        command = moves.view(
            self.world, end=1, new=new, picks=[], solve=False, lenient=True, regenerate=True
        )
        self.world.do(cmd.ClientView(messages=command.messages, answers=answers, lenient=True))

    @precondition(lambda self: self.world.head is not None)
    @rule(keep=st.integers(0, 2))
    def edit(self, keep: int) -> None:
        """A page shows only the first messages and a new one: often above an open question."""
        self.world.do(moves.edit(self.world, keep))

    @precondition(lambda self: any(t.parked for t in self.world.state.control.turns))
    @rule(pick=PICK, new=st.integers(0, 1), answers=st.booleans())
    def come_back(self, pick: int, new: int, *, answers: bool) -> None:
        """A page shows the branch of a parked turn again, with an answer or without."""
        command = moves.come_back(self.world, pick, new=new, answers=answers)
        assert command is not None
        self.world.do(command)

    @rule(pick=PICK, machine=st.booleans())
    def resume(self, pick: int, *, machine: bool) -> None:
        """Somebody answers through the API; the same answer again does nothing."""
        command = moves.resume(self.world, pick, machine=machine)
        outcome = self.world.do(command)
        if outcome is not None:
            self._changes_nothing(command)

    @rule(pick=PICK)
    def ask_a_person(self, pick: int) -> None:
        """Somebody outside pauses the branch."""
        self.world.do(moves.ask_a_person(self.world, pick))

    @rule(pick=PICK, twice=st.booleans())
    def cancel(self, pick: int, *, twice: bool) -> None:
        """Everything is stopped, now and then; twice is the same as once."""
        if pick % 3:
            return
        self.world.do(cmd.CancelSession())
        if twice:
            self._changes_nothing(cmd.CancelSession())

    # ---------------------------------------------------- models and tools

    @precondition(lambda self: self.world.calls("llm"))
    @rule(pick=PICK, asked=st.lists(PICK, max_size=3))
    def model_answers(self, pick: int, asked: list[int]) -> None:
        """A model's reply comes, and once more."""
        self._once(moves.model_answers(self.world, pick, asked))

    @precondition(lambda self: self.world.calls("function"))
    @rule(pick=PICK)
    def tool_returns(self, pick: int) -> None:
        """A tool's result comes, and once more."""
        self._once(moves.tool_returns(self.world, pick))

    @precondition(lambda self: self.world.calls("llm", "function"))
    @rule(pick=PICK)
    def call_fails(self, pick: int) -> None:
        """A call fails, and says so twice."""
        self._once(moves.call_fails(self.world, pick))

    # ------------------------------------------------------------- workers

    @precondition(lambda self: self.world.decision_out())
    @rule(kind=st.sampled_from(moves.RESPONSES), pick=PICK)
    def worker_answers(self, kind: str, pick: int) -> None:
        """A worker answers."""
        command = moves.worker_answers(self.world, kind, pick)
        assert isinstance(command, cmd.AnswerDecision)
        outcome = self.world.do(command)
        assert outcome is not None
        if self.world.state.decision(command.decision_id) is None:
            self._changes_nothing(command)
        if kind == "proposed":
            assert not any(e.body.type == "decision.errored" for e in outcome.events)
        if kind == "rubbish":
            assert outcome.events[0].body.type == "decision.errored"

    @precondition(lambda self: self.world.decision_out())
    @rule(kind=st.sampled_from(moves.RESPONSES), pick=PICK)
    def worker_answers_a_paused_branch(self, kind: str, pick: int) -> None:
        """Somebody pauses the branch while a worker thinks; then it answers."""
        self.world.do(moves.ask_a_person(self.world, pick))
        if self.world.decision_out():
            self.worker_answers(kind, pick)

    @precondition(lambda self: self.world.decision_out())
    @rule(pick=PICK)
    def cancel_what_is_held(self, pick: int) -> None:
        """A worker accepts while the branch is paused; what it starts is held, then cancelled."""
        self.worker_answers_a_paused_branch("proposed", pick)
        self.cancel(0, twice=False)

    @precondition(lambda self: self.world.decision_out())
    @rule(retryable=st.booleans())
    def worker_fails(self, *, retryable: bool) -> None:
        """A worker does not answer, and says so twice."""
        decision = self.world.decision_out()
        assert decision is not None
        error = Error(code="worker_error", message="no", retryable=retryable)
        self._once(cmd.FailDecision(decision_id=decision.id, attempt=decision.attempt, error=error))

    # ----------------------------------------------------- time and crashes

    @rule(seconds=st.sampled_from((0, 1, 59, 61, 301)))
    def time_passes(self, seconds: int) -> None:
        """The clock moves on; nothing is left that should have happened by then."""
        self.world.pass_time(seconds)

    @rule(split=PICK)
    def crash(self, split: int) -> None:
        """The process dies and another continues from the log."""
        self.world.restart(split)
        self.world.do(cmd.Recover())

    @precondition(lambda self: len(self.world.done) > 1)
    @rule(pick=PICK)
    def an_old_report_comes_again(self, pick: int) -> None:
        """A report that was taken long ago is delivered once more."""
        command = self.world.done[pick % len(self.world.done)]
        if isinstance(
            command, cmd.FinishModelCall | cmd.FinishToolCall | cmd.FailCall | cmd.FailDecision
        ):
            self._changes_nothing(command)

    def _once(self, command: cmd.Command | None) -> None:
        if command is not None and self.world.do(command) is not None:
            self._changes_nothing(command)

    def _changes_nothing(self, command: cmd.Command) -> None:
        log = len(self.world.log)
        self.world.do(command)
        assert len(self.world.log) == log, f"a duplicate of {type(command).__name__} was taken"
