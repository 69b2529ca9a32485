"""What a response carried: its status, its events, and whether its text is whole."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TOKENS = 200
EXPECTED = "".join(f"word{index} " for index in range(TOKENS))
"""The text of every run: what the scripted model streams for `/tokens 200`."""

_OK = 200


@dataclass(frozen=True, slots=True)
class Stream:
    """A run's response, read."""

    status: int
    text: str
    events: int
    is_finished: bool

    def fault(self, expected: str) -> str:
        """Say what is wrong with it; nothing when it is whole."""
        if self.status != _OK:
            return f"status {self.status}"
        if not self.is_finished:
            return f"no RUN_FINISHED after {self.events} events"
        if self.text != expected:
            return f"text differs: {len(self.text)} characters for {len(expected)}"
        return ""


def read_stream(response: bytes) -> Stream:
    """Read a chunked response of server-sent events. It may have been cut off anywhere."""
    head, _, body = response.partition(b"\r\n\r\n")
    status = int(head[9:12]) if head.startswith(b"HTTP/1.1 ") else 0
    if status != _OK:
        return Stream(status, "", 0, is_finished=False)
    text: list[str] = []
    events = 0
    is_finished = False
    for event in _events(b"".join(_chunks(body))):
        events += 1
        match event.get("type"):
            case "TEXT_MESSAGE_CONTENT":
                text.append(event["delta"])
            case "RUN_FINISHED":
                is_finished = True
            case _:
                continue
    return Stream(status, "".join(text), events, is_finished)


def _chunks(body: bytes) -> Iterator[bytes]:
    """Yield the contents of the chunks that arrived whole, and of the last one what there is."""
    at = 0
    while (line_end := body.find(b"\r\n", at)) > 0:
        size = int(body[at:line_end], 16)
        start = line_end + 2
        yield body[start : start + size]
        at = start + size + 2


def _events(body: bytes) -> Iterator[dict[str, Any]]:
    frames = body.replace(b"\r\n", b"\n").split(b"\n\n")
    # What stands behind the last blank line was cut off, or is empty.
    for frame in frames[:-1]:
        for line in frame.split(b"\n"):
            if line.startswith(b"data:"):
                yield json.loads(line[5:])
