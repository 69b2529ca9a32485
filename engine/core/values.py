"""Values of a branch: the worker's memory, the state clients see, the agent's config.

Each is attached to the message that was the head when it was written. What holds on a
branch is what was written last on its path: a branch that leaves above that message does
not see it.

Source: `protocol.md` section 3, the last paragraph; section 5, the response.
"""

from typing import cast

from engine.core import events as ev
from engine.core.draft import Draft
from engine.core.env import AgentSpec
from engine.core.errors import InvalidResponse
from engine.core.messages import Json, members
from engine.core.state import Control
from engine.core.tree import ValueKind
from engine.core.worker import DecisionResponse


def write(draft: Draft, turn_id: str | None, response: DecisionResponse) -> None:
    """Record the values of a response. `{}` clears: what was cleared reads as `None` again.

    A config that says what is in force already changes nothing.

    Raises:
        InvalidResponse: the config is no object, or a field of it has the wrong type.
    """
    control, anchor = draft.state.control, draft.state.end_of(turn_id)
    if response.state is not None:
        draft.emit(ev.StateUpdated(state=_cleared(response.state), anchor=anchor), turn_id)
    if response.agent is not None and response.agent != config(draft.env.agent, control):
        _check_config(response.agent)
        draft.emit(ev.AgentUpdated(agent=_cleared(response.agent), anchor=anchor), turn_id)
    if response.shared_state is not None:
        state = _cleared(response.shared_state)
        draft.emit(ev.SharedStateUpdated(state=state, anchor=anchor), turn_id)


def _cleared(value: Json) -> Json:
    return None if value == {} and isinstance(value, dict) else value


def at(draft: Draft, message_id: str | None) -> ev.Values | None:
    """Return what is in force at a message; `None` when that is what is in force now."""
    control, tree = draft.state.control, draft.state.tree
    here, there = tree.in_force(control.head), tree.in_force(message_id)
    if here == there:
        return None

    def value(kind: ValueKind, now: Json) -> Json:
        seq = there.get(kind)
        if seq == here.get(kind):
            return now
        return None if seq is None else draft.env.recorded(seq)

    return ev.Values(
        state=value("state", control.state),
        shared_state=value("shared_state", control.shared_state),
        agent=value("agent", control.agent),
    )


def config(spec: AgentSpec, control: Control) -> dict[str, Json]:
    """Return the agent's config in force: what was declared, with what a decision changed."""
    return {"model": spec.model, "system": spec.system, **members(control.agent)}


def written(body: ev.Body) -> Json:
    """Return the value that an event wrote."""
    match body:
        case ev.StateUpdated() | ev.SharedStateUpdated():
            return body.state
        case ev.AgentUpdated():
            return body.agent
        case _:
            return None


def _check_config(agent: Json) -> None:
    if not isinstance(agent, dict):
        raise InvalidResponse("agent", "a config is an object")
    said = cast("dict[str, Json]", agent)
    if not isinstance(said.get("model", ""), str):
        raise InvalidResponse("agent.model", "a model is named by a string")
    if not isinstance(said.get("system"), str | None):
        raise InvalidResponse("agent.system", "instructions are a string")
