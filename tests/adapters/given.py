"""Requests to the scripted model, and its replies, in a line each."""

from collections.abc import Sequence
from typing import Any

from engine.adapters.scripted import ScriptedModel
from engine.core.messages import (
    AssistantMessage,
    Json,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from engine.core.ports import (
    Finish,
    ModelDelta,
    ModelRequest,
    TextDelta,
    ToolCallDelta,
)


def request_of(
    *messages: Message | str,
    attempt: int = 1,
    tools: Sequence[Json] = (),
    context: Sequence[Json] = (),
    system: str | None = None,
) -> ModelRequest:
    """Return a request; a bare string is a user message."""
    return ModelRequest(
        session_id="s",
        call_id="c",
        attempt=attempt,
        model=None,
        system=system,
        messages=[
            UserMessage(id=f"m{index}", content=message) if isinstance(message, str) else message
            for index, message in enumerate(messages)
        ],
        tools=tools,
        context=context,
    )


async def stream(request: ModelRequest) -> list[ModelDelta]:
    """Return the whole reply, without its end."""
    deltas = [delta async for delta in ScriptedModel().stream(request)]
    assert isinstance(deltas.pop(), Finish)
    return deltas


async def reply(*messages: Message | str, **more: Any) -> str:
    """Return the text of a reply that is only text."""
    deltas = await stream(request_of(*messages, **more))
    texts = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert len(texts) == len(deltas)
    return "".join(texts)


async def calls(*messages: Message | str, **more: Any) -> list[tuple[str, str]]:
    """Return the names and arguments of a reply that is only tool calls."""
    found: list[tuple[str, str]] = []
    for delta in await stream(request_of(*messages, **more)):
        assert isinstance(delta, ToolCallDelta)
        if delta.name is not None:
            assert delta.index == len(found)
            found.append((delta.name, ""))
        name, arguments = found[delta.index]
        found[delta.index] = (name, arguments + delta.arguments)
    return found


def asked(*names: str) -> AssistantMessage:
    """Return a reply that asked for these tools; each call's id is the tool's name."""
    return AssistantMessage(
        id="-".join(names), tool_calls=tuple(ToolCall(id=name, name=name) for name in names)
    )


def ended(name: str, content: str | list[Json] = "ok", error: str | None = None) -> ToolMessage:
    """Return the end of a call."""
    return ToolMessage(id=f"{name}-end", tool_call_id=name, content=content, error=error)
