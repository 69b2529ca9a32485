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
from engine.core.attempts import name_replaced, policy_of
from engine.core.calls import bound_open_calls, end_tool_call, restart_clocks
from engine.core.draft import Draft, Raised
from engine.core.errors import InvalidResponse
from engine.core.interrupts import is_paused
from engine.core.propose import propose
from engine.core.queued import start_next
from engine.core.respond import respond
from engine.core.state import Decision, State
from engine.core.turns import complete_idle
from engine.core.worker import (
    ClientMessages,
    DecisionResponse,
    Done,
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
    restart(draft)


def restart(draft: Draft) -> None:
    """Give calls that an interrupt held their time, and workers that are at them theirs."""
    restart_clocks(draft)
    for decision in draft.state.control.decisions:
        trigger = decision.trigger
        if not decision.is_out or not isinstance(trigger, ToolExecute):
            continue
        if trigger.id in draft.released and not draft.state.is_held(trigger.id):
            _send(draft, decision, attempt=decision.attempt)
    draft.released = []


def _decide(draft: Draft) -> None:
    while True:
        _drop_moot(draft)
        if (at_once := _next_at_once(draft)) is not None:
            draft.raised.remove(at_once)
            _take(draft, at_once)
        elif draft.raised:
            _line_up(draft)
        elif (ready := _next_ready(draft.state)) is not None:
            _make(draft, ready)
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
    held = draft.state.is_held(trigger.id)
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


def _make(draft: Draft, decision: Decision) -> None:
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
    name_replaced(draft, completed_at, completed, replaced)


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
