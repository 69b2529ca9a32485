"""Server-sent events: frames of bytes over sse-starlette.

LF only, in frames and in keep-alives: the official client splits on nothing else.
"""

from collections.abc import AsyncIterator

from sse_starlette import EventSourceResponse, ServerSentEvent

PING_S = 15
"""Silence after which a comment line keeps proxies from closing the connection."""

SEND_TIMEOUT_S = 60.0
"""How long a reader may take nothing before its connection is closed."""


def stream(frames: AsyncIterator[bytes]) -> EventSourceResponse:
    """Return a response that sends frames as they come; bytes pass through untouched."""
    return EventSourceResponse(
        frames,
        sep="\n",
        ping=PING_S,
        ping_message_factory=_keep_alive,
        send_timeout=SEND_TIMEOUT_S,
    )


def _keep_alive() -> ServerSentEvent:
    return ServerSentEvent(comment="keep-alive", sep="\n")
