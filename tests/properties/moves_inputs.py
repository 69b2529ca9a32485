"""Moves of clients and machines beside views: messages, actions, the ends of calls."""

from collections.abc import Sequence

from engine.core import commands as cmd
from engine.core.messages import (
    AssistantMessage,
    ClientContext,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from engine.core.state import Decision
from engine.core.worker import ClientMessages, ToolExecute
from tests.properties.agents import CLIENT_TOOL
from tests.properties.moves import choose
from tests.properties.world import World

ACTIONS = ("save", "retry", "")
"""What a page's buttons are called; one has no name, and is refused."""


def append(
    world: World, pick: int, picks: Sequence[int], *, queue: bool, named: bool
) -> cmd.AppendMessages:
    """Return messages at the head: new ones, and some that came before.

    `named`: under a turn id of the client's own, new or known.
    """
    return cmd.AppendMessages(
        messages=tuple(_message(world, each) for each in (pick, *picks)),
        client=ClientContext(tools=(CLIENT_TOOL,)) if pick % 2 else ClientContext(),
        queue=queue,
        turn_id=turn_id(world, pick) if named else None,
    )


def say(world: World, *, queue: bool) -> cmd.AppendMessages:
    """Return one new message at the head."""
    new = UserMessage(id=world.new_id("user"), content="and this")
    return cmd.AppendMessages(messages=(new,), queue=queue)


def known_ids(world: World) -> set[str]:
    """Return the messages that are recorded, or accepted to be."""
    return {*world.message_ids(), *(message.id for message in _waiting(world))}


def _message(world: World, pick: int) -> Message:
    known = [*_waiting(world), *world.path(world.head)]
    match pick % 8:
        case 0 if known:
            return known[-1 - pick % len(known)]
        case 1 if (call := choose(world.calls("client", "worker"), pick // 8)) is not None:
            message_id = world.new_id("shown")
            return ToolMessage(id=message_id, tool_call_id=call.id, content="from the page")
        case 2:
            return AssistantMessage(id=world.new_id("shown"), content="said by the page")
        case 3:
            return SystemMessage(id=world.new_id("shown"), content="be brief")
        case _:
            return UserMessage(id=world.new_id("user"), content="hello")


def _waiting(world: World) -> list[Message]:
    """Return the messages that are accepted and not yet recorded."""
    control = world.state.control
    asked = [d.trigger for d in control.decisions if isinstance(d.trigger, ClientMessages)]
    return [message for each in (*control.queue, *asked) for message in each.messages]


def turn_id(world: World, pick: int) -> str:
    """Return the id of a turn: a new one, or one that there was."""
    known = world.turn_ids()
    if pick % 3 == 0 or not known:
        return world.new_id("turn")
    return known[-1 - pick % len(known)]


def action(pick: int) -> cmd.TakeAction:
    """Return a button of the page that was clicked."""
    return cmd.TakeAction(name=ACTIONS[pick % len(ACTIONS)], args={"n": pick})


def settle(world: World, pick: int, *, machine: bool, fails: bool) -> cmd.SettleCall | None:
    """Return the end of a call that runs outside, or so somebody says."""
    outside = world.calls("client", "worker")
    call = choose(outside if pick % 3 else world.state.control.calls, pick)
    if call is None:
        return None
    attempt = call.attempt or call.asked
    return cmd.SettleCall(
        call_id=call.id,
        result=None if fails else {"n": pick},
        error="it went wrong" if fails else None,
        attempt=choose((None, None, attempt, attempt + 1), pick // 3),
        caller="machine" if machine else "client",
    )


def settle_asked(decision: Decision) -> cmd.SettleCall:
    """Return the end of a call that a worker is told to run right now."""
    assert isinstance(decision.trigger, ToolExecute)
    call_id = decision.trigger.id
    return cmd.SettleCall(call_id=call_id, result="settled", caller="machine")
