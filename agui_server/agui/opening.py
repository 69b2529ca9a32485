"""What a `POST …/run` leads to: a run that follows a turn, or one that attaches.

Everything that can be refused is refused here, before the first byte of a stream.

Source: `agui.md` sections 2 and 3.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agui_server.agui.inbound import ResumeEntry, RunRequest
from agui_server.agui.table import RunRow, runs_of
from agui_server.agui.translate import Run
from agui_server.agui.wire import BadRequest
from engine import Engine, Thread
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.branches import land
from engine.core.errors import InvalidView, Refused, TurnAlreadyActive
from engine.core.handle import Receipt
from engine.core.messages import ClientContext, Message
from engine.core.state import State
from engine.core.status import active_turn
from engine.store.protocol import Companion

CHANNEL = "ag-ui"


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """The input was taken: the run shows what follows from it."""

    run: Run
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """Nothing was started: the run shows the conversation, then what is going on.

    `restate`: whether it begins with a snapshot of the messages. `unrecorded` are the
    client's own messages that a snapshot must not take off the screen.
    """

    run: Run
    restate: bool = True
    unrecorded: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A run that may start, and what its client should be told first."""

    plan: Follow | Attach
    notices: tuple[tuple[str, str], ...]


async def open_run(engine: Engine, thread: Thread, request: RunRequest) -> Opening:
    """Take a run's input.

    Raises:
        BadRequest: the messages are malformed, or the run id was used for another input.
        Refused: another turn runs, or the agent is unknown.
    """
    session_id = await engine.session_of(thread)
    state = await engine.state(session_id)
    tree = state.tree if state is not None else None
    history = request.history(
        lambda message_id: (
            node.message
            if tree is not None and (node := tree.get(message_id)) is not None
            else None
        )
    )
    run = Run(
        thread_id=request.thread_id,
        run_id=request.run_id,
        session_id=session_id,
        turn_id=None,
        parent_run_id=request.parent_run_id,
        legacy=request.legacy,
        known_ids=frozenset(message.id for message in history.messages),
    )
    notices = tuple((n.code, n.detail) for n in (*request.notices, *history.notices))
    taker = _Taker(engine, thread, request, history.messages, run, owner=thread.owner)
    earlier = await runs_of(engine.store, session_id, request.run_id) if state else ()
    plan, more = await taker.take(state, earlier)
    return Opening(plan=plan, notices=(*notices, *more))


@dataclass(frozen=True, slots=True)
class _Taker:
    """One input on its way into the engine."""

    engine: Engine
    thread: Thread
    request: RunRequest
    view: tuple[Message, ...]
    run: Run
    owner: str

    async def take(
        self, state: State | None, earlier: Sequence[RunRow]
    ) -> tuple[Follow | Attach, Sequence[tuple[str, str]]]:
        """Take the input, unless its run is known.

        1. The same run id with the same input: that run again.
        2. The same run id with another input, without answers: refused.
        3. Else the input goes to the engine.
        """
        if earlier:
            same = next((r for r in reversed(earlier) if r.digest == self.request.digest), None)
            if same is not None:
                return Attach(run=await self._answered(replace(self.run, turn_id=same.turn_id))), ()
            if not self.request.answers:
                detail = f"Run {self.run.run_id} had another input; use a fresh runId."
                raise BadRequest(409, "run_id_reused", detail)
        if state is None and not self.view:
            return Attach(run=self.run), ()
        try:
            receipt = await self._submit(self._answers())
        except (TurnAlreadyActive, InvalidView) as refusal:
            return await self._refused(refusal)
        return await self._taken(receipt)

    async def _submit(self, answers: tuple[cmd.Answer, ...]) -> Receipt:
        return await self.engine.submit(
            self.run.session_id,
            cmd.ClientView(
                messages=self.view,
                answers=answers,
                client=_what_was_sent(self.request.client),
                lenient=True,
            ),
            birth=cmd.Birth(
                agent_id=self.thread.agent_id,
                owner=self.thread.owner,
                tenant=self.thread.tenant,
                thread_id=self.thread.thread_id,
            ),
            companions=self._companions,
        )

    def _companions(self, receipt: Receipt) -> list[Companion]:
        if not receipt.recorded:
            return []
        row = RunRow(
            session_id=self.run.session_id,
            run_id=self.run.run_id,
            turn_id=receipt.turn_id,
            agent_id=self.thread.agent_id,
            digest=self.request.digest,
            first_seq=receipt.before.seq + 1,
            created=time.time_ns() // 1_000,
        )
        return [row.companion()]

    def _answers(self) -> tuple[cmd.Answer, ...]:
        return tuple(
            cmd.Answer(
                interrupt_id=entry.interrupt_id,
                payload=entry.payload,
                cancelled=entry.status == "cancelled",
                responder={"channel": CHANNEL, "user": self.owner},
            )
            for entry in self.request.answers
        )

    # ------------------------------------------------------------ what came

    async def _taken(self, receipt: Receipt) -> tuple[Follow | Attach, Sequence[tuple[str, str]]]:
        """Say what to show for an input that the engine took.

        1. It started, resumed or joined a turn: follow that.
        2. All its answers are old: attach to the turn they continued, or, when that
           turn failed, take the view as if they were not there.
        3. Else it changed nothing that runs: answered like `connect`.
        """
        notices = [(n.code, n.detail) for n in receipt.notices]
        run = replace(self.run, turn_id=receipt.turn_id, answered=bool(receipt.cleared))
        if receipt.turn_id is not None or receipt.cleared:
            run = await self._answered(run)
            return Follow(run=run, receipt=receipt), notices
        resumed = await self._resumed_turn()
        if resumed is not None:
            return await self._again(resumed, notices)
        is_paused = any(code == "session_interrupted" for code, _ in notices)
        here = next((turn.id for turn in receipt.after.turns if not turn.parked), None)
        run = replace(run, turn_id=here)
        if not is_paused:
            return Attach(run=run), notices
        state = await self.engine.state(run.session_id)
        lacks = state is not None and self._lacks(state)
        return Attach(run=run, restate=lacks, unrecorded=self._unrecorded(state)), notices

    async def _again(
        self, resumed: str, notices: list[tuple[str, str]]
    ) -> tuple[Follow | Attach, Sequence[tuple[str, str]]]:
        """The same answer again."""
        run = replace(self.run, turn_id=resumed, answered=True)
        ended = await self.engine.store.last_event(
            run.session_id, type="turn.completed", subject=resumed
        )
        failed = (
            ended is not None
            and isinstance(ended.body, ev.TurnCompleted)
            and ended.body.error is not None
            and ended.body.error.code != "cancelled"
        )
        if failed:
            receipt = await self._submit(())
            if receipt.turn_id is not None:
                run = replace(run, turn_id=receipt.turn_id)
                return Follow(run=run, receipt=receipt), notices
        return Attach(run=run), notices

    async def _refused(self, refusal: Refused) -> tuple[Follow | Attach, Sequence[tuple[str, str]]]:
        """Show an input with answers what there is; attach one of the running turn's own.

        Source: `agui.md` section 3.
        """
        notice = (refusal.code, str(refusal))
        state = await self.engine.state(self.run.session_id)
        turn = active_turn(state) if state is not None else None
        run = replace(self.run, turn_id=turn.id if turn is not None else None)
        if self.request.answers:
            return Attach(run=await self._answered(run)), (notice,)
        is_running = isinstance(refusal, TurnAlreadyActive)
        if is_running and state is not None and turn is not None and self._ends_on(state, turn.id):
            return Attach(run=run), ()
        raise refusal

    def _ends_on(self, state: State, turn_id: str) -> bool:
        """Whether the view ends on the running turn's input, or on a message of that turn."""
        if not self.view:
            return True
        last = self.view[-1].id
        node = state.tree.get(last)
        if node is not None:
            return node.turn_id == turn_id
        return not land(state, self.view).remainder

    # --------------------------------------------------------- old answers

    async def _answered(self, run: Run) -> Run:
        """Note whether the input names an interrupt that is answered by now."""
        if run.answered or not self.request.answers:
            return run
        return replace(run, answered=await self._resumed_turn() is not None)

    async def _resumed_turn(self) -> str | None:
        """Return the turn that the input's first answered entry continued."""
        for entry in self.request.answers:
            event = await self._resumption(entry)
            if event is not None:
                return event.turn_id
        return None

    async def _resumption(self, entry: ResumeEntry) -> ev.Event | None:
        return await self.engine.store.last_event(
            self.run.session_id, type="session.interrupt_resumed", subject=entry.interrupt_id
        )

    def _lacks(self, state: State) -> bool:
        """Whether the view lacks something that is recorded on the active path."""
        path = state.tree.path(state.control.head)
        return any(node.message.id not in self.run.known_ids for node in path)

    def _unrecorded(self, state: State | None) -> tuple[Message, ...]:
        if state is None:
            return self.view
        return land(state, self.view).remainder


def _what_was_sent(client: ClientContext) -> ClientContext:
    """Drop the `{}` that the official client always sends for state and props."""
    return replace(
        client, state=client.state or None, forwarded_props=client.forwarded_props or None
    )
