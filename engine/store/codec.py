"""JSON in and out: the log, snapshots, and what workers answer.

A stored payload is the event's body without its `type`, which has a column of its
own, and without fields that are `None`. Nulls *inside* a JSON value stay. A number
JSON cannot say (NaN, infinities) becomes null. Everything is text: `jsonb` columns
refuse what a string may hold.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, TypeAlias, cast, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import (
    ErrorDetails,
    PydanticSerializationError,
    from_json,
    to_jsonable_python,
)
from pydantic_core import to_json as json_bytes

from engine.core import events as log
from engine.core.errors import InvalidResponse
from engine.core.events import Body, Event
from engine.core.messages import Json, Message
from engine.core.state import Control
from engine.core.text import repair_json
from engine.core.worker import Action, DecisionResponse, GiveResult, Trigger

MAX_DEPTH = 128
"""Levels of nesting a stored payload may have. JSON parsers stop at 200 (pydantic's)
to 1024, so what is written can be read anywhere, and a snapshot, which wraps the same
values a few levels deeper, too."""

MAX_RESPONSE_DEPTH = 100
"""Levels a worker's response may have: below :data:`MAX_DEPTH`, as events wrap its values."""

_RecordedMessage: TypeAlias = Annotated[Message, Field(discriminator="role")]
_AskedAction: TypeAlias = Annotated[Action, Field(discriminator="type")]


@dataclass(slots=True, kw_only=True)
class _MessageNew:
    """`MessageNew` as read: told apart by role, which is twice as fast as by trying."""

    message: _RecordedMessage
    parent_id: str | None = None


@dataclass(slots=True, kw_only=True)
class _Response:
    """`DecisionResponse` as read: told apart by role and type, with no unknown key."""

    # Inherited by every dataclass below this one.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    messages: tuple[_RecordedMessage, ...] = ()
    state: Json = None
    agent: Json = None
    shared_state: Json = None
    actions: tuple[_AskedAction, ...] = ()


def type_of(body: type[Body]) -> str:
    """Return a body's name on the wire."""
    # A class with slots does not show its fields' defaults.
    return next(str(field.default) for field in fields(body) if field.name == "type")


_adapters: dict[type[Body], TypeAdapter[Body]] = {
    body: TypeAdapter(body) for body in get_args(Body)
}
_write = {body: adapter.serializer.to_json for body, adapter in _adapters.items()}
_read: dict[str, Callable[[str], Body]] = {
    type_of(body): adapter.validator.validate_json for body, adapter in _adapters.items()
}
_control = TypeAdapter(Control)
_response = TypeAdapter(_Response)
_messages: TypeAdapter[Message] = TypeAdapter(_RecordedMessage)
_triggers: TypeAdapter[Trigger] = TypeAdapter(Annotated[Trigger, Field(discriminator="type")])
_TYPE = {"type"}


def _required_nullable(body: type[Body]) -> tuple[str, ...]:
    """Return the fields that have no default and may be `None`: they cannot be left out."""
    return tuple(
        field.name
        for field in fields(body)
        if field.default is MISSING
        and field.default_factory is MISSING
        and (field.type is Any or type(None) in get_args(field.type))
    )


_MUST_SAY = {body: names for body in _adapters if (names := _required_nullable(body))}


def _read_message(payload: str) -> Body:
    read = _read_recorded(payload)
    return log.MessageNew(message=read.message, parent_id=read.parent_id)


_read_recorded: Callable[[str], _MessageNew] = TypeAdapter(_MessageNew).validator.validate_json
_read[type_of(log.MessageNew)] = _read_message

# ---------------------------------------------------------------- the log


def encode_body(body: Body) -> str:
    """Return a body's payload, as stored.

    Raises:
        ValueError: a value is not JSON, a string is not Unicode, or it is nested deeper
            than :data:`MAX_DEPTH`.
    """
    kind = type(body)
    # A field that has no default is written even when it is null; such a body is
    # rare and small, so the others beside it may be written too.
    keep_null = kind in _MUST_SAY and any(getattr(body, name) is None for name in _MUST_SAY[kind])
    text = _write[kind](body, exclude=_TYPE, exclude_none=not keep_null).decode()
    _check_depth(text, MAX_DEPTH)
    return text


def decode_body(type: str, payload: str) -> Body:
    """Return the body that was stored. Unknown fields of a payload are passed over.

    Raises:
        ValueError: the payload is none of this type, or nobody knows the type.
    """
    read = _read.get(type)
    if read is None:
        raise ValueError(f"no event has the type {type!r}")
    return read(payload)


def encode_control(control: Control) -> str:
    """Return a snapshot's text.

    Raises:
        ValueError: as :func:`encode_body`.
    """
    return _control.serializer.to_json(control).decode()


def decode_control(text: str) -> Control:
    """Return the `Control` of a snapshot.

    Raises:
        ValueError: the text is no snapshot.
    """
    return _control.validator.validate_json(text)


def to_json(event: Event) -> dict[str, Json]:
    """Return an event as clients and machines see it.

    `{session_id, seq, occurred_at, turn_id?, type, payload}`.

    Source: `protocol.md` section 2, the second paragraph.
    """
    wire: dict[str, Json] = {
        "session_id": event.session_id,
        "seq": event.seq,
        "occurred_at": rfc3339(event.occurred_at),
    }
    if event.turn_id is not None:
        wire["turn_id"] = event.turn_id
    wire["type"] = event.body.type
    wire["payload"] = from_json(encode_body(event.body))
    return wire


def message_json(message: Message) -> Json:
    """Return a message as events have it, without fields that are `None`."""
    return from_json(_messages.serializer.to_json(message, exclude_none=True))


def trigger_json(trigger: Trigger) -> Json:
    """Return a trigger as events have it, without fields that are `None`."""
    return from_json(_triggers.serializer.to_json(trigger, exclude_none=True))


def rfc3339(moment: datetime) -> str:
    """Return a moment in UTC, as in `2026-01-31T12:00:00.000001Z`."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


ABOVE_ALL = ""
"""Where a value is attached that was written before any message. No message has this id."""

_SUBJECT: dict[type[Body], str] = {
    body: next(name for name in ("interrupt_id", "call_id", "decision_id") if name in names)
    for body in _adapters
    if (names := {field.name for field in fields(body)})
    & {"interrupt_id", "call_id", "decision_id"}
}


def subject(event: Event) -> str | None:
    """Return the id an event is found by.

    Its interrupt's, call's or decision's, else its message's (of a value: the one it is
    attached to, or :data:`ABOVE_ALL`), else its turn's.
    """
    body = event.body
    name = _SUBJECT.get(type(body))
    if name is not None:
        return cast("str", getattr(body, name))
    match body:
        case log.MessageNew():
            return body.message.id
        case log.HeadMoved(message_id=str(message_id)):
            return message_id
        case log.StateUpdated() | log.SharedStateUpdated() | log.AgentUpdated():
            return body.anchor or ABOVE_ALL
        case _:
            return event.turn_id


# ---------------------------------------------------- a worker's response


def parse_response(value: object) -> DecisionResponse:
    """Return what a worker answered, checked against the protocol's shapes.

    `value` is a response, one action, or a list of actions; each a dict or one of
    the classes of `engine.core.worker`. Values inside are copied, and made JSON
    where Python offers more (a tuple, a date, a pydantic model). Unknown keys are
    refused. Whether the actions make sense together is not judged here.

    Raises:
        InvalidResponse: `field` is the path of the first fault, such as `actions[0].id`.

    Source: `protocol.md` section 5.
    """
    text = _json(_as_response(value))
    try:
        read = _response.validator.validate_json(text, strict=True)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise InvalidResponse(_path(fault["loc"]), _reason(fault)) from None
    for index, action in enumerate(read.actions):
        if isinstance(action, GiveResult) and not _is_tool_result(action.result):
            raise InvalidResponse(
                f"actions[{index}].result",
                "must be text, or an object whose `content` is a list of objects",
            )
    return DecisionResponse(
        messages=read.messages,
        state=read.state,
        agent=read.agent,
        shared_state=read.shared_state,
        actions=read.actions,
    )


def _as_response(value: object) -> object:
    match value:
        case DecisionResponse():
            return value
        case list() | tuple():
            return {"actions": cast("object", value)}
        case Mapping():
            one: object = cast("object", value)
            return {"actions": [one]} if "type" in value else one
        case _ if isinstance(value, get_args(Action)):
            return {"actions": [value]}
        case None:
            raise InvalidResponse(
                "response", "must be an object; return {} to write nothing, `proposed` to accept"
            )
        case _:
            raise InvalidResponse(
                "response", f"must be an object or a list of actions, not {_kind(value)}"
            )


def _kind(value: object) -> str:
    return "a class" if is_dataclass(value) and isinstance(value, type) else type(value).__name__


def _json(value: object) -> bytes:
    try:
        text = _unicode_json(value)
        _check_depth(text.decode(), MAX_RESPONSE_DEPTH)
    except (ValueError, RecursionError) as error:
        raise InvalidResponse("response", f"is not JSON: {error}") from error
    return text


def _unicode_json(value: object) -> bytes:
    try:
        return json_bytes(value, inf_nan_mode="null")
    except PydanticSerializationError:
        # Half a surrogate pair is the one fault that is repaired.
        plain = repair_json(to_jsonable_python(value))
        return json_bytes(plain, inf_nan_mode="null")


def _is_tool_result(result: Json) -> bool:
    match result:
        case str():
            return True
        case {"content": [*blocks]}:
            return all(isinstance(block, dict) for block in cast("Sequence[object]", blocks))
        case _:
            return False


def _path(location: tuple[str | int, ...]) -> str:
    """Write where a fault is, without the names pydantic gives to a union's members."""
    path = ""
    for index, step in enumerate(location):
        names_a_member = index == 2 and location[0] in {"messages", "actions"}  # noqa: PLR2004 - behind the list's index
        if names_a_member or step in {"str", "list[any]"}:
            continue
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path.removeprefix(".") or "response"


def _reason(fault: ErrorDetails) -> str:
    context = fault.get("ctx", {})
    match fault["type"]:
        case "unexpected_keyword_argument":
            return "is not a known key"
        case "missing":
            return "is required"
        case "union_tag_not_found":
            return f"needs {str(context['discriminator']).replace(chr(39), '`')}"
        case "union_tag_invalid":
            return f"{context['tag']!r} is not one of {context['expected_tags']}"
        case _:
            return fault["msg"][0].lower() + fault["msg"][1:]


# ----------------------------------------------------------------- depth

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def _check_depth(text: str, limit: int) -> None:
    # Counting brackets is nearly free, and only a text with many can be deep.
    if text.count("[") + text.count("{") <= limit:
        return
    depth = 0
    for character in _STRING.sub("", text):
        if character in "[{":
            depth += 1
            if depth > limit:
                raise ValueError(f"it is nested deeper than {limit} levels")
        elif character in "]}":
            depth -= 1
