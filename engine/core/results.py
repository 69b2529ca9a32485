"""What a tool call ends with: the MCP shape, and the text a model reads of it.

A result is `{content: [block, …], structuredContent?, isError?}`, each block an
object with a `type`: `text`, `image`, `audio`, `resource` or `resource_link`.

Source: `protocol.md` section 5, "A tool `result` is".
"""

import json
import math
from typing import cast

from engine.core.messages import Json
from engine.core.text import repair

_MEMBERS = frozenset({"content", "structuredContent", "isError", "_meta"})


def as_result(value: Json) -> dict[str, Json]:
    """Return a JSON value in the MCP shape.

    A string becomes one text block, `None` an empty one, a value of the shape stays
    what it is, and anything else becomes its JSON text; an object also becomes the
    `structuredContent`. Strings are repaired, and a number that JSON cannot write
    (NaN, infinities) is `null`.

    Raises:
        TypeError: the value is not JSON.
    """
    clean = _clean(value)
    match clean:
        case None:
            return _one_block("")
        case str():
            return _one_block(clean)
        case dict():
            members = cast("dict[str, Json]", clean)
            if _has_shape(members):
                return members
            return {**_one_block(_json_text(members)), "structuredContent": members}
        case _:
            return _one_block(_json_text(clean))


def result_text(result: Json) -> str:
    """Return what a model reads of a result: its text blocks, one a line.

    Blocks that are not text are named, such as `[image]`. A result without text is
    read by its `structuredContent`, as JSON. A value without the MCP shape is taken
    as :func:`as_result` takes it.
    """
    shaped = as_result(result)
    blocks = cast("list[dict[str, Json]]", shaped["content"])
    lines = [_block_text(block) for block in blocks]
    structured = shaped.get("structuredContent")
    if structured is not None and not any(_own_text(block) for block in blocks):
        lines = [line for line in lines if line]
        lines.append(_json_text(structured))
    return "\n".join(lines)


def _has_shape(members: dict[str, Json]) -> bool:
    content = members.get("content")
    if not isinstance(content, list):
        return False
    blocks = cast("list[Json]", content)
    # An empty list is also what a tool's own object may have under that name
    # ({"content": [], "page": 3}), so there its other members decide.
    return all(_is_block(block) for block in blocks) and (
        bool(blocks) or members.keys() <= _MEMBERS
    )


def _is_block(block: Json) -> bool:
    return isinstance(block, dict) and isinstance(cast("dict[str, Json]", block).get("type"), str)


def _block_text(block: dict[str, Json]) -> str:
    text = _own_text(block)
    if text is not None:
        return text
    uri = block.get("uri")
    return f"[{block['type']} {uri}]" if isinstance(uri, str) else f"[{block['type']}]"


def _own_text(block: dict[str, Json]) -> str | None:
    """Return the text of a text block, or of a text resource that is embedded."""
    holder = block
    if block["type"] == "resource" and isinstance(block.get("resource"), dict):
        holder = cast("dict[str, Json]", block["resource"])
    elif block["type"] != "text":
        return None
    text = holder.get("text")
    if isinstance(text, str):
        return text
    return "" if block["type"] == "text" else None


def _one_block(text: str) -> dict[str, Json]:
    return {"content": [{"type": "text", "text": text}]}


def _json_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _clean(value: Json) -> Json:
    """Repair strings (keys too), and replace the numbers that JSON has no word for."""
    match value:
        case str():
            return repair(value)
        case float():
            return value if math.isfinite(value) else None
        case list() | tuple():
            return [_clean(item) for item in cast("list[Json]", value)]
        case dict():
            members = cast("dict[str, Json]", value)
            return {repair(key): _clean(item) for key, item in members.items()}
        case _:
            return value
