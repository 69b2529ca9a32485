"""The laws of `protocol.md` that every step of every session keeps.

Each function takes a world and the step it just made and asserts one law; its docstring
names the sentence. Those of the log and the tree stand here, the others beside it, and
`LAWS` lists them all.
"""

from collections.abc import Callable, Sequence

from engine.core import events as ev
from engine.core.apply import apply
from engine.core.interrupts import is_paused
from engine.core.messages import AssistantMessage, Message, ToolMessage, transcript
from engine.store import codec
from tests.histories.judge import judge as judge_lives
from tests.properties import laws_approvals, laws_calls, laws_pauses, laws_queue, laws_values
from tests.properties.steps import Step
from tests.properties.world import World, through_the_codec


def seq_has_no_gaps(world: World, step: Step) -> None:
    """`seq` starts at 1 and rises by 1 (section 2)."""
    first = len(step.log) + 1
    assert [e.seq for e in step.outcome.events] == list(
        range(first, first + len(step.outcome.events))
    )
    assert world.state.control.seq == len(world.log)


def folding_gives_the_state(world: World, step: Step) -> None:
    """The fold of the log as stored is the state, in one part or in two (section 2)."""
    for event in step.outcome.events:
        world.shadow = apply(world.shadow, through_the_codec(event))
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
            case ev.TurnQueued() | ev.TurnDropped():
                assert turn_id not in started
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
    """A call is requested once, runs once an attempt, and ends once (section 2).

    An attempt whose clock starts anew was held for a person meanwhile.
    """
    requested, ended = set[str](), set[str]()
    attempts = set[tuple[str, int]]()
    holds, asked = dict[str, str](), set[str]()
    for event in world.log:
        match event.body:
            case ev.LlmCallRequested() | ev.ToolCallRequested() as body:
                assert body.call_id not in requested, "a call's id came twice"
                requested.add(body.call_id)
            case ev.CallStarted(call_id=call_id, attempt=attempt):
                assert call_id in requested - ended
                assert (call_id, attempt) not in attempts or call_id in asked
                attempts.add((call_id, attempt))
                asked.discard(call_id)
            case ev.SessionInterrupted(interrupt_id=interrupt_id, tool_call_id=str(call_id)):
                holds[interrupt_id] = call_id
            case ev.SessionInterruptResumed(interrupt_id=interrupt_id) if interrupt_id in holds:
                asked.add(holds[interrupt_id])
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
    """At most one decision is live, and each is answered or dropped once (sections 1 and 5).

    A worker that runs its own tool for a turn that was left goes on beside it.
    """
    assert sum(d.is_out for d in world.state.control.decisions if not world.runs_apart(d)) <= 1
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


def lives_walk_their_tables(_world: World, step: Step) -> None:
    """Turns, calls, interrupts and decisions go only where a row of `status.py` leads."""
    judge_lives(step.states, step.outcome.events)


Law = Callable[[World, Step], None]


LAWS: tuple[Law, ...] = (
    seq_has_no_gaps,
    folding_gives_the_state,
    turns_start_and_end_once,
    an_ended_turn_leaves_nothing_open,
    interrupts_end_once,
    calls_end_once,
    one_decision_is_out,
    the_model_is_sent_a_valid_transcript,
    the_tree_only_grows,
    the_receipt_tells_the_truth,
    lives_walk_their_tables,
    laws_pauses.nothing_goes_out_while_paused,
    laws_pauses.a_paused_turn_ends_only_by_a_cancel,
    laws_pauses.a_parked_turn_ends_abandoned_or_cancelled,
    laws_pauses.answers_go_out_first,
    laws_pauses.somebody_has_the_next_move,
    laws_pauses.joined_input_waits,
    laws_pauses.a_parked_turn_waits_for_somebody,
    laws_pauses.nothing_of_a_parked_turn_starts,
    laws_pauses.only_what_waits_is_left,
    laws_pauses.a_cancel_ends_everything,
    laws_pauses.a_turn_that_is_given_up_answers_its_calls,
    laws_queue.queued_turns_start_in_order_or_are_dropped,
    laws_queue.the_queue_moves_on,
    laws_queue.input_waits_behind_the_turn_that_runs,
    laws_queue.appending_never_branches,
    laws_queue.input_that_is_taken_is_kept,
    laws_queue.what_waits_is_recorded_or_dropped,
    laws_queue.joining_gives_up_client_calls,
    laws_queue.actions_are_asked_about_or_dropped,
    laws_queue.a_session_starts_once,
    laws_values.values_are_those_of_the_branch,
    laws_values.values_are_attached_to_the_head,
    laws_values.a_response_writes_what_it_says,
    laws_values.a_model_is_called_as_configured,
    laws_calls.a_call_is_ended_by_whose_it_is,
    laws_calls.the_model_is_told_of_calls_that_are_given_up,
    laws_calls.what_a_tool_came_to_is_told,
    laws_calls.recovery_leaves_what_others_run,
    laws_calls.recovery_repeats_only_what_may_be_repeated,
    laws_calls.work_has_the_time_that_was_said,
    laws_calls.attempts_are_as_many_as_allowed,
    laws_calls.a_worker_may_ask_for_another_attempt,
    laws_calls.time_wakes_for_the_next_thing,
    laws_calls.questions_are_about_open_calls,
    laws_calls.what_a_worker_left_open_has_its_time,
    laws_approvals.nothing_runs_without_leave,
    laws_approvals.the_log_says_what_was_approved,
    laws_approvals.a_reply_waits_for_its_approvals,
    laws_approvals.a_held_call_waits,
    laws_approvals.an_answer_starts_the_clock_anew,
)


def judge(world: World, step: Step) -> None:
    """Hold a step against every law."""
    for law in LAWS:
        law(world, step)
