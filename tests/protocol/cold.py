"""Conversations that are continued from a snapshot: what the tests of cold sessions share."""

from collections.abc import Sequence
from typing import Any

from engine import Agent, DecisionRequest, DecisionResponse
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.messages import Message, UserMessage
from engine.core.state import State
from engine.core.status import active_turn
from engine.core.worker import ClientMessages
from tests.runtime.given import Talk


def person(message_id: str, text: str = "/say ok") -> UserMessage:
    """What a person says to the scripted model."""
    return UserMessage(id=message_id, content=text)


def is_idle(state: State) -> bool:
    """Whether no turn runs on the active branch."""
    return active_turn(state) is None


async def do(talk: Talk, command: cmd.Command) -> Sequence[Message]:
    """Run a command, and what it starts, to the end; return the active path."""
    await talk.do(command)
    await talk.until(is_idle)
    return await talk.path()


async def tree(talk: Talk) -> dict[str, Message]:
    """Return every message that is recorded, on whatever branch."""
    return {
        event.body.message.id: event.body.message
        for event in await talk.log()
        if isinstance(event.body, ev.MessageNew)
    }


async def kinds(talk: Talk, *bodies: type[ev.Body]) -> list[tuple[str, str | None]]:
    """Return what was recorded of some types: the type, and its turn."""
    return [(e.body.type, e.turn_id) for e in await talk.log() if isinstance(e.body, bodies)]


async def is_cold(talk: Talk) -> bool:
    """Whether only a part of the conversation is in memory."""
    return not (await talk.state()).tree.complete


class Notebook:
    """A worker that writes what it is told to, and notes what it was asked with."""

    def __init__(self, **writes: dict[str, Any]) -> None:
        self.writes = writes
        self.seen: dict[str, DecisionRequest] = {}

    def agent(self) -> Agent:
        """Declare the agent anew, as every process does."""
        agent = Agent("a", model="m")

        @agent.decide(on="client.messages")
        def decide(request: DecisionRequest) -> DecisionResponse:
            assert isinstance(request.trigger, ClientMessages)
            said = request.trigger.messages[-1].id
            self.seen[said] = request
            proposed = request.proposed
            return DecisionResponse(
                messages=proposed.messages, actions=proposed.actions, **self.writes.get(said, {})
            )

        return agent
