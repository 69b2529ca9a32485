"""What a random command is made from, and what a random session is about."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from engine.core.env import AgentSpec
from engine.core.messages import AssistantMessage, ToolCall
from engine.core.state import Call, State
from engine.core.tree import Node
from engine.core.worker import DecisionRequest
from tests.core.given import agent, tool

WANTS: tuple[frozenset[str] | None, ...] = (
    frozenset(),
    None,
    frozenset({"tool.execute"}),
    frozenset({"client.messages", "interrupt.resumed"}),
    frozenset({"tool.finished", "llm.finished"}),
    frozenset({"client.messages", "client.action", "tool.execute", "tool.finished"}),
)
"""What the worker of an agent decides on: from nothing to everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a command is made from: chance, the session, and the workers that are out."""

    chance: Random
    numbers: Iterator[int]
    now: datetime
    state: State
    questions: Sequence[DecisionRequest]

    def new_id(self, prefix: str) -> str:
        """Return an id that nobody has."""
        return f"{prefix}-{next(self.numbers)}"

    def happens(self, share: float) -> bool:
        """Whether something happens that happens this often."""
        return self.chance.random() < share

    def nodes(self) -> list[Node]:
        """Return everything that is recorded."""
        return list(self.state.tree.nodes())

    def asked_calls(self) -> list[ToolCall]:
        """Return every tool call that a message asked for."""
        messages = [node.message for node in self.nodes()]
        replies = [each for each in messages if isinstance(each, AssistantMessage)]
        return [*(call for reply in replies for call in reply.tool_calls)]

    def calls(self, *, of_models: bool) -> list[Call]:
        """Return the open calls of models, or those of tools."""
        return [call for call in self.state.control.calls if (call.kind == "llm") == of_models]


def some_agent(chance: Random) -> AgentSpec:
    """Return an agent with a tool of each kind and a worker that wants some triggers."""
    ask = replace(tool("ask"), approve=True)
    own = tool("own", handler="worker")
    return agent(tool("send"), own, ask, wants=chance.choice(WANTS))


def some_time(chance: Random) -> timedelta:
    """Return how long it takes until the next command: mostly no time at all."""
    if chance.random() < 0.9:
        return timedelta()
    return timedelta(minutes=chance.choice((1, 30, 200)))
