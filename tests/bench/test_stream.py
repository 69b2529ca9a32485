"""The benchmark's own reading: a stream that is not whole must not count as a run."""

import pytest

from tests.bench.profile import layer_of
from tests.bench.stream import read_stream

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
STARTED = b'data: {"type":"RUN_STARTED"}\n\n'
TEXT = b'data: {"type":"TEXT_MESSAGE_CONTENT","delta":"one "}\n\n'
MORE = b'data: {"type":"TEXT_MESSAGE_CONTENT","delta":"two "}\n\n'
FINISHED = b'data: {"type":"RUN_FINISHED"}\n\n'


def response(*chunks: bytes) -> bytes:
    """Return a response in these chunks."""
    return HEAD + b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + b"0\r\n\r\n"


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param((STARTED, TEXT, MORE, FINISHED), id="an event a chunk"),
        pytest.param((STARTED + TEXT[:30], TEXT[30:] + MORE + FINISHED), id="cut anywhere"),
        pytest.param((STARTED, b": keep-alive\n\n", TEXT + MORE, FINISHED), id="with a comment"),
    ],
)
def test_a_whole_stream_has_no_fault(chunks: tuple[bytes, ...]) -> None:
    """However a server groups its events into chunks, the text is the same."""
    stream = read_stream(response(*chunks))
    assert (stream.events, stream.text) == (4, "one two ")
    assert stream.fault("one two ") == ""


@pytest.mark.parametrize(
    ("received", "fault"),
    [
        pytest.param(response(STARTED, TEXT, FINISHED), "text differs", id="text is missing"),
        pytest.param(response(STARTED, TEXT, MORE), "no RUN_FINISHED", id="no end"),
        pytest.param(response(STARTED, TEXT, MORE)[:-40], "no RUN_FINISHED", id="cut off"),
        pytest.param(b"", "status 0", id="nothing"),
        pytest.param(b"HTTP/1.1 503 No\r\n\r\nTry later.", "status 503", id="refused"),
    ],
)
def test_a_broken_stream_has_one(received: bytes, fault: str) -> None:
    """A run whose text or end is missing is a failed run."""
    assert read_stream(received).fault("one two ").startswith(fault)


def test_the_standard_library_works_for_its_caller() -> None:
    """A sample belongs to the innermost layer of its stack, not to the loop below all."""
    stack = ["run (asyncio/runners.py:118)", "apply (engine/core/apply.py:9)", "replace (d.py:1)"]
    assert layer_of(stack) == ("engine.core", "apply (engine/core/apply.py)")
    assert layer_of(stack[:1]) == ("event loop", "run (asyncio/runners.py)")
