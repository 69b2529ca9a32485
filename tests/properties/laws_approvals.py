"""Laws of questions about a call: it waits for the person, and so does its clock."""

from dataclasses import dataclass, replace

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.approvals import is_approval
from engine.core.interrupts import pauses
from engine.core.messages import AssistantMessage, Json
from engine.core.state import Call, State
from engine.core.toolinput import input_of
from engine.core.worker import RunTool, ToolExecute
from tests.properties.steps import Answered, Step, gives_leave
from tests.properties.world import World


def _begins(state: State, event: ev.Event) -> Call | None:
    """Return the call that an event starts, or that its worker may start by it."""
    match event.body:
        case ev.CallStarted(call_id=call_id):
            call = state.call(call_id)
            return call if call is not None and call.attempt == 0 else None
        case ev.DecisionRequested(decision_id=decision_id, trigger=ToolExecute(id=call_id)):
            known = state.decision(decision_id)
            return None if known is not None and known.is_out else state.call(call_id)
        case _:
            return None


def _is_run_by_a_worker(world: World, call: Call) -> bool:
    """Whether a worker said of its own, not as it was offered, that a call shall run."""
    return any(
        isinstance(action, RunTool) and (action.id or _subject(said)) == call.id
        for said in world.said
        if not said.is_proposal
        for action in said.response.actions
    )


def _subject(said: Answered) -> str | None:
    trigger = said.decision.trigger
    about = getattr(trigger, "tool_call_id", None)
    return about or (trigger.id if isinstance(trigger, ToolExecute) else None)


def _needs_leave(world: World, call: Call) -> bool:
    """Whether the model asked for a call that a person has to approve."""
    spec = world.spec.tools.get(call.name)
    if spec is None or not spec.approve or call.id not in _asked_together(world, call.id):
        return False
    return input_of(world.env(), call.name, call.arguments).status == "valid"


def _asked_together(world: World, call_id: str) -> set[str]:
    """Return the calls of the reply in which the model asked for one: none, if it did not."""
    for event in world.log:
        match event.body:
            case ev.MessageNew(message=AssistantMessage(tool_calls=calls)):
                ids = {call.id for call in calls}
                if call_id in ids:
                    return ids
            case _:
                continue
    return set()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question about a call. `given`: whether its answer lets it run; `None`: it is open."""

    payload: Json
    given: bool | None = None


def _questions(world: World, seq: int, call_id: str) -> list[_Asked]:
    """Return the questions about a call that count up to an event.

    When the agent itself asks, what was asked before does not count any more.
    """
    asked: dict[str, _Asked] = {}
    for event in world.log[:seq]:
        match event.body:
            case ev.SessionInterrupted(tool_call_id=about) as body if about == call_id:
                if body.origin in {"worker", "engine"}:
                    asked.clear()
                asked[body.interrupt_id] = _Asked(body.payload)
            case ev.SessionInterruptResumed(interrupt_id=interrupt_id) as body:
                if interrupt_id in asked:
                    given = body.status == "resolved" and gives_leave(body.payload)
                    asked[interrupt_id] = replace(asked[interrupt_id], given=given)
            case _:
                continue
    return list(asked.values())


def nothing_runs_without_leave(world: World, step: Step) -> None:
    """Only exactly `true` runs a call that needs approval; or its worker does (section 10).

    A function tool's call needs it of everybody who was asked. A worker's own tool is the
    worker's again when that asks a person something else about it.
    """
    for state, event in step.walk():
        call = _begins(state, event)
        if call is None or not _needs_leave(world, call) or _is_run_by_a_worker(world, call):
            continue
        asked = _questions(world, event.seq, call.id)
        assert asked, f"nobody was asked whether {call.name} may run"
        if call.kind == "worker" and not is_approval(asked[0].payload):
            continue
        needed = [each for each in asked if call.kind == "function" or is_approval(each.payload)]
        assert all(each.given for each in needed), f"{call.name} was not approved, and runs"


def the_log_says_what_was_approved(world: World, step: Step) -> None:
    """The event that answers an approval says whether the call may run (section 10)."""
    for state, event in step.walk():
        if isinstance(event.body, ev.SessionInterruptResumed):
            asked = state.interrupt(event.body.interrupt_id)
            assert asked is not None
            said = event.body.approved
            given = event.body.status == "resolved" and gives_leave(event.body.payload)
            ends_with_turn = asked.turn_id in step.outcome.receipt.ended
            assert said in {given, None}
            assert said is not None or ends_with_turn or not is_approval(asked.payload)


def a_reply_waits_for_its_approvals(world: World, step: Step) -> None:
    """While an approval is open, no other call of the reply starts but a client's (section 10)."""
    for state, event in step.walk():
        call = _begins(state, event)
        if call is None or _is_run_by_a_worker(world, call):
            continue
        together = _asked_together(world, call.id)
        asked = {
            i.tool_call_id for i in state.control.interrupts if is_approval(i.payload)
        } & together
        assert not asked, f"{call.name} starts while a call beside it waits for a person"


def _held(state: State) -> set[str]:
    """Return the calls that open questions hold, each on the branch it pauses."""
    return {
        call.id
        for interrupt in state.control.interrupts
        for call in state.control.calls
        if call.id == interrupt.tool_call_id
        and pauses(state, interrupt, state.end_of(call.turn_id))
    }


def a_held_call_waits(world: World, step: Step) -> None:
    """A call that an open question holds does not start, and no clock ends it (section 6)."""
    for state, event in step.walk():
        match event.body:
            case ev.CallStarted(call_id=call_id):
                assert call_id not in _held(state), "a held call starts, or its clock does"
            case ev.DecisionRequested(trigger=ToolExecute(id=call_id)):
                assert call_id not in _held(state), "a worker is asked about a held call"
            case ev.DecisionErrored(decision_id=decision_id):
                decision = state.decision(decision_id)
                if decision is not None and isinstance(decision.trigger, ToolExecute):
                    ran = isinstance(step.command, cmd.PassTime)
                    assert not (ran and decision.trigger.id in _held(state)), "a clock ran"
            case ev.ToolCallErrored(call_id=call_id, error=error, retry=retry):
                if isinstance(step.command, cmd.PassTime) and call_id in _held(state):
                    assert error.code == "ended", "a clock ran against a person"
                    assert retry is None
            case _:
                continue


def an_answer_starts_the_clock_anew(world: World, step: Step) -> None:
    """Clearing the question that held a call starts its deadlines anew (section 6)."""
    cleared = {
        e.body.interrupt_id
        for e in step.outcome.events
        if isinstance(e.body, ev.SessionInterruptResumed)
    }
    held = {i.tool_call_id for i in step.before.control.interrupts if i.id in cleared}
    still = {i.tool_call_id for i in world.state.control.interrupts}
    for call_id in held - still:
        call = world.state.call(call_id or "")
        if call is not None and call.deadline is not None:
            begins = [
                e
                for e in step.outcome.events
                if isinstance(e.body, ev.CallStarted) and e.body.call_id == call_id
            ]
            assert begins, "the clock of a call that was held did not start anew"
            assert call.deadline > step.now
        for decision in world.decisions_out():
            if isinstance(decision.trigger, ToolExecute) and decision.trigger.id == call_id:
                assert decision.deadline is not None
                assert decision.deadline > step.now, "a worker has no time left"
