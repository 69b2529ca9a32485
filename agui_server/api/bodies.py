"""Bodies and queries as shapes: JSON in, a pydantic model out, or a refusal that names a field.

The rules of a body are those of a run's: `application/json`, a size, a depth, valid Unicode.
What is beyond is said by the shapes in `shapes.py`: they are strict, and know all their members.
"""

from typing import TypeVar

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.requests import Request

from agui_server.agui.inbound import check_content_type
from agui_server.agui.runs import body as read_body
from agui_server.agui.wire import decode, digest
from agui_server.api.refusals import invalid
from agui_server.api.shapes import Shape
from agui_server.settings import Settings

M = TypeVar("M", bound=Shape)

TAGS = frozenset(
    {
        "client.message", "client.messages", "client.append", "client.action",
        "interrupt.resume", "tool.result", "tool.error",
        "user", "assistant", "tool", "system", "developer", "reasoning", "activity",
        "str", "list[any]",
    }
)  # fmt: skip
"""What pydantic puts into a path to say which member of a union it tried. No field is called so."""

UNKNOWN_MEMBER = frozenset({"extra_forbidden", "unexpected_keyword_argument"})

MAX_NAME_LENGTH = 64
"""How much of somebody's own word is said again."""


async def read(request: Request, shape: type[M]) -> M:
    """Read a request's body.

    Raises:
        BadRequest: 415 `unsupported_media_type`, 413 `too_large`, 400 `invalid_json`,
            422 `invalid_input` with the first `field` that is wrong.
    """
    settings: Settings = request.app.state.settings
    check_content_type(request.headers.get("content-type"))
    return parse(await read_body(request, settings.max_body), shape)


def parse(body: bytes, shape: type[M]) -> M:
    """Return a body as a shape; see :func:`read`."""
    value = shape.completed(decode(body))
    digest(value)  # refuses what is nested too deeply
    # Strict JSON: in Python values a list would not do for a tuple.
    text = orjson.dumps(value)
    try:
        return shape.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise _refusal(error, "body") from None


def read_query(request: Request, shape: type[M]) -> M:
    """Read a request's query. Of a parameter that comes twice the last one counts.

    Raises:
        BadRequest: 422 `invalid_input` with the first `field` that is wrong.
    """
    try:
        return shape.model_validate_strings(dict(request.query_params))
    except ValidationError as error:
        raise _refusal(error, "query") from None


def _refusal(error: ValidationError, whole: str) -> Exception:
    fault = error.errors(include_url=False, include_input=False)[0]
    return invalid(_path(fault) or whole, _sentence(fault))


def _path(fault: ErrorDetails) -> str:
    """Return where a fault is: without the members of unions, but with the tag that is wrong."""
    place = fault["loc"]
    steps = [step for step in place if step not in TAGS]
    if fault["type"] in UNKNOWN_MEMBER:
        steps = [*(step for step in place[:-1] if step not in TAGS), place[-1]]
    elif tag := fault.get("ctx", {}).get("discriminator"):
        steps.append(tag.strip("'"))
    path = "".join(f"[{s}]" if isinstance(s, int) else f".{s[:MAX_NAME_LENGTH]}" for s in steps)
    return path.removeprefix(".")


def _sentence(fault: ErrorDetails) -> str:
    """Say what is wrong, in a sentence that needs no knowledge of pydantic."""
    context = fault.get("ctx", {})
    match fault["type"]:
        case "missing" | "union_tag_not_found":
            return "is required"
        case unknown if unknown in UNKNOWN_MEMBER:
            return "is not a known member"
        case "union_tag_invalid":
            return f"{context['tag'][:MAX_NAME_LENGTH]!r} is none of {context['expected_tags']}"
        case _ if fault["loc"] and fault["loc"][-1] in {"str", "list[any]"}:
            return "must be a string or a list of parts"
        case _:
            message = fault["msg"].removeprefix("Input ")
            return message[0].lower() + message[1:]
