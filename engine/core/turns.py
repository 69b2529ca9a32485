"""Turns: from a client input until the agent stops responding.

Source: `protocol.md` section 4.
"""

from engine.core import events as ev
from engine.core.calls import finished_message, own_tool, record_unanswered, stop_call
from engine.core.draft import Draft
from engine.core.interrupts import CANCELLED, is_paused, pausing_at
from engine.core.messages import AssistantMessage, ClientContext, Json, ToolMessage
from engine.core.state import Decision, State, Turn
from engine.core.status import active_turn
from engine.core.worker import ClientAction, ClientMessages, Error, ToolFinished

TURN_DONE = "ended: the turn is done"
TURN_CANCELLED = "cancelled: the turn ended"
"""What a model reads for calls that were open when their turn ended."""


DROPPING = {"cancelled", "abandoned"}
"""How a turn ends that takes along what waits behind it."""


def start_turn(draft: Draft, client: ClientContext, turn_id: str | None = None) -> Turn:
    """Begin a turn, under an id somebody chose or a fresh one."""
    started = ev.TurnStarted(client=None if client == ClientContext() else client)
    draft.emit(started, turn_id or draft.env.new_id("turn"))
    return draft.state.control.turns[-1]


def park(draft: Draft, turn: Turn) -> None:
    """The client leaves the branch of a turn that is paused or waits for it.

    What is decided about it waits; a decision that is out is asked again when it is back.
    A worker that runs a tool of its own goes on: that is a call.
    """
    for decision in draft.state.control.decisions:
        if decision.turn_id == turn.id and decision.is_out and not own_tool(draft, decision):
            draft.emit(
                ev.DecisionWaiting(decision_id=decision.id, trigger=decision.trigger), turn.id
            )
    draft.emit(ev.TurnParked(), turn.id)


def abandon(draft: Draft) -> None:
    """End the parked turns that wait for nothing any more.

    What a person approves on a branch nobody uses never runs.

    Source: `protocol.md` section 4.
    """
    for turn in draft.state.control.turns:
        if not turn.parked or pausing_at(draft.state, turn.tip):
            continue
        if any(call.kind == "client" for call in draft.state.calls_of(turn.id)):
            continue
        error = Error(code="abandoned", message="its branch was left")
        _end_calls(draft, turn)
        complete(draft, turn, error=error, reason=TURN_CANCELLED)


def complete(
    draft: Draft, turn: Turn, *, data: Json = None, error: Error | None = None, reason: str
) -> None:
    """End a turn: stop its calls, drop its decisions, end its interrupts, say how it ended.

    What tools came to and what people said is recorded in any case. What a client asked for
    beside the turn goes on: its actions outside it, its queued input as the next one. Not
    when the turn was cancelled or abandoned.
    """
    dropping = error is not None and error.code in DROPPING
    _record_finished(draft, turn)
    for call in draft.state.calls_of(turn.id):
        stop_call(draft, call, reason)
    _record_input(draft, turn)
    for decision in draft.state.control.decisions:
        if decision.turn_id == turn.id:
            _end_decision(draft, decision, dropping=dropping)
    draft.raised = [raised for raised in draft.raised if raised.turn_id != turn.id]
    for queued in draft.state.control.queue if dropping else ():
        if queued.behind == turn.id:
            draft.emit(ev.TurnDropped(), queued.id)
    for interrupt in draft.state.control.interrupts:
        if interrupt.turn_id == turn.id:
            draft.emit(
                ev.SessionInterruptResumed(
                    interrupt_id=interrupt.id, status="cancelled", payload=CANCELLED
                ),
                turn.id,
            )
    usage = next((t.usage for t in draft.state.control.turns if t.id == turn.id), ())
    draft.emit(ev.TurnCompleted(data=data, error=error, usage=usage), turn.id)


def _end_decision(draft: Draft, decision: Decision, *, dropping: bool) -> None:
    """A decision's turn ends. A client's action outlives it, unless a worker had it already."""
    is_new = not (decision.is_out or decision.held)
    if isinstance(decision.trigger, ClientAction) and is_new and not dropping:
        draft.emit(ev.DecisionWaiting(decision_id=decision.id, trigger=decision.trigger), None)
    else:
        draft.emit(ev.DecisionDropped(decision_id=decision.id), decision.turn_id)


def complete_idle(draft: Draft) -> None:
    """End the turn when nothing of it is left to do: the agent has stopped responding."""
    turn = active_turn(draft.state)
    if turn is None or is_paused(draft.state):
        return
    if draft.state.calls_of(turn.id):
        return
    if any(decision.turn_id == turn.id for decision in draft.state.control.decisions):
        return
    complete(draft, turn, error=turn.error, reason=TURN_DONE)


def cancel(draft: Draft) -> None:
    """Stop everything that is open; nothing open: no event.

    Source: `protocol.md` section 7.
    """
    if not draft.state.control.turns and not draft.state.control.interrupts:
        return
    error = Error(code="cancelled", message="cancelled")
    for turn in draft.state.control.turns:
        _end_calls(draft, turn)
        complete(draft, turn, error=error, reason=TURN_CANCELLED)
    draft.raised = []
    for decision in draft.state.control.decisions:
        draft.emit(ev.DecisionDropped(decision_id=decision.id), decision.turn_id)
    for interrupt in draft.state.control.interrupts:
        draft.emit(
            ev.SessionInterruptResumed(
                interrupt_id=interrupt.id, status="cancelled", payload=CANCELLED
            ),
            interrupt.turn_id,
        )


def _end_calls(draft: Draft, turn: Turn) -> None:
    """Give every tool call of the turn's messages a result, started or not."""
    _record_finished(draft, turn)
    for call in draft.state.calls_of(turn.id):
        stop_call(draft, call, TURN_CANCELLED)
    for call_id in _unanswered(draft.state, turn):
        record_unanswered(draft, call_id, TURN_CANCELLED, turn.id)


def _record_input(draft: Draft, turn: Turn) -> None:
    """Record input of the turn that nobody has looked at yet: it starts nothing any more."""
    for each in draft.waiting:
        if each.turn_id == turn.id and isinstance(each.trigger, ClientMessages):
            record_input(draft, turn.id, each.trigger)


def record_input(draft: Draft, turn_id: str | None, trigger: ClientMessages) -> None:
    """Record what of an input is not recorded yet, at the end of its turn's branch."""
    for message in trigger.messages:
        if message.id not in draft.state.tree:
            parent_id = draft.state.end_of(turn_id)
            draft.emit(ev.MessageNew(message=message, parent_id=parent_id), turn_id)


def _record_finished(draft: Draft, turn: Turn) -> None:
    """Record what tools of the turn have come to that nobody has looked at yet.

    They ran: the model must not be told that they were cancelled.
    """
    finished = [
        each.trigger
        for each in draft.waiting
        if each.turn_id == turn.id and isinstance(each.trigger, ToolFinished)
    ]
    unanswered = set(_unanswered(draft.state, turn)) if finished else set[str]()
    for trigger in finished:
        if trigger.id in unanswered:
            message = finished_message(draft, trigger)
            parent_id = draft.state.end_of(turn.id)
            draft.emit(ev.MessageNew(message=message, parent_id=parent_id), turn.id)


def _unanswered(state: State, turn: Turn) -> list[str]:
    """Return the tool calls of the turn's recorded messages that have no result yet."""
    asked: list[str] = []
    answered: set[str] = set()
    for node in state.tree.upward(state.end_of(turn.id)):
        if node.turn_id != turn.id:
            break
        match node.message:
            case ToolMessage(tool_call_id=call_id):
                answered.add(call_id)
            case AssistantMessage(tool_calls=calls):
                asked.extend(call.id for call in calls)
            case _:
                continue
    return [call_id for call_id in asked if call_id not in answered]
