"""The laws of `protocol.md` that every step of every session keeps.

Each function takes a world and the step it just made and asserts one law. `LAWS`
lists them; a docstring names the sentence.
"""

from collections.abc import Callable, Sequence

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.apply import apply
from engine.core.interrupts import is_paused, pausing
from engine.core.messages import AssistantMessage, Message, ToolMessage, UserMessage, transcript
from engine.core.state import State
from engine.core.status import status
from engine.core.worker import ClientMessages, InterruptResumed
from engine.store import codec
from tests.properties.world import Step, World


def seq_has_no_gaps(world: World, step: Step) -> None:
    """`seq` starts at 1 and rises by 1 (section 2)."""
    first = len(step.log) + 1
    assert [e.seq for e in step.outcome.events] == list(
        range(first, first + len(step.outcome.events))
    )
    assert world.state.control.seq == len(world.log)


def folding_gives_the_state(world: World, step: Step) -> None:
    """The fold of the log as stored is the state, in one part or in two (section 2)."""
    assert world.shadow.control == world.state.control
    assert world.shadow.tree.path(world.head) == world.state.tree.path(world.head)
    text = codec.encode_control(world.state.control)
    assert codec.decode_control(text) == world.state.control
    assert codec.encode_control(codec.decode_control(text)) == text


def turns_start_and_end_once(world: World, step: Step) -> None:
    """Exactly one start and one end of a turn, in that order, and nothing after (section 4)."""
    started, ended = set[str](), set[str]()
    for event in world.log:
        turn_id = event.turn_id
        assert turn_id is None or turn_id not in ended, f"{event.body.type} after the turn's end"
        match event.body:
            case ev.TurnStarted():
                assert turn_id is not None
                assert turn_id not in started
                started.add(turn_id)
            case ev.TurnCompleted():
                assert turn_id in started
                ended.add(turn_id or "")
            case _:
                assert turn_id is None or turn_id in started
    assert [turn.id for turn in world.state.control.turns] == [
        e.turn_id
        for e in world.log
        if isinstance(e.body, ev.TurnStarted) and e.turn_id not in ended
    ]
    assert sum(not turn.parked for turn in world.state.control.turns) <= 1


def an_ended_turn_leaves_nothing_open(world: World, step: Step) -> None:
    """A turn that completes ends its calls, decisions and interrupts (sections 4 and 7)."""
    control = world.state.control
    open_turns = {turn.id for turn in control.turns}
    assert {call.turn_id for call in control.calls} <= open_turns
    assert {d.turn_id for d in control.decisions} <= open_turns | {None}
    assert {i.turn_id for i in control.interrupts} <= open_turns | {None}


def interrupts_end_once(world: World, step: Step) -> None:
    """An interrupt has a fresh id, and is cleared at most once (section 6)."""
    raised, cleared = set[str](), set[str]()
    for event in world.log:
        match event.body:
            case ev.SessionInterrupted(interrupt_id=interrupt_id, reason=reason):
                assert reason
                assert interrupt_id not in raised
                raised.add(interrupt_id)
            case ev.SessionInterruptResumed(interrupt_id=interrupt_id):
                assert interrupt_id in raised - cleared
                cleared.add(interrupt_id)
            case _:
                continue
    assert {i.id for i in world.state.control.interrupts} == raised - cleared


def calls_end_once(world: World, step: Step) -> None:
    """A call is requested once, runs once an attempt, and ends once (section 2)."""
    requested, ended = set[str](), set[str]()
    attempts = set[tuple[str, int]]()
    for event in world.log:
        match event.body:
            case ev.LlmCallRequested() | ev.ToolCallRequested() as body:
                assert body.call_id not in requested, "a call's id came twice"
                requested.add(body.call_id)
            case ev.CallStarted(call_id=call_id, attempt=attempt):
                assert call_id in requested - ended
                assert (call_id, attempt) not in attempts
                attempts.add((call_id, attempt))
            case ev.LlmCallErrored() | ev.ToolCallErrored() as body if body.retry is not None:
                assert body.call_id in requested - ended
                assert body.retry.attempt == body.attempt + 1
                assert (body.call_id, body.retry.attempt) not in attempts
                attempts.add((body.call_id, body.retry.attempt))
            case (
                ev.LlmCallCompleted()
                | ev.LlmCallErrored()
                | ev.ToolCallCompleted()
                | ev.ToolCallErrored()
                | ev.CallVoided()
            ) as body:
                assert body.call_id in requested - ended, f"{body.type} of a call not open"
                ended.add(body.call_id)
            case _:
                continue
    assert {call.id for call in world.state.control.calls} == requested - ended


def one_decision_is_out(world: World, step: Step) -> None:
    """At most one decision is live, and each is answered or dropped once (sections 1 and 5)."""
    assert sum(d.is_out for d in world.state.control.decisions) <= 1
    known, ended = set[str](), set[str]()
    for event in world.log:
        match event.body:
            case ev.DecisionWaiting() | ev.DecisionRequested() as body:
                assert body.decision_id not in ended
                known.add(body.decision_id)
            case ev.DecisionErrored(retry=retry) as body if retry is not None:
                assert body.decision_id in known - ended
                assert retry.attempt == body.attempt + 1
            case ev.DecisionErrored(waits=True) | ev.DecisionCompleted(held=(_, *_)) as body:
                assert body.decision_id in known - ended
            case ev.DecisionCompleted() | ev.DecisionErrored() | ev.DecisionDropped() as body:
                assert body.decision_id in known - ended
                ended.add(body.decision_id)
            case _:
                continue
    assert {d.id for d in world.state.control.decisions} == known - ended


def nothing_goes_out_while_paused(world: World, step: Step) -> None:
    """While paused no decision goes out or is asked again, and no model is called (section 6)."""
    state = step.before
    raised_here = False
    for event in step.outcome.events:
        if is_paused(state):
            match event.body:
                case ev.DecisionRequested() | ev.LlmCallRequested():
                    raise AssertionError(f"{event.body.type} while paused")
                case ev.DecisionErrored(retry=retry) if retry is not None:
                    raise AssertionError("a decision is asked again while paused")
                case ev.CallStarted() if not raised_here:
                    raise AssertionError("a tool starts while paused")
                case _:
                    pass
        raised_here = raised_here or isinstance(event.body, ev.SessionInterrupted)
        state = apply(state, event)


def a_paused_turn_ends_only_by_a_cancel(world: World, step: Step) -> None:
    """While paused a turn completes only by a cancel (section 4)."""
    if isinstance(step.command, cmd.CancelSession) or not is_paused(step.before):
        return
    answered = any(
        isinstance(e.body, ev.SessionInterruptResumed) and e.body.status != "cancelled"
        for e in step.outcome.events
    ) or bool(step.outcome.receipt.cleared)
    if not answered:
        assert not step.outcome.receipt.ended, "a paused turn completed"


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
    state = step.before
    for event in step.outcome.events:
        match event.body:
            case ev.MessageNew(message=UserMessage()) if event.turn_id is not None:
                worker_says = world.spec.wants_trigger("client.messages")
                assert worker_says or not state.calls_of(event.turn_id), "recorded too early"
            case ev.DecisionRequested(trigger=ClientMessages()):
                assert not state.calls_of(event.turn_id), "asked too early"
            case _:
                pass
        state = apply(state, event)


def a_parked_turn_waits_for_somebody(world: World, step: Step) -> None:
    """One that waits for nothing any more is over; none of its decisions is out (section 4)."""
    state = world.state
    for turn in state.control.turns:
        if not turn.parked:
            continue
        asks_client = any(call.kind == "client" for call in state.calls_of(turn.id))
        assert asks_client or pausing(state, turn.tip), "a parked turn waits for nothing"
        assert not any(d.is_out for d in state.control.decisions if d.turn_id == turn.id)
        assert turn.tip is None or turn.tip in state.tree


def only_what_waits_is_left(world: World, step: Step) -> None:
    """A branch is left while its turn is paused or waits, never while it runs (section 4)."""
    for event in step.outcome.events:
        if isinstance(event.body, ev.TurnParked):
            turn = step.before.turn(event.turn_id)
            assert turn is not None
            assert status(step.before, turn) in {"paused", "waiting"}, "a running turn was left"


def a_cancel_ends_everything(world: World, step: Step) -> None:
    """After a cancel nothing is open and every tool call has a result (section 7)."""
    if not isinstance(step.command, cmd.CancelSession):
        return
    assert bool(step.outcome.events) == _anything_open(step.before)
    if not step.outcome.events:
        return
    control = world.state.control
    assert not control.turns
    assert not control.calls
    assert not control.decisions, "a decision is left after a cancel"
    assert not control.interrupts
    cancelled = set(step.outcome.receipt.ended)
    path = world.state.tree.path(world.head)
    results = {n.message.tool_call_id for n in path if isinstance(n.message, ToolMessage)}
    for node in path:
        if isinstance(node.message, AssistantMessage) and node.turn_id in cancelled:
            assert {call.id for call in node.message.tool_calls} <= results


def _anything_open(state: State) -> bool:
    return bool(state.control.turns or state.control.interrupts)


def the_model_is_sent_a_valid_transcript(world: World, step: Step) -> None:
    """A tool call is followed by its result, in order, and by nothing else (section 3)."""
    anchors = {call.anchor for call in world.state.control.calls if call.kind == "llm"}
    for anchor in anchors | {world.head}:
        is_valid(transcript(world.path(anchor)))


def is_valid(messages: Sequence[Message]) -> None:
    """Assert what every provider demands of the messages it is sent."""
    expected: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert expected, "a tool result that nobody asked for"
            assert message.tool_call_id == expected.pop(0), "tool results out of order"
            continue
        assert not expected, f"no result for {expected}"
        if isinstance(message, AssistantMessage):
            expected = [call.id for call in message.tool_calls]
    assert not expected, f"no result for {expected}"


def the_tree_only_grows(world: World, step: Step) -> None:
    """A message is recorded once, below one that is recorded (section 3)."""
    known = set[str]()
    for event in world.log:
        match event.body:
            case ev.MessageNew(message=message, parent_id=parent_id):
                assert message.id not in known
                assert parent_id is None or parent_id in known
                known.add(message.id)
            case ev.HeadMoved(message_id=message_id):
                assert message_id is None or message_id in known
            case _:
                continue
    assert world.head is None or world.head in known
    assert world.head is not None or not world.state.tree.path(world.head)


def the_receipt_tells_the_truth(world: World, step: Step) -> None:
    """A receipt says which turns ended, which interrupts were cleared, and what pauses."""
    receipt, events = step.outcome.receipt, step.outcome.events
    assert receipt.before == step.before.control
    assert receipt.after == world.state.control
    assert receipt.recorded == bool(events)
    assert set(receipt.cleared) <= {
        e.body.interrupt_id for e in events if isinstance(e.body, ev.SessionInterruptResumed)
    }
    assert bool(receipt.pausing) == is_paused(world.state)


Law = Callable[[World, Step], None]

LAWS: tuple[Law, ...] = (
    seq_has_no_gaps,
    folding_gives_the_state,
    turns_start_and_end_once,
    an_ended_turn_leaves_nothing_open,
    interrupts_end_once,
    calls_end_once,
    one_decision_is_out,
    nothing_goes_out_while_paused,
    a_paused_turn_ends_only_by_a_cancel,
    answers_go_out_first,
    somebody_has_the_next_move,
    joined_input_waits,
    a_parked_turn_waits_for_somebody,
    only_what_waits_is_left,
    a_cancel_ends_everything,
    the_model_is_sent_a_valid_transcript,
    the_tree_only_grows,
    the_receipt_tells_the_truth,
)


def judge(world: World, step: Step) -> None:
    """Hold a step against every law."""
    for law in LAWS:
        law(world, step)
