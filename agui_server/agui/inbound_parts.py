"""Content of a message: text, or parts. A part that cannot be used is left out.

A part keeps AG-UI's shape: it goes to the model adapters as it came, without
members the protocol does not know.

Source: `agui-1.0.md` B and P12: no run fails for a part it cannot use.
"""

from typing import Any, cast

from agui_server.agui.wire import Fields, Notices, Object, refuse
from engine.core.messages import Json

_TEXT = frozenset({"type", "id", "text", "metadata"})
_MEDIA = frozenset({"type", "id", "source", "metadata"})
_MEDIA_TYPES = frozenset({"image", "audio", "video", "document"})
_SOURCES = {
    "data": frozenset({"type", "value", "mimeType"}),
    "url": frozenset({"type", "value", "mimeType"}),
    "file": frozenset({"type", "value", "mimeType", "provider"}),
}


def read_content(message: Fields) -> str | list[Json]:
    """Return a message's `content`: text, or its usable parts.

    Content whose parts were all left out is empty text, so that a tool call is answered
    and a model is not sent an empty list.

    Raises:
        BadRequest: 422: neither text nor a list, or a part whose known fields are malformed.
    """
    value = message.raw.get("content")
    if type(value) is str:
        return value
    if type(value) is not list:
        refuse(message.at("content"), "a string or a list of parts", value)
    sent = cast("list[Json]", value)
    path = message.at("content")
    parts = (_read_part(part, f"{path}[{i}]", message.notices) for i, part in enumerate(sent))
    kept: list[Json] = [part for part in parts if part is not None]
    return kept if kept or not sent else ""


def _read_part(value: Json, path: str, notices: Notices) -> Object | None:
    part = Fields(value, path, notices)
    kind = part.text("type")
    if kind == "text":
        part.text("text")
        part.optional_text("id")
        return part.clean(_TEXT)
    if kind == "binary":
        return _modern(part)
    if kind not in _MEDIA_TYPES:
        notices.ignored("unknown_part", path, kind)
        return None
    source = _read_source(part)
    part.optional_text("id")
    if source is None:
        return None
    cleaned = part.clean(_MEDIA)
    return cleaned if source is cleaned["source"] else {**cleaned, "source": source}


def _read_source(part: Fields) -> Object | None:
    source = Fields(part.raw.get("source"), part.at("source"), part.notices)
    kind = source.text("type")
    known = _SOURCES.get(kind)
    if known is None:
        part.notices.ignored("unknown_source", source.path, kind)
        return None
    source.text("value")
    if kind == "data":
        source.text("mimeType")
    else:
        source.optional_text("mimeType")
    if kind == "file":
        source.optional_text("provider")
    return source.clean(known)


def _modern(part: Fields) -> Object | None:
    """Return a media part for the `binary` part that clients before 1.0 send."""
    mime_type = part.optional_text("mimeType") or "application/octet-stream"
    source: dict[str, Any]
    if data := part.optional_text("data"):
        source = {"type": "data", "value": data, "mimeType": mime_type}
    elif url := part.optional_text("url"):
        source = {"type": "url", "value": url, "mimeType": mime_type}
    elif handle := part.optional_text("id"):
        source = {"type": "file", "value": handle, "mimeType": mime_type}
    else:
        part.notices.ignored("unknown_part", part.path, "binary (without data, url or id)")
        return None
    family = mime_type.partition("/")[0]
    modern: Object = {
        "type": family if family in _MEDIA_TYPES else "document",
        "source": source,
    }
    if filename := part.optional_text("filename"):
        modern["metadata"] = {"filename": filename}
    return modern
