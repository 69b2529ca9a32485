"""Laws of input at the head: what waits behind a turn, what joins one, what is never lost."""

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.interrupts import is_paused
from engine.core.messages import UserMessage
from engine.core.state import State
from engine.core.status import active_turn
from engine.core.worker import ClientAction, ClientMessages, SessionStart
from tests.properties.steps import Step
from tests.properties.world import World

GIVEN_UP = {"cancelled", "abandoned"}
"""How a turn ends that takes along what waits behind it."""


def queued_turns_start_in_order_or_are_dropped(world: World, step: Step) -> None:
    """Queued input starts in order of arrival, or is dropped with its turn, once (section 4).

    It starts when the turn it waits behind has completed. What waited behind the same turn
    then waits for the one that has started.
    """
    running, ended = set[str](), dict[str, str | None]()
    waiting, dropped = dict[str, str](), list[str]()
    for event in world.log:
        turn_id = event.turn_id or ""
        match event.body:
            case ev.TurnQueued(behind=behind):
                assert turn_id not in {*waiting, *running, *ended}, "an id is queued twice"
                assert behind in running, "queued behind a turn that is not open"
                waiting[turn_id] = behind
            case ev.TurnStarted():
                running.add(turn_id)
                if turn_id in waiting:
                    waiting = _started(turn_id, waiting, running, ended)
            case ev.TurnDropped():
                dropped.append(waiting.pop(turn_id))
            case ev.TurnCompleted(error=error):
                running.remove(turn_id)
                ended[turn_id] = error.code if error is not None else None
            case _:
                continue
    assert {ended.get(behind) for behind in dropped} <= GIVEN_UP, "dropped without a reason"
    assert not {ended.get(behind) for behind in waiting.values()} & GIVEN_UP, "left behind"
    assert [(q.id, q.behind) for q in world.state.control.queue] == list(waiting.items())


def _started(
    turn_id: str, waiting: dict[str, str], running: set[str], ended: dict[str, str | None]
) -> dict[str, str]:
    """Return what still waits once a queued turn has started, and behind whom."""
    behind = waiting[turn_id]
    assert behind in ended, "it started before the turn it waited behind had ended"
    assert ended[behind] not in GIVEN_UP, "it started behind a turn that was given up"
    arrived = list(waiting)
    for earlier in arrived[: arrived.index(turn_id)]:
        assert waiting[earlier] in running, f"{earlier} came first"
    return {
        each: turn_id if its == behind else its for each, its in waiting.items() if each != turn_id
    }


def the_queue_moves_on(world: World, step: Step) -> None:
    """When nothing runs and nothing pauses, only what waits behind a parked turn waits."""
    state = world.state
    if active_turn(state) is None and not is_paused(state):
        assert all(state.is_parked(queued.behind) for queued in state.control.queue)


def input_waits_behind_the_turn_that_runs(world: World, step: Step) -> None:
    """Only input that may wait does, and only while a turn runs and no person is asked."""
    for state, event in step.walk():
        if isinstance(event.body, ev.TurnQueued):
            assert isinstance(step.command, cmd.AppendMessages)
            assert step.command.queue
            turn = active_turn(state)
            assert turn is not None
            assert turn.id == event.body.behind
            assert not is_paused(state)
            assert step.outcome.receipt.queued == any(
                queued.id == event.turn_id for queued in world.state.control.queue
            )


def appending_never_branches(world: World, step: Step) -> None:
    """Messages at the head go below it, and the head moves nowhere else (section 3)."""
    if not isinstance(step.command, cmd.AppendMessages):
        return
    for state, event in step.walk():
        match event.body:
            case ev.HeadMoved() | ev.TurnParked():
                raise AssertionError(event.body.type)
            case ev.MessageNew(message=UserMessage(), parent_id=parent_id):
                assert parent_id == state.control.head
            case _:
                continue


def _accepted(state: State) -> dict[str, str]:
    """Return input that waits to be recorded: which decision or queued turn has it."""
    waiting = {
        message.id: decision.id
        for decision in state.control.decisions
        if isinstance(decision.trigger, ClientMessages)
        for message in decision.trigger.messages
    }
    return waiting | {m.id: queued.id for queued in state.control.queue for m in queued.messages}


def input_that_is_taken_is_kept(world: World, step: Step) -> None:
    """What a client was told is taken is recorded, or waits to be (section 4)."""
    command = step.command
    if not isinstance(command, cmd.AppendMessages | cmd.ClientView):
        return
    if any(notice.code == "session_interrupted" for notice in step.outcome.receipt.notices):
        return  # the client was told that it is left out
    if command.turn_id is not None and any(e.turn_id == command.turn_id for e in step.log):
        return
    kept = set(_accepted(world.state)) | set(world.message_ids())
    assert {m.id for m in command.messages if isinstance(m, UserMessage)} <= kept


def what_waits_is_recorded_or_dropped(world: World, step: Step) -> None:
    """Input that waits leaves the line recorded, or as its worker said, or with its turn.

    A queued turn that is dropped takes its input along. Input that joined a turn which
    ends is recorded below it all the same (section 4).
    """
    events = [e.body for e in step.outcome.events]
    answered = {b.decision_id for b in events if isinstance(b, ev.DecisionCompleted)}
    ended = {b.decision_id for b in events if isinstance(b, ev.DecisionDropped)}
    ended |= {b.decision_id for b in events if isinstance(b, ev.DecisionErrored)}
    dropped = {e.turn_id for e in step.outcome.events if isinstance(e.body, ev.TurnDropped)}
    for state, after in zip(step.states, step.states[1:], strict=False):
        gone = {k: v for k, v in _accepted(state).items() if k not in _accepted(after)}
        for message_id, whose in gone.items():
            if message_id in world.state.tree or message_id in _accepted(world.state):
                continue
            assert whose in answered | ended | dropped, f"{message_id} is lost"
            assert whose not in world.joined & ended, f"{message_id}, which joined, is lost"


def joining_gives_up_client_calls(world: World, step: Step) -> None:
    """Client calls that joining input leaves unanswered are voided (section 4)."""
    for state, event in step.walk():
        match event.body:
            case (
                ev.DecisionWaiting(decision_id=decision_id, trigger=ClientMessages())
                | ev.DecisionRequested(decision_id=decision_id, trigger=ClientMessages())
            ) if decision_id in world.joined and state.decision(decision_id) is None:
                calls = state.calls_of(event.turn_id)
                assert all(call.kind != "client" for call in calls), "a client call is left"
            case _:
                continue


def actions_are_asked_about_or_dropped(world: World, step: Step) -> None:
    """An action of a client waits its turn; only what is given up takes it along (section 5)."""
    command = step.command
    if isinstance(command, cmd.TakeAction) and world.spec.wants_trigger("client.action"):
        said = ClientAction(name=command.name, args=command.args)
        assert any(d.trigger == said for d in world.state.control.decisions), "nobody was asked"
    given_up = {
        e.turn_id
        for e in step.outcome.events
        if isinstance(e.body, ev.TurnCompleted)
        and e.body.error is not None
        and e.body.error.code in GIVEN_UP
    }
    for state, event in step.walk():
        if isinstance(event.body, ev.DecisionDropped):
            decision = state.decision(event.body.decision_id)
            assert decision is not None
            is_new = not (decision.is_out or decision.held)
            if isinstance(decision.trigger, ClientAction) and is_new:
                cancelled = isinstance(command, cmd.CancelSession)
                assert cancelled or decision.turn_id in given_up, "an action is lost"


def a_session_starts_once(world: World, step: Step) -> None:
    """A worker that wants it is asked about a session's start, once (section 5)."""
    if not world.spec.wants_trigger("session.start"):
        return
    asked = {
        e.body.decision_id
        for e in world.log
        if isinstance(e.body, ev.DecisionWaiting | ev.DecisionRequested)
        and isinstance(e.body.trigger, SessionStart)
    }
    assert len(asked) == bool(world.log)
