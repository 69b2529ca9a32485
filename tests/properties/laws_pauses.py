"""Laws of pauses: questions that are open, branches that were left, and cancels."""

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.interrupts import is_paused, pauses
from engine.core.messages import AssistantMessage, ToolMessage, UserMessage
from engine.core.state import State
from engine.core.status import status
from engine.core.worker import CallTool, ClientMessages, InterruptResumed
from tests.properties.steps import Step
from tests.properties.world import World


def nothing_goes_out_while_paused(world: World, step: Step) -> None:
    """While paused no decision goes out or is asked again, and nothing starts (section 6).

    But for calls that stand beside the question in the response that raised it.
    """
    for state, event in step.walk():
        if not is_paused(state):
            continue
        match event.body:
            case ev.LlmCallRequested():
                raise AssertionError("a model is called while paused")
            case ev.DecisionRequested(decision_id=decision_id):
                decision = state.decision(decision_id)  # it may get new time while it is out
                assert decision is not None, "a decision goes out while paused"
                assert decision.is_out, "a decision in line goes out while paused"
            case ev.DecisionErrored(retry=retry):
                assert retry is None, "a decision is asked again while paused"
            case ev.CallStarted(call_id=call_id):
                call = state.call(call_id)
                assert call is not None
                is_first = call.kind == "function" and call.attempt == 0
                assert not is_first or _is_beside(step, state, call_id), "a tool starts"
            case _:
                continue


def _is_beside(step: Step, state: State, call_id: str) -> bool:
    """Whether a call and a question that does not hold it come from the same response.

    A call that `waits` does not count.
    """
    if isinstance(step.command, cmd.AnswerDecision):
        called = [a for a in step.command.response.actions if isinstance(a, CallTool)]
        if called and all(action.waits for action in called):
            return False
    earlier = [e.body for e in step.outcome.events if e.seq <= state.control.seq]
    return (
        any(isinstance(body, ev.SessionInterrupted) for body in earlier)
        and any(isinstance(b, ev.ToolCallRequested) and b.call_id == call_id for b in earlier)
        and all(interrupt.tool_call_id != call_id for interrupt in state.control.interrupts)
    )


def a_paused_turn_ends_only_by_a_cancel(world: World, step: Step) -> None:
    """While paused a turn completes only by a cancel (section 4)."""
    if isinstance(step.command, cmd.CancelSession) or not is_paused(step.before):
        return
    answered = any(
        isinstance(e.body, ev.SessionInterruptResumed) and e.body.status != "cancelled"
        for e in step.outcome.events
    ) or bool(step.outcome.receipt.cleared)
    here = {turn.id for turn in step.before.control.turns if not turn.parked}
    if not answered:
        assert not here & set(step.outcome.receipt.ended), "a paused turn completed"


def a_parked_turn_ends_abandoned_or_cancelled(world: World, step: Step) -> None:
    """A turn whose branch is left when it ends was not waited for, or cancelled (section 4)."""
    for state, event in step.walk():
        if isinstance(event.body, ev.TurnCompleted) and state.is_parked(event.turn_id):
            code = event.body.error.code if event.body.error is not None else None
            is_cancel = isinstance(step.command, cmd.CancelSession)
            assert code == ("cancelled" if is_cancel else "abandoned")


def answers_go_out_first(world: World, step: Step) -> None:
    """Answers stand in line before everything else (section 6, the table of resumes)."""
    waiting = [
        isinstance(d.trigger, InterruptResumed)
        for d in world.state.control.decisions
        if not d.is_out
    ]
    assert waiting == sorted(waiting, reverse=True)


def somebody_has_the_next_move(world: World, step: Step) -> None:
    """A session that is not paused never waits for nothing."""
    control = world.state.control
    if is_paused(world.state):
        return
    waiting = [
        d for d in control.decisions if not d.is_out and not world.state.is_parked(d.turn_id)
    ]
    if waiting and not any(d.is_out for d in control.decisions):
        assert all(isinstance(d.trigger, ClientMessages) for d in waiting)
        assert all(world.state.calls_of(d.turn_id) for d in waiting)
    for turn in control.turns:
        if turn.parked:
            continue
        decides = any(d.turn_id == turn.id for d in control.decisions)
        assert decides or world.state.calls_of(turn.id), "an open turn with nothing left to do"


def joined_input_waits(world: World, step: Step) -> None:
    """What joins a turn waits until no call of the turn is open (section 4)."""
    for state, event in step.walk():
        match event.body:
            case ev.MessageNew(message=UserMessage()) if event.turn_id is not None:
                worker_says = world.spec.wants_trigger("client.messages")
                assert worker_says or not state.calls_of(event.turn_id), "recorded too early"
            case ev.DecisionRequested(trigger=ClientMessages()):
                assert not state.calls_of(event.turn_id), "asked too early"
            case _:
                continue


def a_parked_turn_waits_for_somebody(world: World, step: Step) -> None:
    """One that waits for nothing any more is over; none of its decisions is out (section 4)."""
    state = world.state
    for turn in state.control.turns:
        if not turn.parked:
            continue
        asks_client = any(call.kind == "client" for call in state.calls_of(turn.id))
        assert asks_client or any(pauses(state, i, turn.tip) for i in state.control.interrupts), (
            "a parked turn waits for nothing"
        )
        out = [d for d in state.control.decisions if d.turn_id == turn.id and d.is_out]
        assert all(world.is_own_tool(decision) for decision in out)
        assert turn.tip is None or turn.tip in state.tree


def only_what_waits_is_left(world: World, step: Step) -> None:
    """A branch is left while its turn is paused or waits, never while it runs (section 4)."""
    for event in step.outcome.events:
        if isinstance(event.body, ev.TurnParked):
            turn = step.before.turn(event.turn_id)
            assert turn is not None
            assert status(step.before, turn) in {"paused", "waiting"}, "a running turn was left"


def a_cancel_ends_everything(world: World, step: Step) -> None:
    """After a cancel nothing is open; with nothing open it does nothing (section 7)."""
    if not isinstance(step.command, cmd.CancelSession):
        return
    assert bool(step.outcome.events) == _anything_open(step.before)
    if not step.outcome.events:
        return
    control = world.state.control
    assert not control.turns
    assert not control.calls
    assert not control.queue, "a queued turn is left after a cancel"
    assert not control.decisions, "a decision is left after a cancel"
    assert not control.interrupts


def _anything_open(state: State) -> bool:
    return bool(state.control.turns or state.control.queue or state.control.interrupts)


def a_turn_that_is_given_up_answers_its_calls(world: World, step: Step) -> None:
    """Cancelled or abandoned: each tool call of its messages has a result (sections 4 and 7)."""
    given_up = {
        e.turn_id
        for e in step.outcome.events
        if isinstance(e.body, ev.TurnCompleted)
        and e.body.error is not None
        and e.body.error.code in {"cancelled", "abandoned"}
    }
    if not given_up:
        return
    recorded = [e for e in world.log if isinstance(e.body, ev.MessageNew)]
    messages = [(e.turn_id, e.body.message) for e in recorded if isinstance(e.body, ev.MessageNew)]
    results = {m.tool_call_id for _, m in messages if isinstance(m, ToolMessage)}
    for turn_id, message in messages:
        if turn_id in given_up and isinstance(message, AssistantMessage):
            assert {call.id for call in message.tool_calls} <= results


def nothing_of_a_parked_turn_starts(world: World, step: Step) -> None:
    """Its running calls go on; nothing new is asked, called or started for it (section 4)."""
    for state, event in step.walk():
        if not state.is_parked(event.turn_id):
            continue
        match event.body:
            case ev.LlmCallRequested() | ev.ToolCallRequested():
                raise AssertionError(f"{event.body.type} for a parked turn")
            case ev.DecisionRequested(decision_id=decision_id):
                decision = state.decision(decision_id)  # it may get new time while it is out
                assert decision is not None, "a parked turn's trigger goes out"
                assert decision.is_out, "a parked turn's decision goes out"
            case ev.DecisionErrored(retry=retry):
                assert retry is None, "a parked turn's decision is asked again"
            case ev.CallStarted(call_id=call_id):
                call = state.call(call_id)
                assert call is not None
                assert call.kind != "function" or call.attempt > 0, "a parked turn's tool starts"
            case _:
                continue
