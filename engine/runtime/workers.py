"""Asking a Python worker: the one place where a user's `decide` is called."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from engine.core.errors import InvalidResponse
from engine.core.worker import DecisionRequest, DecisionResponse, Error
from engine.store.codec import parse_response

logger = logging.getLogger(__name__)


async def ask(
    decide: Callable[[DecisionRequest], Any], request: DecisionRequest
) -> DecisionResponse | Error:
    """Ask a worker once.

    A sync function runs in a thread, so it may block. What it raises is an error that
    is not asked again (the same code would fail the same way), except a time-out or a
    lost connection.
    """
    try:
        if inspect.iscoroutinefunction(decide):
            answer = await decide(request)
        else:
            answer = await asyncio.to_thread(_call, decide, request)
            if inspect.isawaitable(answer):
                answer = await answer
        return parse_response(answer)
    except InvalidResponse as error:
        return Error(code="invalid_response", message=str(error), retryable=True)
    except Exception as error:
        logger.exception(
            "decide failed: session %s, decision %s, attempt %d",
            request.session_id,
            request.decision_id,
            request.attempt,
        )
        passing = isinstance(error, TimeoutError | ConnectionError)
        return Error(
            code="worker_error", message=f"{type(error).__name__}: {error}", retryable=passing
        )


def _call(decide: Callable[[DecisionRequest], Any], request: DecisionRequest) -> Any:
    """Call a sync worker. A `sys.exit()` in it must not end the server."""
    try:
        return decide(request)
    except (SystemExit, KeyboardInterrupt) as exit_:
        message = f"the worker tried to end the process: {exit_!r}"
        raise RuntimeError(message) from exit_
