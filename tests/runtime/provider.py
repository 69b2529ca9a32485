"""A model provider in a test: a server on a real socket, and the model that talks to it.

It streams server-sent events in HTTP chunks. Asked once more than it was told what to
answer, it speaks words for ever; and it notes when whoever asked has hung up.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from types import TracebackType
from typing import Any, Self

import httpx

from engine.core.errors import ModelError
from engine.core.ports import Finish, ModelDelta, ModelRequest, TextDelta, ToolCallDelta

PATIENCE_S = 60
"""Longest wait for something that must happen; nothing is expected to come near it."""

PAUSE_S = 0.002
"""Between two words."""

Piece = dict[str, Any]
"""What one event says: a `text`, or a `tool` that is called."""


@dataclass(eq=False)
class Connection:
    """One request that reached the provider: its JSON, and what was said to it."""

    body: Any
    said: str = ""
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def closed(self) -> None:
        """Wait until the client has closed its end."""
        async with asyncio.timeout(PATIENCE_S):
            await self.hung_up.wait()

    @property
    def attempt(self) -> int:
        """Which attempt of its call this is."""
        return self.body["attempt"]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The transcript that was sent."""
        return self.body["messages"]


@dataclass(frozen=True)
class Reply:
    """How one request is answered. `pieces=None`: for ever; `status=None`: not at all."""

    pieces: Sequence[Piece] | None = None
    status: int | None = 200


class Provider:
    """The server. What it answers is queued with :meth:`will`; `model` talks to it."""

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self.model = Remote()
        self._replies: list[Reply] = []
        self._arrived = asyncio.Condition()
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        await self.model.open(f"http://{host}:{port}/")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.model.close()
        self._server.close()
        for writer in self._open.values():
            writer.transport.abort()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    def will(self, *replies: Reply) -> None:
        """Say how the next requests are answered."""
        self._replies.extend(replies)

    async def request(self, number: int) -> Connection:
        """Return a request, once it has come; the first is 1."""
        async with asyncio.timeout(PATIENCE_S), self._arrived:
            await self._arrived.wait_for(lambda: len(self.connections) >= number)
        return self.connections[number - 1]

    # ------------------------------------------------------------- serving

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(body=await _body(reader))
        reply = self._replies.pop(0) if self._replies else Reply()
        talking = asyncio.create_task(_talk(writer, connection, reply))
        self._open[talking] = writer
        async with self._arrived:
            self.connections.append(connection)
            self._arrived.notify_all()
        await _until_hung_up(reader)
        connection.hung_up.set()
        talking.cancel()
        writer.transport.abort()


async def _body(reader: asyncio.StreamReader) -> Any:
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.splitlines()[1:] if line)
    return json.loads(await reader.readexactly(int(fields[b"content-length"])))


async def _until_hung_up(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(1024):
            pass
    except ConnectionError:
        return


async def _talk(writer: asyncio.StreamWriter, connection: Connection, reply: Reply) -> None:
    if reply.status is None:
        return
    head = f"HTTP/1.1 {reply.status} ?\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head.encode())
    for piece in _words() if reply.pieces is None else reply.pieces:
        event = f"data: {json.dumps(piece)}\n\n".encode()
        writer.write(b"%x\r\n%s\r\n" % (len(event), event))
        connection.said += piece.get("text", "")
        await writer.drain()
        await asyncio.sleep(PAUSE_S)
    writer.write(b"0\r\n\r\n")


def _words() -> Iterator[Piece]:
    return ({"text": f"word{number} "} for number in count())


def text(words: str) -> Reply:
    """A whole reply that is text."""
    return Reply([{"text": words}])


def calls(*names: str) -> Reply:
    """A whole reply that asks for tool calls, without arguments."""
    return Reply([{"tool": name, "index": index} for index, name in enumerate(names)])


# ------------------------------------------------------------------ the model


class Remote:
    """A model behind HTTP. Its calls share one client, each has a connection."""

    async def open(self, url: str) -> None:
        """Say where it answers."""
        self._url = url
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(PATIENCE_S), trust_env=False)

    async def close(self) -> None:
        """Close what is left."""
        await self._client.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Stream one reply.

        Raises:
            ModelError: the provider answered with an error; another attempt may succeed.
        """
        body = {
            "call_id": request.call_id,
            "attempt": request.attempt,
            "messages": [asdict(message) for message in request.messages],
        }
        async with self._client.stream("POST", self._url, json=body) as response:
            if response.is_error:
                raise ModelError("provider_error", str(response.status_code), retryable=True)
            async for line in response.aiter_lines():
                if line:
                    yield _delta(json.loads(line.removeprefix("data: ")))
        yield Finish()


def _delta(piece: Piece) -> ModelDelta:
    if "tool" in piece:
        return ToolCallDelta(piece["index"], name=piece["tool"], arguments="{}")
    return TextDelta(piece["text"])


def is_valid(messages: Sequence[dict[str, Any]]) -> bool:
    """Whether a provider takes this transcript.

    Each tool call is directly followed by its one result, in the order of the calls, and
    there are no other results.
    """
    expected: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if not expected or message["tool_call_id"] != expected.pop(0):
                return False
        elif expected:
            return False
        else:
            expected = [call["id"] for call in message.get("tool_calls", ())]
    return not expected
