"""Fold: one event onto a state.

Total, pure, and without decisions: whatever the log says, happened. Each step is
constant in the length of the history.
"""

from dataclasses import replace
from typing import Any, TypeAlias

from engine.core import apply_calls as folded
from engine.core import events as ev
from engine.core.messages import ClientContext
from engine.core.state import Control, Decision, OpenInterrupt, QueuedTurn, State, Turn
from engine.core.worker import Action, InterruptResumed


def apply(state: State, event: ev.Event) -> State:
    """Return the state after `event`."""
    tree, body = state.tree, event.body
    match body:
        case ev.MessageNew():
            tree = tree.append(body.message, body.parent_id, event.seq, event.turn_id)
        case ev.StateUpdated():
            tree = tree.mark("state", body.anchor, event.seq)
        case ev.SharedStateUpdated():
            tree = tree.mark("shared_state", body.anchor, event.seq)
        case ev.AgentUpdated():
            tree = tree.mark("agent", body.anchor, event.seq)
        case _:
            pass
    return State(apply_control(state.control, event), tree)


def apply_control(control: Control, event: ev.Event) -> Control:
    """Return what is open after `event`: all of a state but its messages."""
    return replace(control, seq=event.seq, **_changes(control, event))


def _changes(control: Control, event: ev.Event) -> dict[str, Any]:
    """Return the fields of `control` that an event changes, with their new values."""
    match event.body:
        case ev.SessionCreated() | ev.MessageNew() | ev.HeadMoved() as body:
            return _conversation(control, event, body)
        case (
            ev.TurnStarted()
            | ev.TurnParked()
            | ev.TurnCompleted()
            | ev.TurnQueued()
            | ev.TurnDropped()
        ) as body:
            return {
                "turns": _turns(control, event, body),
                "queue": _queue(control.queue, event, body),
            }
        case (
            ev.DecisionWaiting()
            | ev.DecisionRequested()
            | ev.DecisionCompleted()
            | ev.DecisionErrored()
            | ev.DecisionDropped()
        ) as body:
            return {
                "decisions": _decisions(control.decisions, event, body),
                "calls": folded.asked(control, body),
            }
        case ev.LlmCallRequested() | ev.LlmCallCompleted() | ev.LlmCallErrored() as body:
            return {
                "calls": folded.model_calls(control.calls, event, body),
                "turns": folded.after_model_call(control.turns, event, body),
            }
        case (
            ev.ToolCallRequested()
            | ev.CallStarted()
            | ev.ToolCallCompleted()
            | ev.ToolCallErrored()
            | ev.CallVoided()
        ) as body:
            return {
                "calls": folded.tool_calls(control.calls, event, body),
                "turns": _instructed(control.turns, event, body),
            }
        case ev.SessionInterrupted() | ev.SessionInterruptResumed() as body:
            return {
                "interrupts": _interrupts(control.interrupts, event, body),
                "calls": folded.answered(control, body),
                "turns": _instructed(control.turns, event, body),
            }
        case ev.StateUpdated() | ev.SharedStateUpdated() | ev.AgentUpdated() as body:
            return _value(body) if body.anchor == control.head else {}


def _conversation(
    control: Control, event: ev.Event, body: ev.SessionCreated | ev.MessageNew | ev.HeadMoved
) -> dict[str, Any]:
    match body:
        case ev.SessionCreated():
            return {
                "agent_id": body.agent_id,
                "owner": body.owner,
                "tenant": body.tenant,
                "thread_id": body.thread_id,
            }
        case ev.MessageNew():
            if body.parent_id == control.head:
                return {"head": body.message.id}
            return {"turns": _grown(control.turns, event.turn_id, body)}
        case ev.HeadMoved():
            moved: dict[str, Any] = {
                "head": body.message_id,
                "turns": _back(control.turns, event.turn_id),
            }
            if body.values is not None:
                moved["state"] = body.values.state
                moved["shared_state"] = body.values.shared_state
                moved["agent"] = body.values.agent
            return moved


def _value(body: ev.StateUpdated | ev.SharedStateUpdated | ev.AgentUpdated) -> dict[str, Any]:
    match body:
        case ev.StateUpdated():
            return {"state": body.state}
        case ev.SharedStateUpdated():
            return {"shared_state": body.state}
        case ev.AgentUpdated():
            return {"agent": body.agent}


_TurnBody: TypeAlias = (
    ev.TurnStarted | ev.TurnParked | ev.TurnCompleted | ev.TurnQueued | ev.TurnDropped
)


def _turns(control: Control, event: ev.Event, body: _TurnBody) -> tuple[Turn, ...]:
    turns, turn_id = control.turns, event.turn_id
    match body:
        case ev.TurnStarted():
            turn = Turn(id=turn_id or "", client=body.client or ClientContext())
            return (*turns, turn)
        case ev.TurnParked():
            tip = control.head
            return tuple(replace(t, parked=True, tip=tip) if t.id == turn_id else t for t in turns)
        case ev.TurnCompleted():
            return tuple(turn for turn in turns if turn.id != turn_id)
        case ev.TurnQueued() | ev.TurnDropped():
            return turns


def _queue(
    queue: tuple[QueuedTurn, ...], event: ev.Event, body: _TurnBody
) -> tuple[QueuedTurn, ...]:
    match body:
        case ev.TurnQueued():
            waiting = QueuedTurn(
                id=event.turn_id or "",
                behind=body.behind,
                messages=body.messages,
                client=body.client or ClientContext(),
            )
            return (*queue, waiting)
        case ev.TurnStarted():
            return _next_in_queue(queue, event.turn_id)
        case ev.TurnDropped():
            return tuple(waiting for waiting in queue if waiting.id != event.turn_id)
        case ev.TurnParked() | ev.TurnCompleted():
            return queue


def _next_in_queue(queue: tuple[QueuedTurn, ...], turn_id: str | None) -> tuple[QueuedTurn, ...]:
    """A queued turn has started: those that waited with it now wait behind it."""
    started = next((queued for queued in queue if queued.id == turn_id), None)
    if started is None:
        return queue
    return tuple(
        replace(queued, behind=started.id) if queued.behind == started.behind else queued
        for queued in queue
        if queued is not started
    )


def _back(turns: tuple[Turn, ...], turn_id: str | None) -> tuple[Turn, ...]:
    return tuple(replace(t, parked=False, tip=None) if t.id == turn_id else t for t in turns)


def _grown(turns: tuple[Turn, ...], turn_id: str | None, body: ev.MessageNew) -> tuple[Turn, ...]:
    """A message was recorded on a branch that is not the active one."""
    return tuple(
        replace(t, tip=body.message.id)
        if t.id == turn_id and t.parked and t.tip == body.parent_id
        else t
        for t in turns
    )


def _decisions(
    decisions: tuple[Decision, ...],
    event: ev.Event,
    body: ev.DecisionWaiting
    | ev.DecisionRequested
    | ev.DecisionCompleted
    | ev.DecisionErrored
    | ev.DecisionDropped,
) -> tuple[Decision, ...]:
    match body:
        case ev.DecisionWaiting():
            waiting = Decision(id=body.decision_id, turn_id=event.turn_id, trigger=body.trigger)
            return _in_line(tuple(d for d in decisions if d.id != waiting.id), waiting)
        case ev.DecisionRequested():
            # The same attempt again has new time, and is not begun again.
            before = next((d for d in decisions if d.id == body.decision_id), None)
            is_same = before is not None and before.attempt == body.attempt
            asked = Decision(
                id=body.decision_id,
                turn_id=event.turn_id,
                trigger=body.trigger,
                attempt=body.attempt,
                not_before=before.not_before if before is not None and is_same else None,
                deadline=body.deadline,
                expires=body.expires,
            )
            return (asked, *(d for d in decisions if d.id != asked.id))
        case ev.DecisionErrored(retry=retry) if retry is not None:
            return tuple(
                replace(
                    d,
                    attempt=retry.attempt,
                    not_before=retry.at,
                    deadline=retry.deadline,
                    held=(),
                )
                if d.id == body.decision_id
                else d
                for d in decisions
            )
        case ev.DecisionErrored(waits=True) | ev.DecisionCompleted(held=(_, *_)):
            held = body.held if isinstance(body, ev.DecisionCompleted) else ()
            used = body.used if isinstance(body, ev.DecisionErrored) else 0
            return _back_in_line(decisions, body.decision_id, held, used)
        case ev.DecisionCompleted() | ev.DecisionErrored() | ev.DecisionDropped():
            return tuple(d for d in decisions if d.id != body.decision_id)


def _instructed(turns: tuple[Turn, ...], event: ev.Event, body: ev.Body) -> tuple[Turn, ...]:
    """Note what came with a client's answer: it holds for what the turn does from now on."""
    match body:
        case ev.ToolCallCompleted() | ev.ToolCallErrored() | ev.SessionInterruptResumed():
            said = body.instructions
        case _:
            return turns
    if said is None:
        return turns
    return tuple(
        replace(turn, client=replace(turn.client, instructions=said))
        if turn.id == event.turn_id
        else turn
        for turn in turns
    )


def _back_in_line(
    decisions: tuple[Decision, ...], decision_id: str, held: tuple[Action, ...], used: int
) -> tuple[Decision, ...]:
    """One that was out waits again: before the others, behind answers that came meanwhile."""
    others = tuple(d for d in decisions if d.id != decision_id)
    was_out = next((d for d in decisions if d.id == decision_id), None)
    if was_out is None:
        return decisions
    back = Decision(
        id=was_out.id, turn_id=was_out.turn_id, trigger=was_out.trigger, held=held, used=used
    )
    if isinstance(back.trigger, InterruptResumed):
        return (back, *others)
    answers = tuple(d for d in others if isinstance(d.trigger, InterruptResumed))
    return (*answers, back, *others[len(answers) :])


def _in_line(decisions: tuple[Decision, ...], waiting: Decision) -> tuple[Decision, ...]:
    """Answers go out first, in the order they came; the rest as it came.

    Source: `protocol.md` section 6, the table of resumes, second row.
    """
    if not isinstance(waiting.trigger, InterruptResumed):
        return (*decisions, waiting)
    place = next(
        (
            index
            for index, d in enumerate(decisions)
            if not d.is_out and not isinstance(d.trigger, InterruptResumed)
        ),
        len(decisions),
    )
    return (*decisions[:place], waiting, *decisions[place:])


def _interrupts(
    interrupts: tuple[OpenInterrupt, ...],
    event: ev.Event,
    body: ev.SessionInterrupted | ev.SessionInterruptResumed,
) -> tuple[OpenInterrupt, ...]:
    match body:
        case ev.SessionInterrupted():
            raised = OpenInterrupt(
                id=body.interrupt_id,
                seq=event.seq,
                turn_id=event.turn_id,
                origin=body.origin,
                reason=body.reason,
                payload=body.payload,
                anchor=body.anchor,
                tool_call_id=body.tool_call_id,
                answer_by=body.answer_by,
                expires=body.expires,
            )
            return (*interrupts, raised)
        case ev.SessionInterruptResumed():
            return tuple(i for i in interrupts if i.id != body.interrupt_id)
