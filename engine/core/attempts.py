"""Attempts of a decision: what a worker answered, or that it did not.

Which decision goes out, and when, is in `decisions.py`.

Source: `protocol.md` section 5, and section 8 for how often a worker is asked.
"""

from dataclasses import replace

from engine.core import events as ev
from engine.core.calls import (
    DEADLINE,
    OUTCOME_UNKNOWN,
    RESTARTED,
    TIMED_OUT,
    TOOL_FAILED,
    end_tool_call,
    own_tool,
)
from engine.core.commands import AnswerDecision, FailDecision
from engine.core.draft import Draft
from engine.core.env import RetryPolicy
from engine.core.errors import InvalidResponse
from engine.core.interrupts import is_paused
from engine.core.messages import members
from engine.core.propose import asked
from engine.core.respond import respond
from engine.core.retries import retry_of
from engine.core.state import Decision
from engine.core.turns import TURN_DONE, complete, record_input
from engine.core.worker import (
    Action,
    CallTool,
    ClientMessages,
    DecisionResponse,
    Error,
    GiveError,
    Interrupt,
)

STARTING = {"llm.call", "tool.call", "tool.run", "done"}
"""Actions that start something, or end the turn: not while the branch is paused."""


def answer(draft: Draft, command: AnswerDecision) -> None:
    """A worker responded. An answer to a decision that was made or dropped is ignored.

    While somebody else paused the branch, what it starts waits for the answer.

    Source: `protocol.md` section 6, "On raising".
    """
    decision = draft.state.decision(command.decision_id)
    if decision is None or not decision.is_out:
        return
    if not _waits(draft, decision):
        _apply(draft, decision, command.response)
        return
    actions = command.response.actions
    starting = tuple(action for action in actions if action.type in STARTING)
    opened = {action.id for action in starting if isinstance(action, CallTool)} - {None}
    held = tuple(a for a in actions if a in starting or _asks_about(a, opened))
    _apply(draft, decision, command.response, held)


def _asks_about(action: Action, call_ids: set[str | None]) -> bool:
    """Whether an action asks a person about one of these calls, none of which is open yet."""
    if not isinstance(action, Interrupt):
        return False
    return members(action.payload).get("toolCallId") in call_ids


def _waits(draft: Draft, decision: Decision) -> bool:
    """Whether what a decision starts has to wait: its branch is paused, or was left."""
    return draft.state.is_parked(decision.turn_id) or is_paused(draft.state)


def _apply(
    draft: Draft, decision: Decision, response: DecisionResponse, held: tuple[Action, ...] = ()
) -> None:
    """Apply a worker's response, all but what is held.

    One that breaks a rule, in what is held too, changes nothing and is a failed attempt.
    """
    failed = _failed_attempt(draft, decision, response)
    if failed is not None:
        fail(draft, decision, failed)
        return
    fork = draft.fork()
    trigger = asked(decision)
    try:
        if held:
            respond(draft.fork(), decision.turn_id, trigger, response)
            now = tuple(action for action in response.actions if action not in held)
            response = replace(response, actions=now)
        completed_at = len(fork.events)
        completed = ev.DecisionCompleted(decision_id=decision.id, by="worker", held=held)
        fork.emit(completed, decision.turn_id)
        replaced = respond(fork, decision.turn_id, trigger, response)
    except InvalidResponse as error:
        fail(draft, decision, Error(code="worker_error", message=str(error), retryable=True))
        return
    name_replaced(fork, completed_at, completed, replaced)
    draft.adopt(fork)


def _failed_attempt(draft: Draft, decision: Decision, response: DecisionResponse) -> Error | None:
    """Return the retryable error of a worker's own tool, while another attempt is left."""
    trigger = own_tool(draft, decision)
    given = next((a for a in response.actions if isinstance(a, GiveError) and a.retryable), None)
    if trigger is None or given is None or given.id not in {None, trigger.id}:
        return None
    error = Error(code="tool_error", message=given.error, retryable=True)
    return error if _retry(draft, decision, error) is not None else None


def _retry(
    draft: Draft, decision: Decision, error: Error, *, at_once: bool = False
) -> ev.Retry | None:
    return retry_of(
        policy_of(draft, decision),
        attempt=decision.attempt,
        expires=decision.expires,
        retryable=error.retryable,
        env=draft.env,
        at_once=at_once,
    )


def fail_attempt(draft: Draft, command: FailDecision) -> None:
    """A worker did not answer. A failure of an older attempt is ignored."""
    decision = draft.state.decision(command.decision_id)
    if decision is not None and decision.attempt == command.attempt:
        fail(draft, decision, command.error)


def fail(draft: Draft, decision: Decision, error: Error, *, at_once: bool = False) -> None:
    """An attempt failed: ask again, or give up.

    1. The branch is paused, or was left: it is asked again when it is free. A paused turn
       ends only by a cancel. Of a worker's own tool the attempts count, whoever paused.
    2. Another attempt is left.
    3. Giving up ends the call when the worker was running its own tool, else the turn.
    """
    own = own_tool(draft, decision)
    retry = _retry(draft, decision, error, at_once=at_once)
    if _waits(draft, decision) and (own is None or retry is not None):
        draft.emit(
            ev.DecisionErrored(
                decision_id=decision.id,
                attempt=decision.attempt,
                error=error,
                waits=True,
                used=decision.attempt if own is not None else 0,
            ),
            decision.turn_id,
        )
        return
    draft.emit(
        ev.DecisionErrored(
            decision_id=decision.id, attempt=decision.attempt, error=error, retry=retry
        ),
        decision.turn_id,
    )
    if retry is not None:
        return
    call = draft.state.call(own.id) if own is not None else None
    turn = draft.state.turn(decision.turn_id)
    if isinstance(decision.trigger, ClientMessages):
        record_input(draft, decision.turn_id, decision.trigger)
    if call is not None:
        unknown = {RESTARTED.code: OUTCOME_UNKNOWN, DEADLINE.code: TIMED_OUT}
        end_tool_call(draft, call, error=unknown.get(error.code, TOOL_FAILED))
    elif turn is not None:
        ended = Error(code="worker_error", message=error.message)
        complete(draft, turn, error=ended, reason=TURN_DONE)


def policy_of(draft: Draft, decision: Decision) -> RetryPolicy:
    """Return the time and the attempts of a decision: the tool's, when it is the worker's own."""
    trigger = own_tool(draft, decision)
    if trigger is None:
        return draft.env.agent.decision_retry
    call = draft.state.call(trigger.id)
    return draft.env.agent.tools[trigger.name].retry.but(call.retry if call is not None else None)


def name_replaced(
    draft: Draft, place: int, completed: ev.DecisionCompleted, replaced: dict[str, str]
) -> None:
    """Say which interrupt ids were replaced. The fold does not read them: it may be said late."""
    if replaced:
        body = replace(completed, replaced_ids=replaced)
        draft.events[place] = replace(draft.events[place], body=body)
