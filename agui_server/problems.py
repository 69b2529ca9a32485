"""Refusals as RFC 9457 problem documents: one table from errors to HTTP.

A problem has `type` (`about:blank`), `title`, `status`, `detail` and a stable `code`;
some have more, such as the ids of what is open.
"""

import logging
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agui_server.agui.wire import BadRequest
from agui_server.api.refusals import Refusal
from engine.core import errors

logger = logging.getLogger(__name__)

STATUS: dict[type[errors.EngineError], int] = {
    errors.UnknownAgent: 404,
    errors.UnknownSession: 404,
    errors.ThreadTaken: 409,
    errors.TurnAlreadyActive: 409,
    errors.SessionInterrupted: 409,
    errors.CallNotOpen: 409,
    errors.Forbidden: 403,
    errors.InvalidAnswer: 422,
    errors.InvalidInput: 422,
    errors.InvalidView: 422,
    errors.StorageUnavailable: 503,
}

TITLES = {
    400: "Bad request",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Content too large",
    415: "Unsupported media type",
    422: "Unprocessable content",
    500: "Internal error",
    503: "Service unavailable",
}

CODES = {404: "not_found", 405: "method_not_allowed"}


def problem(status: int, code: str, detail: str, **more: Any) -> Response:
    """Return a problem document."""
    return JSONResponse(
        {
            "type": "about:blank",
            "title": TITLES.get(status, "Error"),
            "status": status,
            "code": code,
            "detail": detail,
            **more,
        },
        status_code=status,
        media_type="application/problem+json",
    )


def of_refusal(error: errors.EngineError) -> Response:
    """Return the problem document of an engine's refusal."""
    match error:
        case errors.SessionInterrupted():
            more: dict[str, Any] = {"interrupt_ids": list(error.interrupt_ids)}
        case errors.TurnAlreadyActive():
            more = {"turn_id": error.turn_id}
        case errors.InvalidInput():
            more = {"field": error.field}
        case _:
            more = {}
    if isinstance(error, errors.StorageUnavailable):
        return problem(503, "storage_unavailable", "The database cannot be used right now.")
    if isinstance(error, errors.InvalidResponse):
        # What the engine itself would have done about an input breaks a rule: the input did.
        return problem(422, "invalid_input", str(error), field=error.field)
    status = STATUS.get(type(error), 500)
    code = getattr(error, "code", "internal_error")
    detail = str(error) if isinstance(error, errors.Refused) else "The server failed."
    return problem(status, code, detail, **more)


async def on_engine_error(_request: Request, error: Exception) -> Response:
    """Answer an engine's error."""
    if not isinstance(error, errors.EngineError):
        raise error
    if not isinstance(error, errors.Refused):
        logger.error("a request failed", exc_info=error)
    return of_refusal(error)


async def on_bad_request(_request: Request, error: Exception) -> Response:
    """Answer a request that is refused by its own fault."""
    if not isinstance(error, BadRequest):
        raise error
    more = error.more if isinstance(error, Refusal) else {}
    return problem(error.status, error.code, error.detail, **more)


async def on_http_exception(_request: Request, error: Exception) -> Response:
    """Answer what the router refuses: no such path, no such method."""
    if not isinstance(error, HTTPException):
        raise error
    code = CODES.get(error.status_code, "http_error")
    response = problem(error.status_code, code, str(error.detail))
    response.headers.update(error.headers or {})
    return response


async def on_failure(_request: Request, _error: Exception) -> Response:
    """Answer a bug of ours. The server logs it; the client learns nothing of it."""
    return problem(500, "internal_error", "The server failed.")


HANDLERS = {
    errors.EngineError: on_engine_error,
    BadRequest: on_bad_request,
    HTTPException: on_http_exception,
    Exception: on_failure,
}
"""For Starlette's `exception_handlers`."""
