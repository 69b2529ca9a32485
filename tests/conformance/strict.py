"""Our own reading of a run's stream, stricter than any client's.

`problems` says what is wrong with a body, in sentences; an empty list is a good stream.
It checks what the official client strips silently and `ag-ui-validate` does not know:
fields outside the schema, nulls, ids and metadata of both ends, what an old client may get.

Source: `agui.md` sections 2, 4 and 5; `agui-1.0.md` D: P1, P6, P8, P16, P18, P20, P22, P36, P46.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

from ag_ui.core import Event
from pydantic import BaseModel, TypeAdapter, ValidationError

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)

TERMINAL = ("RUN_FINISHED", "RUN_ERROR")
OUR_METADATA = {"agui-server/turnId", "agui-server/sessionId"}
DELTAS = {"TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"}
OPENS = {
    "TEXT_MESSAGE_START": "messageId",
    "TOOL_CALL_START": "toolCallId",
    "REASONING_START": "messageId",
    "REASONING_MESSAGE_START": "messageId",
}
CLOSES = {opening.replace("_START", "_END"): key for opening, key in OPENS.items()}
MAX_FRAME = 1024 * 1024
"""Bytes of one frame. Snapshots may be larger."""


def problems(body: bytes, request: dict[str, Any], *, complete: bool = True) -> list[str]:
    """Return what is wrong with a run's stream.

    `request` is the RunAgentInput that it answers. `complete`: the body was read to its end.
    """
    found = list(_framing(body, complete=complete))
    events = [json.loads(data) for data in data_of(body)]
    for index, event in enumerate(events):
        found += [f"event {index}, {event.get('type')}: {fault}" for fault in _schema(event)]
    found += _ends(events, request, complete=complete)
    if "protocolVersion" not in request:
        found += _fit_for_old_clients(events)
    return found


def data_of(body: bytes) -> list[bytes]:
    """Return the data of each whole frame. Comments have none."""
    lines = (line for frame in body.split(b"\n\n")[:-1] for line in frame.split(b"\n"))
    return [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]


def _framing(body: bytes, *, complete: bool) -> Iterator[str]:
    if b"\r" in body:
        yield "a carriage return in the stream"
    *frames, rest = body.split(b"\n\n")
    if rest and complete:
        yield f"the body ends inside a frame: {rest[:80]!r}"
    for frame in frames:
        lines = frame.split(b"\n")
        data = [line for line in lines if line.startswith(b"data: ")]
        is_comment = all(line.startswith(b":") for line in lines)
        others = [line for line in lines if not line.startswith((b"data: ", b"id: "))]
        if not is_comment and (len(data) != 1 or others):
            yield f"a frame that is neither one event nor a comment: {frame[:80]!r}"
        if len(frame) > MAX_FRAME and b'"MESSAGES_SNAPSHOT"' not in frame[:60]:
            yield f"a frame of {len(frame)} bytes"


# ------------------------------------------------------------------ schema


def _schema(event: dict[str, Any]) -> list[str]:
    try:
        model = cast("BaseModel", _EVENT.validate_python(event, strict=False))
    except ValidationError as error:
        return [f"not of the schema: {error}"]
    return list(_extras(model, event, ""))


def _extras(model: BaseModel, raw: dict[str, Any], path: str) -> Iterator[str]:
    """Yield fields that the schema does not have, and nulls where one may leave out."""
    fields = {field.alias or name: name for name, field in type(model).model_fields.items()}
    for key, value in raw.items():
        if key not in fields:
            yield f"{path}/{key} is outside the schema"
            continue
        field = type(model).model_fields[fields[key]]
        if value is None and not field.is_required():
            yield f"{path}/{key} is null; leave it out"
        yield from _nested(getattr(model, fields[key]), value, f"{path}/{key}")


def _nested(value: Any, raw: Any, path: str) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from _extras(value, raw, path)
    elif isinstance(value, list):
        for index, (each, its_raw) in enumerate(zip(cast("list[Any]", value), raw, strict=True)):
            yield from _nested(each, its_raw, f"{path}/{index}")


# -------------------------------------------------------------- both ends


def _ends(
    events: list[dict[str, Any]], request: dict[str, Any], *, complete: bool
) -> Iterator[str]:
    if not events:
        if complete:
            yield "an empty stream"
        return
    first, last = events[0], events[-1]
    types = [event["type"] for event in events]
    if first["type"] != "RUN_STARTED" or types.count("RUN_STARTED") != 1:
        yield f"one RUN_STARTED, at the start: {types[:3]}"
        return
    if first.get("protocolVersion") != "1.0":
        yield f"RUN_STARTED declares {first.get('protocolVersion')!r}"
    if (first["threadId"], first["runId"]) != (request["threadId"], request["runId"]):
        yield "RUN_STARTED has other ids than the input"
    if complete and last["type"] not in TERMINAL:
        yield f"the stream ends with {last['type']}"
    yield from _terminal(events, request)
    yield from _left_open(events)


def _terminal(events: list[dict[str, Any]], request: dict[str, Any]) -> Iterator[str]:
    first = events[0]
    terminal = [event for event in events if event["type"] in TERMINAL]
    types = [event["type"] for event in terminal]
    if terminal and events[-len(terminal) :] != terminal:
        yield f"something follows a terminal event: {[event['type'] for event in events[-3:]]}"
    match terminal:
        case [] | [_]:
            pass
        case [finished, error] if types == ["RUN_FINISHED", "RUN_ERROR"]:
            if "outcome" in finished:
                yield "the RUN_FINISHED before a RUN_ERROR has an outcome"
            if not request.get("resume"):
                yield f"two terminal events, and no answer was taken: {error.get('code')}"
        case _:
            yield f"terminal events {types}"
    for event in terminal:
        if event["type"] != "RUN_FINISHED":
            continue
        for key in ("threadId", "runId", "metadata"):
            if event.get(key) != first.get(key):
                yield f"RUN_FINISHED has another {key} than RUN_STARTED"


def _left_open(events: list[dict[str, Any]]) -> Iterator[str]:
    """Everything opened is closed before any end, an error too."""
    is_open: set[tuple[str, str]] = set()
    for event in events:
        kind = event["type"]
        if kind in OPENS:
            is_open.add((kind.removesuffix("_START"), event[OPENS[kind]]))
        elif kind in CLOSES:
            is_open.discard((kind.removesuffix("_END"), event[CLOSES[kind]]))
        elif kind in TERMINAL and is_open:
            yield f"{sorted(is_open)} is open at the {kind}"


def _fit_for_old_clients(events: list[dict[str, Any]]) -> Iterator[str]:
    for event in events:
        outcome = event.get("outcome") or {}
        if outcome.get("type") == "cancelled" or "pendingToolCallIds" in outcome:
            yield f"an old client got the outcome {outcome}"
        if event["type"] == "TOOL_CALL_RESULT" and not isinstance(event["content"], str):
            yield "an old client got a tool result in parts"
        if event["type"] in DELTAS and event["delta"] == "":
            yield "an old client got an empty delta"
        if not set(event.get("metadata") or {}) <= OUR_METADATA:
            yield f"an old client got metadata {event['metadata']}"
