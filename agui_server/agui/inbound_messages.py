"""Messages of an input: the whole history each time, of which little is new.

Reading goes in two steps. :func:`scan` looks at every message, but only for its role
and id. :func:`read_messages` builds the engine's messages, and for those that are
recorded already it takes the recorded ones: an id wins over content (`protocol.md`
3.6), so the content of a known message is never looked at.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from agui_server.agui.inbound_parts import read_content
from agui_server.agui.wire import BadRequest, Fields, Notices, Object, refuse
from engine.core.messages import (
    ActivityMessage,
    AssistantMessage,
    Json,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

RawMessage: TypeAlias = tuple[int, Object]
"""Where a message stood, and the message as it was sent: its role known, its id a string.
A plain tuple, for there are hundreds and most are never looked at again."""


def scan(values: Sequence[Json], notices: Notices) -> tuple[RawMessage, ...]:
    """Return the messages whose roles are known.

    A message of another role is left out with a notice (P11), and so is one that
    repeats an earlier one to the letter.

    Raises:
        BadRequest: 422: no object, no role, no id, or an id that two messages share.
    """
    scanned: dict[str, RawMessage] = {}
    for index, value in enumerate(values):
        if type(value) is not dict:
            refuse(f"messages[{index}]", "an object", value)
        raw = cast("Object", value)
        role, message_id = raw.get("role"), raw.get("id")
        if type(role) is not str:
            refuse(f"messages[{index}].role", "a string", role)
        if role not in _READERS:
            notices.ignored("unknown_role", f"messages[{index}]", role)
            continue
        if type(message_id) is not str:
            refuse(f"messages[{index}].id", "a string", message_id)
        if message_id in scanned:
            _require_same(scanned[message_id], raw, index)
            notices.ignored("repeated_message", f"messages[{index}]", message_id)
            continue
        scanned[message_id] = (index, raw)
    return tuple(scanned.values())


def _require_same(first: RawMessage, raw: Object, index: int) -> None:
    position, sent = first
    if sent != raw:
        detail = (
            f"messages[{index}].id: messages[{position}] has this id and is another "
            "message; ids are unique in a conversation"
        )
        raise BadRequest(422, "invalid_input", detail)


def read_messages(
    scanned: Sequence[RawMessage],
    recorded: Callable[[str], Message | None],
    notices: Notices,
) -> tuple[Message, ...]:
    """Build the messages of a view, in order.

    `recorded` gives the recorded message of an id. That one is taken, unread, when the
    view shows the same tool calls on it; a client may have moved calls to another
    message, and the engine's matching looks at that.

    Raises:
        BadRequest: 422 `invalid_input`, naming the field that is malformed.
    """
    messages: list[Message] = []
    for position, raw in scanned:
        known = recorded(raw["id"])
        if known is not None and _shows_calls_of(known, raw):
            messages.append(known)
            continue
        fields = Fields(raw, f"messages[{position}]", notices)
        read, members = _READERS[raw["role"]]
        fields.ignore_others(members)
        fields.optional_text("subagentRunId")  # the engine's own record tells whose it is
        messages.append(read(fields))
    return tuple(messages)


def _shows_calls_of(known: Message, raw: Object) -> bool:
    if not isinstance(known, AssistantMessage):
        return True
    shown = raw.get("toolCalls")
    if not shown or type(shown) is not list:
        return shown is None and not known.tool_calls
    calls = cast("list[Json]", shown)
    return len(calls) == len(known.tool_calls) and all(
        type(call) is dict and cast("Object", call).get("id") == recorded.id
        for call, recorded in zip(calls, known.tool_calls, strict=True)
    )


def _user(fields: Fields) -> UserMessage:
    fields.optional_text("encryptedValue")  # nothing of a person's is encrypted by a provider
    return UserMessage(
        id=fields.identifier("id"),
        content=read_content(fields),
        name=fields.optional_text("name"),
        metadata=fields.optional_object("metadata"),
    )


def _assistant(fields: Fields) -> AssistantMessage:
    path = fields.at("toolCalls")
    calls = enumerate(fields.optional_list("toolCalls"))
    return AssistantMessage(
        id=fields.identifier("id"),
        content=fields.optional_text("content"),
        tool_calls=tuple(_call(Fields(call, f"{path}[{i}]", fields.notices)) for i, call in calls),
        name=fields.optional_text("name"),
        encrypted_value=fields.optional_text("encryptedValue"),
        metadata=fields.optional_object("metadata"),
    )


def _call(fields: Fields) -> ToolCall:
    fields.ignore_others(_CALL)
    kind = fields.raw.get("type", "function")
    if kind != "function":
        refuse(fields.at("type"), '"function"', kind)
    function = Fields(fields.raw.get("function"), fields.at("function"), fields.notices)
    function.ignore_others(_FUNCTION)
    return ToolCall(
        id=fields.identifier("id"),
        name=function.text("name"),
        arguments=function.text("arguments"),
        encrypted_value=fields.optional_text("encryptedValue"),
        metadata=fields.optional_object("metadata"),
    )


def _tool(fields: Fields) -> ToolMessage:
    return ToolMessage(
        id=fields.identifier("id"),
        tool_call_id=fields.identifier("toolCallId"),
        content=read_content(fields),
        error=fields.optional_text("error"),
        encrypted_value=fields.optional_text("encryptedValue"),
        metadata=fields.optional_object("metadata"),
    )


def _system(fields: Fields) -> SystemMessage:
    return SystemMessage(
        id=fields.identifier("id"),
        content=fields.text("content"),
        role="system" if fields.raw["role"] == "system" else "developer",
        name=fields.optional_text("name"),
        encrypted_value=fields.optional_text("encryptedValue"),
        metadata=fields.optional_object("metadata"),
    )


def _reasoning(fields: Fields) -> ReasoningMessage:
    return ReasoningMessage(
        id=fields.identifier("id"),
        content=fields.text("content"),
        encrypted_value=fields.optional_text("encryptedValue"),
        metadata=fields.optional_object("metadata"),
    )


def _activity(fields: Fields) -> ActivityMessage:
    return ActivityMessage(
        id=fields.identifier("id"),
        activity_type=fields.text("activityType"),
        content=fields.object("content"),
        metadata=fields.optional_object("metadata"),
    )


_COMMON = frozenset({"id", "role", "content", "metadata", "subagentRunId"})
_SPOKEN = _COMMON | {"name", "encryptedValue"}
_CALL = frozenset({"id", "type", "function", "encryptedValue", "metadata"})
_FUNCTION = frozenset({"name", "arguments"})

_READERS: dict[str, tuple[Callable[[Fields], Message], frozenset[str]]] = {
    "user": (_user, _SPOKEN),
    "assistant": (_assistant, _SPOKEN | {"toolCalls"}),
    "tool": (_tool, _COMMON | {"toolCallId", "error", "encryptedValue"}),
    "system": (_system, _SPOKEN),
    "developer": (_system, _SPOKEN),
    "reasoning": (_reasoning, _COMMON | {"encryptedValue"}),
    "activity": (_activity, _COMMON | {"activityType"}),
}
"""Who reads a role, and which members the protocol gives it."""
