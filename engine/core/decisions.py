"""Decisions: one at a time the session's triggers are decided, by the worker or the engine.

A trigger nobody has to wait for is decided inside the commit that raised it. One
the worker wants becomes a decision that goes out; one that has to wait (another is
out, or the branch is paused) becomes a decision that stands in line.

Source: `protocol.md` section 5.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from engine.core import events as ev
from engine.core.approvals import DECLINED
from engine.core.calls import (
    DEADLINE,
    OUTCOME_UNKNOWN,
    RESTARTED,
    TIMED_OUT,
    TOOL_FAILED,
    bound_open_calls,
    end_tool_call,
    own_tool,
    restart_clocks,
)
from engine.core.commands import AnswerDecision, FailDecision
from engine.core.draft import Draft, Raised
from engine.core.env import RetryPolicy
from engine.core.errors import InvalidResponse
from engine.core.interrupts import is_paused
from engine.core.messages import members
from engine.core.propose import asked, propose
from engine.core.queued import start_next
from engine.core.respond import respond
from engine.core.retries import retry_of
from engine.core.state import Decision, State
from engine.core.turns import TURN_DONE, complete, complete_idle, record_input
from engine.core.worker import (
    Action,
    CallTool,
    ClientMessages,
    DecisionResponse,
    Done,
    Error,
    GiveError,
    Interrupt,
    ToolExecute,
    Trigger,
)


def settle(draft: Draft) -> None:
    """Decide what can be decided, send out what the worker must decide, end what is done.

    What waited behind a turn that ended begins.
    """
    _decide(draft)
    complete_idle(draft)
    while start_next(draft):
        _decide(draft)
        complete_idle(draft)
    bound_open_calls(draft)
    let_go(draft)


def let_go(draft: Draft) -> None:
    """Give calls that an interrupt held their time, and workers that are at them theirs."""
    still_held = {i.tool_call_id for i in draft.state.control.interrupts}
    released = set(draft.let_go) - still_held
    restart_clocks(draft)
    for decision in draft.state.control.decisions:
        trigger = decision.trigger
        if decision.is_out and isinstance(trigger, ToolExecute) and trigger.id in released:
            _send(draft, decision, attempt=decision.attempt)


def _decide(draft: Draft) -> None:
    while True:
        _drop_moot(draft)
        if (at_once := _next_at_once(draft)) is not None:
            draft.raised.remove(at_once)
            _take(draft, at_once)
        elif draft.raised:
            _line_up(draft)
        elif (ready := _next_ready(draft.state)) is not None:
            _let_go(draft, ready)
        else:
            break


def _drop_moot(draft: Draft) -> None:
    """Drop questions about starting a call that has started or ended meanwhile.

    A person who answered the interrupt that held a call has decided on it. A worker that
    is asked already is left alone, unless somebody settled the call before it answered.
    """
    draft.raised = [each for each in draft.raised if not _is_moot(draft.state, each)]
    for decision in draft.state.control.decisions:
        if not decision.held and _is_moot(draft.state, decision):
            draft.emit(ev.DecisionDropped(decision_id=decision.id), decision.turn_id)


def _is_moot(state: State, each: Raised | Decision) -> bool:
    if not isinstance(each.trigger, ToolExecute):
        return False
    call = state.call(each.trigger.id)
    is_out = isinstance(each, Decision) and each.is_out
    return call is None or (call.attempt > 0 and not is_out)


def _next_at_once(draft: Draft) -> Raised | None:
    """Return the first new trigger that has to wait for nobody."""
    beside = next((raised for raised in draft.raised if _is_beside(draft, raised)), None)
    if beside is not None:
        return beside
    if not draft.raised or _waiting_here(draft.state) or is_paused(draft.state):
        return None
    here = [raised for raised in draft.raised if not draft.state.is_parked(raised.turn_id)]
    return _first(draft.state, here)


def _is_beside(draft: Draft, raised: Raised) -> bool:
    """Whether a call starts beside the interrupt of its response.

    Not one that an interrupt holds, and not one that a worker has to be asked about.
    """
    trigger = raised.trigger
    if not raised.beside or not isinstance(trigger, ToolExecute):
        return False
    held = any(i.tool_call_id == trigger.id for i in draft.state.control.interrupts)
    return not held and not draft.env.agent.wants_trigger(trigger.type)


def _waiting_here(state: State) -> list[Decision]:
    """Return the decisions that others wait for; those of parked turns wait for themselves."""
    return [d for d in state.control.decisions if not state.is_parked(d.turn_id)]


_Line = TypeVar("_Line", Raised, Decision)


def _first(state: State, line: Sequence[_Line]) -> _Line | None:
    """Return who goes first: input that joined a turn is last, and waits for its calls."""
    others = next((each for each in line if not isinstance(each.trigger, ClientMessages)), None)
    if others is not None:
        return others
    return next((each for each in line if not state.calls_of(each.turn_id)), None)


def _take(draft: Draft, raised: Raised) -> None:
    if _refused(draft, raised.trigger):
        return
    if draft.env.agent.wants_trigger(raised.trigger.type):
        decision_id = draft.env.new_id("dec")
        _send(draft, Decision(id=decision_id, turn_id=raised.turn_id, trigger=raised.trigger))
    else:
        proposal = propose(draft, raised.turn_id, raised.trigger, None)
        respond(draft, raised.turn_id, raised.trigger, proposal, by="engine")


def _refused(draft: Draft, trigger: Trigger) -> bool:
    """End a call that a person was asked about and did not let run, whoever would start it."""
    call = draft.state.call(trigger.id) if isinstance(trigger, ToolExecute) else None
    if call is None or call.refused is None:
        return False
    end_tool_call(draft, call, error=call.refused or DECLINED)
    return True


def _line_up(draft: Draft) -> None:
    for raised in draft.raised:
        draft.emit(
            ev.DecisionWaiting(decision_id=draft.env.new_id("dec"), trigger=raised.trigger),
            raised.turn_id,
        )
    draft.raised = []


def _next_ready(state: State) -> Decision | None:
    """Return the decision in line that may be made now: none while one is out, or paused."""
    decisions = _waiting_here(state)
    if any(decision.is_out for decision in decisions) or is_paused(state):
        return None
    return _first(state, decisions)


def _let_go(draft: Draft, decision: Decision) -> None:
    """Make a decision that stood in line.

    The worker has answered it already: do what was held. Else ask the worker, or take the
    engine's own proposal.
    """
    if decision.held:
        _release(draft, decision)
        return
    if _refused(draft, decision.trigger):
        draft.emit(ev.DecisionDropped(decision_id=decision.id), decision.turn_id)
        return
    if draft.env.agent.wants_trigger(decision.trigger.type):
        _send(draft, decision)
        return
    proposal = propose(draft, decision.turn_id, decision.trigger, decision.id)
    draft.emit(ev.DecisionCompleted(decision_id=decision.id, by="engine"), decision.turn_id)
    respond(draft, decision.turn_id, decision.trigger, proposal, by="engine")


def _release(draft: Draft, decision: Decision) -> None:
    """Do what was held, action by action.

    Each was valid when the worker answered. One whose call has ended or started since is
    passed over: there is nothing left to start.
    """
    completed_at = len(draft.events)
    completed = ev.DecisionCompleted(decision_id=decision.id, by="worker")
    draft.emit(completed, decision.turn_id)
    asks = any(isinstance(action, Interrupt) for action in decision.held)
    replaced: dict[str, str] = {}
    joined = any(
        isinstance(d.trigger, ClientMessages) and d.turn_id == decision.turn_id
        for d in draft.state.control.decisions
    )
    for action in decision.held:
        if joined and isinstance(action, Done):
            continue  # it was said before a person said more
        fork = draft.fork()
        one = DecisionResponse(actions=(action,))
        try:
            replaced |= respond(fork, decision.turn_id, decision.trigger, one, asks=asks)
        except InvalidResponse:
            continue
        draft.adopt(fork)
    _name_replaced(draft, completed_at, completed, replaced)


def _name_replaced(
    draft: Draft, place: int, completed: ev.DecisionCompleted, replaced: dict[str, str]
) -> None:
    """Say which interrupt ids were replaced. The fold does not read them: it may be said late."""
    if replaced:
        body = replace(completed, replaced_ids=replaced)
        draft.events[place] = replace(draft.events[place], body=body)


def _send(draft: Draft, decision: Decision, *, attempt: int | None = None) -> None:
    """Ask the worker: the next attempt, or one that is under way, with new time."""
    policy = policy_of(draft, decision)
    expires = draft.env.now + policy.total
    draft.emit(
        ev.DecisionRequested(
            decision_id=decision.id,
            trigger=_as_of_now(draft.state, decision.trigger),
            attempt=attempt or decision.used + 1,
            deadline=min(draft.env.now + policy.run, expires),
            expires=expires,
        ),
        decision.turn_id,
    )


def _as_of_now(state: State, trigger: Trigger) -> Trigger:
    """Return a trigger as the worker is told it: input stands where it would be recorded now."""
    if not isinstance(trigger, ClientMessages):
        return trigger
    node = state.tree.get(state.control.head)
    return replace(trigger, new_from=node.depth + 1 if node is not None else 0)


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
    asked = {action.id for action in starting if isinstance(action, CallTool)} - {None}
    held = tuple(a for a in actions if a in starting or _asks_about(a, asked))
    _apply(draft, decision, command.response, held)


def _asks_about(action: Action, call_ids: set[str | None]) -> bool:
    """Whether an action asks a person about one of these calls, none of which is open yet."""
    if not isinstance(action, Interrupt):
        return False
    return members(action.payload).get("toolCallId") in call_ids


def _waits(draft: Draft, decision: Decision) -> bool:
    """Whether what a decision starts has to wait: its branch is paused, or was left."""
    return draft.state.is_parked(decision.turn_id) or is_paused(draft.state)


STARTING = {"llm.call", "tool.call", "tool.run", "done"}
"""Actions that start something, or end the turn: not while the branch is paused."""


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
    _name_replaced(fork, completed_at, completed, replaced)
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
