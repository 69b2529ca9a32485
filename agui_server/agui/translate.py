"""One run: the engine's events and live text in, AG-UI frames out. Pure.

A run shows the events of its own turn, from the commit of its input to the first
point where the turn ends, pauses, or waits only for the client.

Source: `agui.md` section 2.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ag_ui.core import (
    PROTOCOL_VERSION,
    CustomEvent,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateSnapshotEvent,
    ToolCallResultEvent,
)

from agui_server.agui import outbound
from agui_server.agui.frames import frame
from agui_server.agui.ordering import OpenItems
from engine.core import events as ev
from engine.core import messages as own
from engine.core.apply import apply_control
from engine.core.apply_calls import add_usage
from engine.core.state import Control
from engine.runtime.live import Part, PartKind
from engine.runtime.reader import Item, Said

SHOWN_AS_CANCELLED = {"cancelled", "budget_exceeded", "abandoned"}
"""Error codes of a turn that was stopped on purpose: neither a success nor a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a stream needs to know of its request.

    `legacy`: a client older than 1.0. `answered`: the input names interrupts that are
    answered by now. `known_ids` are the messages the client shows already. `attached`:
    another run started what it shows, and reports its usage.
    """

    thread_id: str
    run_id: str
    session_id: str
    turn_id: str | None
    parent_run_id: str | None = None
    legacy: bool = False
    answered: bool = False
    attached: bool = False
    known_ids: frozenset[str] = frozenset()

    def metadata(self) -> dict[str, str]:
        """Return what both ends of the run carry."""
        metadata = {outbound.SESSION_ID: self.session_id}
        if self.turn_id is not None:
            metadata[outbound.TURN_ID] = self.turn_id
        return metadata


class Translation:
    """Translates one run, commit by commit.

    `control` is what was open before the first event that will come; `settled_at` the
    `seq` of the run's own commit, before which the run cannot end; `pausing` the
    interrupts that pause the path after it.
    """

    def __init__(
        self, run: Run, *, control: Control, settled_at: int, pausing: Iterable[str]
    ) -> None:
        self.run = run
        self.ended = False
        self.needs_snapshot = False
        self._control = control
        self._settled_at = settled_at
        self._pausing = list(pausing)
        self._open = OpenItems()
        self._streamed: dict[str, dict[str, Part]] = {}
        self._shown = set(run.known_ids)
        self._announced: list[str] = []
        self._client_calls = {call.id for call in control.calls if call.kind == "client"}
        self._usage: tuple[own.Usage, ...] = ()
        self._completed: ev.TurnCompleted | None = None

    @property
    def head(self) -> str | None:
        """The end of the active path, as of what was translated so far."""
        return self._control.head

    @property
    def restates(self) -> bool:
        """Whether a snapshot is due: something is shown that the record has otherwise, or not.

        After a cancel none is sent: what people saw stays on their screen.
        """
        error = self._completed.error if self._completed is not None else None
        if error is not None and error.code in SHOWN_AS_CANCELLED:
            return False
        was_not_recorded = bool(self._streamed) and (self._completed is not None or self.is_paused)
        return self.needs_snapshot or was_not_recorded

    @property
    def is_paused(self) -> bool:
        """Whether the path waits for a person."""
        return bool(self._pausing)

    # ---------------------------------------------------------- both ends

    def started(self, notices: Iterable[tuple[str, str]] = ()) -> Iterator[bytes]:
        """Open the run, and say what was left out of its input."""
        yield frame(
            RunStartedEvent(
                thread_id=self.run.thread_id,
                run_id=self.run.run_id,
                protocol_version=PROTOCOL_VERSION,
                parent_run_id=self.run.parent_run_id,
                metadata=self.run.metadata(),
            )
        )
        for code, detail in notices:
            yield self.warning(code, detail)

    @staticmethod
    def warning(code: str, detail: str) -> bytes:
        """Say that something of the input was not taken as sent."""
        return frame(
            CustomEvent(name="agui-server/warning", value={"code": code, "detail": detail})
        )

    def finish(self) -> Iterator[bytes]:
        """End the run if this is the point; see the table of `agui.md` section 2.4."""
        if self._control.seq < self._settled_at or self.ended:
            return
        completed, turn_id = self._completed, self.run.turn_id
        if completed is not None:
            yield from self._end_completed(completed)
        elif self._pausing:
            yield from self._end_paused()
        elif turn_id is None and self._control.decisions:
            return  # an interrupt outside a turn was answered; what comes of it is not decided
        elif turn_id is None or self._waits_for_client(turn_id):
            pending = None if self.run.legacy else self._pending() or None
            yield from self._end(RunFinishedSuccessOutcome(pending_tool_call_ids=pending))

    def finish_as(self, completed: ev.TurnCompleted) -> Iterator[bytes]:
        """End a run that follows nothing: paused, or as its turn ended."""
        if self._pausing:
            yield from self._end_paused()
        else:
            yield from self._end_completed(completed)

    def fail(self, code: str, message: str) -> Iterator[bytes]:
        """End the run with an error.

        A lone error leaves the official client's list of open questions set, and its page
        refuses every later message; so when answers were taken, a finished run goes before.
        """
        if self.ended:
            return
        if self.run.answered:
            yield from self._end(None)
        self.ended = True
        yield from map(frame, self._open.close_all())
        yield frame(RunErrorEvent(code=code, message=message, usage=self._used()))

    def _end_completed(self, completed: ev.TurnCompleted) -> Iterator[bytes]:
        error = completed.error
        if error is None:
            yield from self._end(RunFinishedSuccessOutcome(), result=completed.data)
        elif error.code in SHOWN_AS_CANCELLED and not self.run.legacy:
            yield from self._end(RunFinishedCancelledOutcome())
        else:
            message = outbound.PUBLIC_ERRORS.get(error.code, "The run failed.")
            yield from self.fail(error.code, message)

    def _end_paused(self) -> Iterator[bytes]:
        asked = {i.id: i for i in self._control.interrupts}
        interrupts = [outbound.interrupt(asked[i]) for i in self._pausing if i in asked]
        yield from self._end(RunFinishedInterruptOutcome(interrupts=interrupts))

    def _end(
        self,
        outcome: RunFinishedSuccessOutcome
        | RunFinishedInterruptOutcome
        | RunFinishedCancelledOutcome
        | None,
        result: own.Json = None,
    ) -> Iterator[bytes]:
        self.ended = True
        yield from map(frame, self._open.close_all())
        yield frame(
            RunFinishedEvent(
                thread_id=self.run.thread_id,
                run_id=self.run.run_id,
                outcome=outcome,
                result=result,
                usage=self._used(),
                metadata=self.run.metadata(),
            )
        )

    def _used(self) -> list[outbound.TokenUsage] | None:
        return None if self.run.legacy else outbound.usage(self._usage)

    def _waits_for_client(self, turn_id: str) -> bool:
        calls = [call for call in self._control.calls if call.turn_id == turn_id]
        decides = any(d.turn_id == turn_id for d in self._control.decisions)
        return bool(calls) and not decides and all(call.kind == "client" for call in calls)

    def _pending(self) -> list[str]:
        """Return the unanswered client calls that this run announced, in their order."""
        waiting = {call.id for call in self._control.calls if call.kind == "client"}
        return [call_id for call_id in self._announced if call_id in waiting]

    # -------------------------------------------------------------- events

    def snapshot(self, path: Sequence[own.Message]) -> bytes:
        """Restate the conversation; what was streamed and is not in it is gone."""
        self.needs_snapshot = False
        self._streamed = {}
        self._shown.update(message.id for message in path)
        return frame(MessagesSnapshotEvent(messages=outbound.messages(path)))

    @staticmethod
    def state(value: own.Json) -> bytes:
        """Show the shared state. It is never null: a client could not send that back."""
        return frame(StateSnapshotEvent(snapshot={} if value is None else value))

    def take(self, batch: Sequence[Item]) -> Iterator[bytes]:
        """Translate a commit, or more live text."""
        for item in batch:
            if isinstance(item, Said):
                if item.turn_id == self.run.turn_id:
                    yield from self._said(item)
                continue
            event, before = item.event, self._control
            self._control = item.control or apply_control(before, event)
            self._note_pause(event)
            if isinstance(event.body, ev.HeadMoved):
                self.needs_snapshot = True
                yield from self._moved(event.body, before)
            if self.run.turn_id is None and isinstance(event.body, ev.TurnStarted):
                # The answer to an interrupt outside a turn has opened one.
                self.run = replace(self.run, turn_id=event.turn_id)
            if event.turn_id == self.run.turn_id:
                yield from self._told(event.body, before)

    def _moved(self, body: ev.HeadMoved, before: Control) -> Iterator[bytes]:
        """Show the state of the branch, when it is another than that of the one that was left."""
        if body.values is not None and body.values.shared_state != before.shared_state:
            yield self.state(body.values.shared_state)

    def _note_pause(self, event: ev.Event) -> None:
        if event.seq <= self._settled_at:
            return
        match event.body:
            case ev.SessionInterrupted(interrupt_id=interrupt_id):
                self._pausing.append(interrupt_id)
            case ev.SessionInterruptResumed(interrupt_id=interrupt_id):
                self._pausing = [i for i in self._pausing if i != interrupt_id]
            case _:
                return

    def _told(self, body: ev.Body, before: Control) -> Iterator[bytes]:
        match body:
            case ev.MessageNew(message=message):
                yield from self._recorded(message)
            case ev.ToolCallRequested(handler="client", call_id=call_id):
                self._client_calls.add(call_id)
            case ev.SharedStateUpdated(state=state):
                yield self.state(state)
            case ev.LlmCallCompleted(usage=counts) if not self.run.attached:
                self._usage = add_usage(self._usage, counts)
            case ev.LlmCallErrored() | ev.CallVoided():
                yield from self._dropped(body.call_id, before)
            case ev.TurnCompleted():
                self._completed = body
            case _:
                return

    def _dropped(self, call_id: str, before: Control) -> Iterator[bytes]:
        """Text of an attempt that failed or was voided will not be recorded."""
        call = next((call for call in before.calls if call.id == call_id), None)
        yield from map(frame, self._open.close_all())
        if call is not None and self._streamed.pop(call.message_id, None):
            self.needs_snapshot = True

    # ---------------------------------------------------------------- text

    def _said(self, said: Said) -> Iterator[bytes]:
        piece = said.piece
        part = piece.part
        is_tool = part.kind == "tool"
        yield from self._piece(
            part.kind,
            part.id,
            # A call without arguments ends with an empty object, so that it is valid JSON.
            "{}" if is_tool and piece.ends and not part.pieces else piece.text,
            name=part.name,
            parent_id=said.message_id if is_tool else None,
            ends=piece.ends,
        )
        self._streamed.setdefault(said.message_id, {})[part.id] = part

    def _piece(
        self,
        kind: PartKind,
        item_id: str,
        text: str,
        *,
        name: str = "",
        parent_id: str | None = None,
        ends: bool = True,
    ) -> Iterator[bytes]:
        if item_id not in self._open:
            yield from map(frame, self._open.open(kind, item_id, name=name, parent_id=parent_id))
            if kind == "tool":
                self._announced.append(item_id)
        yield from self._open.deltas(item_id, text)
        if ends:
            yield from map(frame, self._open.close(item_id))

    def _recorded(self, message: own.Message) -> Iterator[bytes]:
        """A message is in the record: show what of it was not streamed."""
        if message.id in self._shown:
            return
        match message:
            case own.AssistantMessage():
                yield from self._recorded_reply(message)
            case own.ReasoningMessage():
                if not self._was_streamed(message.id):
                    yield from self._piece("reasoning", message.id, message.content)
            case own.ToolMessage():
                # A result of the client's own call is never told to it.
                if message.tool_call_id not in self._client_calls:
                    yield frame(
                        ToolCallResultEvent(
                            message_id=message.id,
                            tool_call_id=message.tool_call_id,
                            content=self._content(message),
                            role="tool",
                        )
                    )
            case own.UserMessage() | own.SystemMessage() | own.ActivityMessage():
                self.needs_snapshot = True

    def _recorded_reply(self, message: own.AssistantMessage) -> Iterator[bytes]:
        """Show what was not streamed; what was streamed otherwise is restated."""
        streamed = self._streamed.pop(message.id, {})
        said = {part_id for part_id, part in streamed.items() if part.kind == "tool"}
        text = streamed.get(message.id)
        if text is not None and text.text != (message.content or ""):
            self.needs_snapshot = True
        elif text is None and message.content:
            yield from self._piece("text", message.id, message.content)
        for call in message.tool_calls:
            part = streamed.get(call.id)
            if part is not None and (part.text or "{}") != call.arguments:
                self.needs_snapshot = True
            elif part is None:
                yield from self._piece(
                    "tool", call.id, call.arguments, name=call.name, parent_id=message.id
                )
        if said - {call.id for call in message.tool_calls}:
            self.needs_snapshot = True

    def _was_streamed(self, part_id: str) -> bool:
        return any(part_id in parts for parts in self._streamed.values())

    def _content(self, message: own.ToolMessage) -> str:
        content = outbound.tool_content(message)
        if isinstance(content, str):
            return content
        return "\n".join(part.get("text", "") for part in content if part.get("type") == "text")
