"""What happened in the lives of the machine, counted: so that it cannot quietly stop."""

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.approvals import is_approval
from engine.core.calls import DEADLINE, OUTCOME_UNKNOWN
from engine.core.errors import Refused
from engine.core.state import State
from engine.core.worker import ClientAction, ClientMessages, ToolExecute
from tests.properties.steps import Step, gives_leave

TALLY: Counter[str] = Counter()
"""Everything counted since the process began, or since somebody cleared it."""

COMMANDS: tuple[str, ...] = tuple(kind.__name__ for kind in get_args(cmd.Command))
"""Every kind of command there is."""

PATHS = (
    "a turn ended well",
    "a turn ended with an error of its worker",
    "a turn ended with an error of its model",
    "a turn was parked",
    "a parked turn came back",
    "a parked turn was abandoned",
    "a turn was cancelled",
    "a turn was cancelled while parked",
    "input joined a turn",
    "input was queued",
    "a queued turn started",
    "a queued turn was dropped",
    "input that was known already",
    "a branch with other values was shown",
    "a worker wrote its memory",
    "a worker wrote the config",
    "an action was asked about in a turn",
    "an action was asked about outside a turn",
    "an action opened a turn",
    "an action outlived its turn",
    "an answer to a question was given",
    "a question was given up",
    "a question expired",
    "an approval was given",
    "an approval was declined",
    "what a worker starts was held while paused",
    "a call started beside a question",
    "the clock of a held call started anew",
    "a call was left open, with a deadline",
    "a client settled a call",
    "a machine settled a call",
    "a question about a call was moot",
    "the deadline of a model call fired",
    "the deadline of a function tool fired",
    "the deadline of a call left open fired",
    "the deadline of a decision fired",
    "a model call was tried again",
    "a tool was tried again",
    "a decision was asked again",
    "a worker's own tool was tried again",
    "an action brought its own deadlines",
    "a crash was survived with work in flight",
    "a tool's outcome was unknown",
)
"""Every path that a long run must have taken, in words."""


def refused(command: cmd.Command, error: Refused) -> None:
    """Count a command that was refused."""
    TALLY[f"{type(command).__name__} refused"] += 1
    TALLY[f"refused: {error.code}"] += 1


def took(step: Step) -> None:
    """Count a command that went through, and what it did."""
    TALLY[f"{type(step.command).__name__} taken"] += 1
    TALLY.update(_of_command(step))
    for state, event in step.walk():
        TALLY.update(_of_turns(step, state, event))
        TALLY.update(_of_branches(event))
        TALLY.update(_of_questions(state, event))
        TALLY.update(_of_calls(step, state, event))
        TALLY.update(_of_attempts(state, event))


def _of_command(step: Step) -> Iterator[str]:
    happened = step.outcome.events
    match step.command:
        case cmd.AppendMessages() if not happened and step.outcome.receipt.turn_id is not None:
            yield "input that was known already"
        case cmd.SettleCall(caller=caller):
            yield f"a {caller} settled a call"
        case cmd.Recover() if happened:
            yield "a crash was survived with work in flight"
        case _:
            pass
    existing = {turn.id for turn in step.before.control.turns}
    says = isinstance(step.command, cmd.ClientView | cmd.AppendMessages)
    if says and any(e.turn_id in existing and _brings_input(e.body) for e in happened):
        yield "input joined a turn"


def _brings_input(body: ev.Body) -> bool:
    match body:
        case ev.DecisionWaiting(trigger=trigger) | ev.DecisionRequested(trigger=trigger):
            return isinstance(trigger, ClientMessages)
        case ev.MessageNew(message=message):
            return message.role == "user"
        case _:
            return False


def _of_turns(step: Step, state: State, event: ev.Event) -> Iterator[str]:
    match event.body:
        case ev.TurnStarted():
            if any(queued.id == event.turn_id for queued in state.control.queue):
                yield "a queued turn started"
            elif isinstance(step.command, cmd.AnswerDecision):
                yield "an action opened a turn"
        case ev.TurnQueued():
            yield "input was queued"
        case ev.TurnDropped():
            yield "a queued turn was dropped"
        case ev.TurnCompleted(error=error):
            yield from _end(state, event, error.code if error is not None else None)
        case _:
            pass


def _of_branches(event: ev.Event) -> Iterator[str]:
    match event.body:
        case ev.TurnParked():
            yield "a turn was parked"
        case ev.HeadMoved(values=values):
            if event.turn_id is not None:
                yield "a parked turn came back"
            if values is not None:
                yield "a branch with other values was shown"
        case ev.StateUpdated():
            yield "a worker wrote its memory"
        case ev.AgentUpdated():
            yield "a worker wrote the config"
        case _:
            pass


def _end(state: State, event: ev.Event, code: str | None) -> Iterator[str]:
    match code:
        case None:
            yield "a turn ended well"
        case "cancelled":
            yield "a turn was cancelled"
            if state.is_parked(event.turn_id):
                yield "a turn was cancelled while parked"
        case "abandoned":
            yield "a parked turn was abandoned"
        case "worker_error":
            yield "a turn ended with an error of its worker"
        case _:
            yield "a turn ended with an error of its model"


def _of_questions(state: State, event: ev.Event) -> Iterator[str]:
    match event.body:
        case ev.SessionInterruptResumed() as body:
            interrupt = state.interrupt(body.interrupt_id)
            if body.status == "resolved":
                yield "an answer to a question was given"
            else:
                yield (
                    "a question expired" if body.status == "expired" else "a question was given up"
                )
            if interrupt is not None and is_approval(interrupt.payload):
                given = body.status == "resolved" and gives_leave(body.payload)
                yield "an approval was given" if given else "an approval was declined"
        case ev.DecisionCompleted(held=(_, *_)):
            yield "what a worker starts was held while paused"
        case _:
            pass


def _of_calls(step: Step, state: State, event: ev.Event) -> Iterator[str]:
    match event.body:
        case ev.CallStarted(call_id=call_id):
            call = state.call(call_id)
            if call is not None and call.attempt > 0:
                yield "the clock of a held call started anew"
            elif call is not None and call.kind == "worker":
                yield "a call was left open, with a deadline"
            elif any(e.type == "session.interrupted" for e in bodies_before(step, event)):
                yield "a call started beside a question"
        case ev.DecisionDropped(decision_id=decision_id):
            decision = state.decision(decision_id)
            if decision is not None and isinstance(decision.trigger, ToolExecute):
                about = state.call(decision.trigger.id)
                if about is None or about.attempt > 0:
                    yield "a question about a call was moot"
        case ev.DecisionRequested(trigger=ClientAction()):
            where = "in" if event.turn_id is not None else "outside"
            yield f"an action was asked about {where} a turn"
        case ev.DecisionWaiting(trigger=ClientAction()) if event.turn_id is None:
            known = state.decision(event.body.decision_id)
            if known is not None and known.turn_id is not None:
                yield "an action outlived its turn"
        case ev.LlmCallRequested(retry=retry) | ev.ToolCallRequested(retry=retry) if retry:
            yield "an action brought its own deadlines"
        case _:
            pass


def bodies_before(step: Step, event: ev.Event) -> list[ev.Body]:
    """Return what happened in a step before one of its events."""
    return [each.body for each in step.outcome.events if each.seq < event.seq]


def _of_attempts(state: State, event: ev.Event) -> Iterator[str]:
    match event.body:
        case ev.LlmCallErrored(error=error, retry=retry):
            if error.code == DEADLINE.code:
                yield "the deadline of a model call fired"
            if retry is not None:
                yield "a model call was tried again"
        case ev.ToolCallErrored(error=error, retry=retry) as body:
            call = state.call(body.call_id)
            if error.message == DEADLINE.message:
                is_function = call is not None and call.kind == "function"
                whose = "function tool" if is_function else "call left open"
                yield f"the deadline of a {whose} fired"
            if retry is not None:
                yield "a tool was tried again"
            if error.message == OUTCOME_UNKNOWN:
                yield "a tool's outcome was unknown"
        case ev.DecisionErrored(error=error, retry=retry):
            if error.code == DEADLINE.code:
                yield "the deadline of a decision fired"
            if retry is not None and error.code == "tool_error":
                yield "a worker's own tool was tried again"
            elif retry is not None:
                yield "a decision was asked again"
        case _:
            pass
