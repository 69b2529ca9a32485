"""What the engine needs from outside, as Protocols: the model and the clock."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from engine.core.messages import Json, Message, Usage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of the model's thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A tool call begins (`name` set), or more of its arguments arrive.

    `index` tells the calls of one reply apart; they count from 0. The engine gives
    the call its id, so that ids are unique in a session whatever a provider does.
    """

    index: int
    arguments: str = ""
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The reply is whole. `truncated`: it hit a length limit."""

    usage: tuple[Usage, ...] = ()
    truncated: bool = False


ModelDelta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | Finish


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One attempt of a model call.

    `messages` is a valid transcript (every tool call is followed by its result).
    `tools` are `{name, description, parameters}`; `context` entries are
    `{description, value}`, for the model to see.
    """

    session_id: str
    call_id: str
    attempt: int
    model: str | None
    system: str | None
    messages: Sequence[Message]
    tools: Sequence[Json]
    context: Sequence[Json]


class Model(Protocol):
    """A language model that streams."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """Stream one reply; end with :class:`Finish`.

        The engine closes the iterator (`aclose`, if it has that) when the call is voided:
        an implementation must close its connection then.

        Raises:
            ModelError: the provider failed; the engine decides whether to retry.
        """
        ...


class Clock(Protocol):
    """Time, as an argument: a test brings its own."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        ...

    async def sleep_until(self, when: datetime) -> None:
        """Return at `when`, or at once when it has passed."""
        ...
