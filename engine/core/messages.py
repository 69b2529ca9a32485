"""Messages of a conversation, and the transcript a model is sent.

Shapes follow AG-UI's message roles in snake_case. A message never changes once
it is recorded; the tree they form is in `tree.py`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

Json: TypeAlias = Any
"""Any JSON value. Treated as immutable everywhere: build a new one instead."""


def members(value: Json) -> dict[str, Json]:
    """Return the members of a JSON object, and none of anything else."""
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}


NO_RESULT = "no result"
"""What a model reads for a tool call that has no recorded result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's request to call a tool. `arguments` is the raw text it wrote."""

    id: str
    name: str
    arguments: str = "{}"
    encrypted_value: str | None = None
    metadata: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What a person said: text, or a list of AG-UI content parts."""

    id: str
    content: str | list[Json]
    role: Literal["user"] = "user"
    name: str | None = None
    metadata: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """A model's reply: text, tool calls, or both."""

    id: str
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    role: Literal["assistant"] = "assistant"
    name: str | None = None
    encrypted_value: str | None = None
    metadata: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The end of a tool call. A failure has `error` set; `content` is what the model reads."""

    id: str
    tool_call_id: str
    content: str | list[Json]
    role: Literal["tool"] = "tool"
    error: str | None = None
    encrypted_value: str | None = None
    metadata: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMessage:
    """Instructions in the conversation."""

    id: str
    content: str
    role: Literal["system", "developer"] = "system"
    name: str | None = None
    encrypted_value: str | None = None
    metadata: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningMessage:
    """A model's thinking, recorded under the id it was streamed with."""

    id: str
    content: str
    role: Literal["reasoning"] = "reasoning"
    encrypted_value: str | None = None
    metadata: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityMessage:
    """A structured note for the page. A model never sees it."""

    id: str
    activity_type: str
    content: dict[str, Json]
    role: Literal["activity"] = "activity"
    metadata: dict[str, Json] | None = None


Message: TypeAlias = (
    UserMessage
    | AssistantMessage
    | ToolMessage
    | SystemMessage
    | ReasoningMessage
    | ActivityMessage
)
Role: TypeAlias = Literal[
    "user", "assistant", "tool", "system", "developer", "reasoning", "activity"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens one model call used; a count nobody reported is `None`, never 0."""

    model: str | None = None
    provider: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientContext:
    """What a frontend sends beside its messages; it holds for the whole turn.

    `tools` are its own (`{name, description, parameters}`), `context` entries
    are `{description, value}`.
    """

    tools: tuple[Json, ...] = ()
    context: tuple[Json, ...] = ()
    state: Json = None
    forwarded_props: Json = None
    instructions: tuple[SystemMessage, ...] = field(default=())
    """System messages of this input that are not recorded: for its model calls only."""


def in_call_order(path: Iterable[Message]) -> list[Message]:
    """Put each tool result directly behind the message that asked, in the order of the calls.

    A result nobody asked for is left out: no provider accepts one.

    Source: `protocol.md` section 3, the paragraph behind rule 6.
    """
    return list(_ordered(path, missing=lambda _call: None))


def transcript(path: Iterable[Message]) -> list[Message]:
    """Return what a model is sent: `in_call_order`, without activity, and always valid.

    A tool call without a recorded result is followed by :data:`NO_RESULT`.
    """
    ordered = _ordered(path, missing=_no_result)
    return [message for message in ordered if not isinstance(message, ActivityMessage)]


def _ordered(
    path: Iterable[Message], missing: Callable[[ToolCall], ToolMessage | None]
) -> Iterator[Message]:
    messages = list(path)
    results = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
    for message in messages:
        if isinstance(message, ToolMessage):
            continue
        yield message
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                result = results.get(call.id) or missing(call)
                if result is not None:
                    yield result


def _no_result(call: ToolCall) -> ToolMessage:
    return ToolMessage(id=f"{call.id}:no-result", tool_call_id=call.id, content=NO_RESULT)
