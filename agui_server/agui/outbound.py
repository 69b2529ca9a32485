"""Engine values to AG-UI values: messages, interrupts, usage, errors. Pure.

Source: `agui.md` sections 2 and 3; `agui-1.0.md` C and J.
"""

from collections.abc import Iterable
from typing import Any, cast

import orjson
from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    DeveloperMessage,
    FunctionCall,
    Interrupt,
    Message,
    ReasoningMessage,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

from engine.core import messages as own
from engine.core.interrupts import options
from engine.core.state import OpenInterrupt

TURN_ID = "agui-server/turnId"
SESSION_ID = "agui-server/sessionId"

_INTERRUPT_FIELDS = {"message", "toolCallId", "responseSchema", "expiresAt", "metadata"}

PUBLIC_ERRORS = {
    "provider_error": "The model provider failed. Send the message again to retry.",
    "rate_limited": "The model provider is busy. Wait a moment, then send the message again.",
    "refused": "The model refused this request.",
    "deadline_exceeded": "The model took too long. Send the message again to retry.",
    "worker_error": "The agent failed while deciding what to do next.",
    "cancelled": "The run was cancelled.",
    "abandoned": "The run was left and its question given up.",
    "budget_exceeded": "The run reached its budget.",
}
"""What people read about an error. Nothing of a provider's or a worker's own words."""


def messages(path: Iterable[own.Message]) -> list[Message]:
    """Return a path as a snapshot shows it: results behind the messages that asked."""
    return [message(each) for each in own.in_call_order(path)]


def message(recorded: own.Message) -> Message:
    """Return one message in AG-UI's shape."""
    match recorded:
        case own.UserMessage():
            return UserMessage(
                id=recorded.id,
                content=cast("Any", recorded.content),
                **_optional(name=recorded.name, metadata=recorded.metadata),
            )
        case own.AssistantMessage():
            return AssistantMessage(
                id=recorded.id,
                **_optional(
                    content=recorded.content,
                    name=recorded.name,
                    encrypted_value=recorded.encrypted_value,
                    metadata=recorded.metadata,
                    tool_calls=[_tool_call(call) for call in recorded.tool_calls] or None,
                ),
            )
        case own.ToolMessage():
            return ToolMessage(
                id=recorded.id,
                tool_call_id=recorded.tool_call_id,
                content=cast("Any", tool_content(recorded)),
                **_optional(error=recorded.error, metadata=recorded.metadata),
            )
        case own.SystemMessage():
            kind = SystemMessage if recorded.role == "system" else DeveloperMessage
            return kind(id=recorded.id, content=recorded.content, **_optional(name=recorded.name))
        case own.ReasoningMessage():
            return ReasoningMessage(
                id=recorded.id,
                content=recorded.content,
                **_optional(encrypted_value=recorded.encrypted_value),
            )
        case own.ActivityMessage():
            return ActivityMessage(
                id=recorded.id,
                activity_type=recorded.activity_type,
                content=recorded.content,
            )


def tool_content(result: own.ToolMessage) -> str | list[own.Json]:
    """Return a result's content; an error is `{"error": …}`, for the event has no such field."""
    if result.error is None:
        return result.content
    return orjson.dumps({"error": result.error}).decode()


def _tool_call(call: own.ToolCall) -> ToolCall:
    return ToolCall(
        id=call.id,
        type="function",
        function=FunctionCall(name=call.name, arguments=call.arguments),
        **_optional(encrypted_value=call.encrypted_value, metadata=call.metadata),
    )


def interrupt(open_interrupt: OpenInterrupt) -> Interrupt:
    """Return an open interrupt in AG-UI's shape.

    Keys of the payload that AG-UI does not know go under `metadata`; a choice without a
    schema gets one that lists its values.
    """
    payload: Any = open_interrupt.payload
    known = own.members(payload)
    metadata = dict(_a(dict, known.get("metadata")) or {})
    metadata |= {key: value for key, value in known.items() if key not in _INTERRUPT_FIELDS}
    if payload is not None and not isinstance(payload, dict):
        metadata["payload"] = payload
    if open_interrupt.turn_id is not None:
        metadata[TURN_ID] = open_interrupt.turn_id
    schema = _a(dict, known.get("responseSchema"))
    offered = options(payload)
    if schema is None and offered is not None:
        schema = {"enum": [option["value"] for option in offered]}
    return Interrupt(
        id=open_interrupt.id,
        reason=open_interrupt.reason,
        **_optional(
            message=_a(str, known.get("message")),
            tool_call_id=_a(str, known.get("toolCallId")) or open_interrupt.tool_call_id,
            response_schema=schema,
            expires_at=_a(str, known.get("expiresAt")),
            metadata=metadata or None,
        ),
    )


def usage(counts: Iterable[own.Usage]) -> list[TokenUsage] | None:
    """Return token counts in AG-UI's shape, or `None` when nobody counted."""
    entries = [
        TokenUsage(
            **_optional(
                provider=count.provider,
                model=count.model,
                input_tokens=count.input_tokens,
                output_tokens=count.output_tokens,
                total_tokens=_total(count),
                reasoning_tokens=count.reasoning_tokens,
                cached_input_tokens=count.cached_input_tokens,
            )
        )
        for count in counts
    ]
    return entries or None


def _total(count: own.Usage) -> int | None:
    if count.input_tokens is None or count.output_tokens is None:
        return None
    return count.input_tokens + count.output_tokens


def _a(kind: type[Any], value: Any) -> Any:
    """Return a value of a kind, or `None`: payloads are somebody's own JSON."""
    return value if isinstance(value, kind) else None


def _optional(**fields: Any) -> dict[str, Any]:
    """Leave out what has no value: AG-UI forbids null for an optional field."""
    return {name: value for name, value in fields.items() if value is not None}
