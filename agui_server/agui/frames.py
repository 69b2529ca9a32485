"""AG-UI events to the bytes of server-sent events.

Text, reasoning and argument deltas are the hot path: they are built from a prefix
that is encoded once per message. Every other event goes through the protocol's own
models. Lines end in LF only: the official client reads nothing else.
"""

from collections.abc import Iterator

import orjson
from ag_ui.core import BaseEvent

MAX_DELTA = 150_000
"""Characters in one delta. A frame stays under 1 MiB even if each is escaped as `\\u0000`."""


def frame(event: BaseEvent) -> bytes:
    """Encode one event as one frame."""
    return b"data: " + event.model_dump_json(by_alias=True).encode() + b"\n\n"


class DeltaFrames:
    """Frames of one open item: `TEXT_MESSAGE_CONTENT` and its kin."""

    __slots__ = ("_prefix",)

    def __init__(self, event_type: str, id_field: str, item_id: str) -> None:
        self._prefix = (
            b'data: {"type":"%s","%s":' % (event_type.encode(), id_field.encode())
            + orjson.dumps(item_id)
            + b',"delta":'
        )

    def of(self, text: str) -> Iterator[bytes]:
        """Yield frames for a text; none for an empty one."""
        for start in range(0, len(text), MAX_DELTA):
            yield self._prefix + orjson.dumps(text[start : start + MAX_DELTA]) + b"}\n\n"
