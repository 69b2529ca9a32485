"""Server-sent events: frames of bytes over sse-starlette.

LF only, in frames and in keep-alives: the official client splits on nothing else.
"""

from collections.abc import AsyncIterator, Callable
from typing import cast

import anyio
from sse_starlette import EventSourceResponse, ServerSentEvent

PING_S = 15
"""Silence after which a comment line keeps proxies from closing the connection."""

SEND_TIMEOUT_S = 60.0
"""How long a reader may take nothing before its connection is closed."""


FAREWELL_S = 3.0
"""How long a stream has to say its last words when the server stops."""


class Farewell:
    """Tells one stream that the server stops, so that it can end in order."""

    def __init__(self) -> None:
        self.said = False
        self._listener: Callable[[], None] | None = None

    def then(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the server stops, or at once if it does already."""
        self._listener = listener
        if self.said:
            listener()

    def set(self) -> None:
        """Tell. Named as sse-starlette calls it: it takes an event and only sets it."""
        self.said = True
        if self._listener is not None:
            self._listener()


def stream(frames: AsyncIterator[bytes], farewell: Farewell) -> EventSourceResponse:
    """Return a response that sends frames as they come; bytes pass through untouched."""
    return EventSourceResponse(
        frames,
        sep="\n",
        ping=PING_S,
        ping_message_factory=_keep_alive,
        send_timeout=SEND_TIMEOUT_S,
        shutdown_event=cast("anyio.Event", farewell),
        shutdown_grace_period=FAREWELL_S,
    )


def _keep_alive() -> ServerSentEvent:
    return ServerSentEvent(comment="keep-alive", sep="\n")
