"""Laws of values: what a worker wrote holds on its branch, and nowhere else."""

from typing import TypeAlias

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.messages import Json, members
from tests.properties.steps import Step
from tests.properties.world import World

Written: TypeAlias = dict[str, Json]
"""The worker's memory, the shared state and the config, by the type of their events."""


def _value(body: ev.StateUpdated | ev.SharedStateUpdated | ev.AgentUpdated) -> Json:
    return body.agent if isinstance(body, ev.AgentUpdated) else body.state


def in_force(log: list[ev.Event], head: str | None) -> Written:
    """Read the whole log to say what holds at a message: the slow way, for comparison.

    Of the messages on the way up, the lowest at which a value was written decides, and
    of several values written there the newest. What nobody wrote is `None`.
    """
    parents: dict[str | None, str | None] = {}
    written: dict[str | None, Written] = {}
    for event in log:
        match event.body:
            case ev.MessageNew(message=message, parent_id=parent_id):
                parents[message.id] = parent_id
            case ev.StateUpdated() | ev.SharedStateUpdated() | ev.AgentUpdated() as body:
                written.setdefault(body.anchor, {})[body.type] = _value(body)
            case _:
                continue
    found: Written = {}
    place = head
    while True:
        found = written.get(place, {}) | found
        if place is None:
            return found
        place = parents[place]


def values_are_those_of_the_branch(world: World, step: Step) -> None:
    """Reading a value gives the value as of the active branch, after every event (section 3)."""
    changing = (ev.MessageNew, ev.HeadMoved, ev.StateUpdated, ev.SharedStateUpdated)
    for state, (_, event) in zip(step.states[1:], step.walk(), strict=True):
        if not isinstance(event.body, (*changing, ev.AgentUpdated)):
            continue
        control = state.control
        expected = in_force(world.log[: event.seq], control.head)
        assert control.state == expected.get("state.updated"), "the worker's memory"
        assert control.shared_state == expected.get("shared_state.updated"), "the shared state"
        assert control.agent == expected.get("agent.updated"), "the config"


def values_are_attached_to_the_head(world: World, step: Step) -> None:
    """A value hangs on the message its turn's branch ended on when it was written (section 3)."""
    for state, event in step.walk():
        match event.body:
            case ev.StateUpdated() | ev.SharedStateUpdated() | ev.AgentUpdated() as body:
                assert body.anchor == state.end_of(event.turn_id), f"{body.type}: wrong place"
            case _:
                continue


def a_response_writes_what_it_says(world: World, step: Step) -> None:
    """A value replaces, `{}` clears, `None` keeps; nothing else writes (section 5)."""
    memory = [e.body.state for e in step.outcome.events if isinstance(e.body, ev.StateUpdated)]
    shared = [
        e.body.state for e in step.outcome.events if isinstance(e.body, ev.SharedStateUpdated)
    ]
    if not isinstance(step.command, cmd.AnswerDecision) or not _was_applied(step, step.command):
        assert not memory
        assert not shared
        return
    response = step.command.response
    assert memory == _as_written(response.state)
    assert shared == _as_written(response.shared_state)


def _as_written(said: Json) -> list[Json]:
    if said is None:
        return []
    return [None] if isinstance(said, dict) and not said else [said]


def _was_applied(step: Step, command: cmd.AnswerDecision) -> bool:
    return any(
        isinstance(e.body, ev.DecisionCompleted) and e.body.decision_id == command.decision_id
        for e in step.outcome.events
    )


def a_model_is_called_as_configured(world: World, step: Step) -> None:
    """What a call does not name itself comes from the config in force (section 5)."""
    for state, event in step.walk():
        if isinstance(event.body, ev.LlmCallRequested):
            config = members(state.control.agent)
            assert event.body.anchor == state.control.head
            assert event.body.model in {config.get("model"), "named"}
            assert event.body.system == config.get("system")
