"""Time: what it changes by itself, and when it next will.

Source: `protocol.md` sections 2 (recovery) and 8 (deadlines).
"""

from collections.abc import Callable
from datetime import datetime

from engine.core import attempts, calls
from engine.core.draft import Draft
from engine.core.state import Call, Decision, State
from engine.core.worker import Error, ToolExecute


def wake_at(state: State) -> datetime | None:
    """Return the next moment at which time alone changes the session."""
    moments = [call.deadline for call in state.control.calls if not _is_held(state, call)]
    moments += [d.deadline for d in state.control.decisions if not _is_held(state, d)]
    moments += [interrupt.expires for interrupt in state.control.interrupts]
    return min((moment for moment in moments if moment is not None), default=None)


def pass_time(draft: Draft) -> None:
    """End every attempt whose deadline has passed. No clock runs against a person."""
    now = draft.env.now

    def is_late(work: Call | Decision) -> bool:
        return (
            work.deadline is not None and work.deadline <= now and not _is_held(draft.state, work)
        )

    _fail(draft, calls.DEADLINE, is_late)


def recover(draft: Draft) -> None:
    """Continue after the process that ran this session's effects is gone.

    What was in flight failed with it: a model call is sent again as its next attempt,
    a decision is asked again, a tool ends with `outcome unknown` unless its policy
    allows another attempt. What had not started yet starts as if nothing had happened.
    """
    now = draft.env.now
    _fail(draft, calls.RESTARTED, lambda work: _was_running(work, now), at_once=True)


def _fail(
    draft: Draft,
    error: Error,
    concerns: Callable[[Call | Decision], bool],
    *,
    at_once: bool = False,
) -> None:
    """Fail the attempts that this concerns; one may end others, which are then left alone."""
    for call in draft.state.control.calls:
        if concerns(call) and draft.state.call(call.id) is call:
            calls.fail(draft, call, error, at_once=at_once)
    for decision in draft.state.control.decisions:
        if concerns(decision) and draft.state.decision(decision.id) is decision:
            attempts.fail(draft, decision, error, at_once=at_once)


def _was_running(work: Call | Decision, now: datetime) -> bool:
    """Whether the process that is gone was at it. A worker's own call goes on without us."""
    if isinstance(work, Call) and work.kind == "worker":
        return False
    return work.attempt > 0 and (work.not_before is None or work.not_before <= now)


def _is_held(state: State, work: Call | Decision) -> bool:
    """Whether an open interrupt holds a call, or the question about it: no deadline then."""
    trigger = work.trigger if isinstance(work, Decision) else None
    call_id = trigger.id if isinstance(trigger, ToolExecute) else work.id
    return state.is_held(call_id)
