"""One command onto a session: events, the next state, and what to tell the caller.

Pure. A refused command raises and leaves everything as it was; the rules live in
the files named after their family, this one only finds them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from engine.core import attempts, calls, decisions, due, inputs, interrupts, turns, views
from engine.core import commands as cmd
from engine.core.draft import Draft, Notice
from engine.core.env import Env
from engine.core.errors import InvalidInput, UnknownSession
from engine.core.events import Event, TurnCompleted
from engine.core.state import Control, State
from engine.core.status import active_turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a command did, for its caller.

    `turn_id` is the turn it started, resumed, joined or queued; `ended` the turns it completed;
    `cleared` the interrupts it answered. `before` and `after` are what was open then,
    and `pausing` the interrupts that pause the active path after it.
    """

    before: Control
    after: Control
    turn_id: str | None = None
    ended: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    pausing: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def queued(self) -> bool:
        """Whether its turn waits for another one to complete."""
        return any(waiting.id == self.turn_id for waiting in self.after.queue)

    @property
    def recorded(self) -> bool:
        """Whether anything was recorded."""
        return self.after.seq > self.before.seq


@dataclass(frozen=True, slots=True)
class Outcome:
    """Events to append, what is open after each, the state they lead to, and the receipt."""

    events: Sequence[Event]
    controls: Sequence[Control]
    state: State
    receipt: Receipt


def handle(state: State, command: cmd.Command, env: Env, birth: cmd.Birth | None = None) -> Outcome:
    """Decide what a command does.

    `birth` creates the session when it does not exist yet.

    Raises:
        Refused: nothing changed. See `errors.py` for the kinds.
    """
    draft = Draft(state, env)
    if state.control.seq == 0:
        if birth is None:
            raise UnknownSession(state.control.session_id)
        inputs.create(draft, birth)
    interrupts.expire(draft)
    decisions.restart(draft)
    turn_id = _dispatch(draft, command)
    decisions.settle(draft)
    turns.abandon(draft)
    if state.control.seq == 0 and len(draft.events) == 1:
        # A session in which nothing happened is not worth a log.
        draft = Draft(state, env)
    receipt = Receipt(
        before=state.control,
        after=draft.state.control,
        turn_id=turn_id,
        ended=tuple(
            event.turn_id
            for event in draft.events
            if isinstance(event.body, TurnCompleted) and event.turn_id is not None
        ),
        cleared=tuple(draft.taken),
        pausing=tuple(i.id for i in interrupts.pausing(draft.state)),
        notices=tuple(draft.notices),
    )
    return Outcome(draft.events, draft.controls, draft.state, receipt)


def _dispatch(draft: Draft, command: cmd.Command) -> str | None:
    """Find the rules for a command; return the turn it started, resumed, joined or queued."""
    match command:
        case cmd.ClientView():
            return views.client_view(draft, command)
        case cmd.AppendMessages():
            return inputs.append_messages(draft, command)
        case cmd.TakeAction():
            return inputs.take_action(draft, command)
        case cmd.SettleCall():
            return calls.settle_call(draft, command)
        case cmd.ResumeInterrupt():
            return _resume(draft, command)
        case cmd.RaiseInterrupt():
            return _raise(draft, command)
        case cmd.CancelSession():
            turns.cancel(draft)
        case _:
            _report(draft, command)
    return None


_Report: TypeAlias = (
    cmd.AnswerDecision
    | cmd.FailDecision
    | cmd.FinishModelCall
    | cmd.FailCall
    | cmd.FinishToolCall
    | cmd.Recover
    | cmd.PassTime
)


def _report(draft: Draft, command: _Report) -> None:
    """What outside work came to, or what time did."""
    match command:
        case cmd.AnswerDecision():
            attempts.answer(draft, command)
        case cmd.FailDecision():
            attempts.fail_attempt(draft, command)
        case cmd.FinishModelCall():
            calls.finish_model_call(draft, command)
        case cmd.FailCall():
            calls.fail_call(draft, command)
        case cmd.FinishToolCall():
            calls.finish_tool_call(draft, command)
        case cmd.Recover():
            due.recover(draft)
        case cmd.PassTime():
            due.pass_time(draft)


def _resume(draft: Draft, command: cmd.ResumeInterrupt) -> str | None:
    interrupt = draft.state.interrupt(command.answer.interrupt_id)
    interrupts.clear(draft, command.answer, command.caller)
    return interrupt.turn_id if interrupt is not None else None


def _raise(draft: Draft, command: cmd.RaiseInterrupt) -> str | None:
    if not command.reason:
        raise InvalidInput("reason", "an interrupt needs a reason")
    turn = active_turn(draft.state)
    turn_id = turn.id if turn is not None else None
    inputs.begin_session(draft, turn_id)
    interrupts.raise_interrupt(
        draft,
        turn_id,
        origin=command.caller,
        reason=command.reason,
        interrupt_id=command.interrupt_id,
        payload=command.payload,
        answer_by=command.answer_by,
        held_call=interrupts.held_call(draft.state, command.payload, None),
    )
    return turn_id
