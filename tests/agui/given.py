"""A server in a test: post an input, get the stream's events."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from agui_server import create_app
from engine import Agent, Engine
from engine.store.memory import MemoryStore

Event = dict[str, Any]


def user(message_id: str, text: str) -> Event:
    """What a person says, as AG-UI sends it."""
    return {"id": message_id, "role": "user", "content": text}


def resolved(interrupt_id: str, payload: Any = None) -> Event:
    """An answer, as AG-UI sends it."""
    return {"interruptId": interrupt_id, "status": "resolved", "payload": payload}


def cancelled(interrupt_id: str) -> Event:
    """A question given up, as AG-UI sends it."""
    return {"interruptId": interrupt_id, "status": "cancelled"}


@dataclass
class Stream:
    """What one request answered: its events, or a problem document."""

    status: int
    events: Sequence[Event] = ()
    problem: Event = field(default_factory=dict[str, Any])

    @property
    def types(self) -> list[str]:
        """The events' types, in order."""
        return [event["type"] for event in self.events]

    @property
    def last(self) -> Event:
        """The terminal event."""
        return self.events[-1]

    @property
    def outcome(self) -> str:
        """How the run ended."""
        if self.last["type"] == "RUN_ERROR":
            return f"error {self.last['code']}"
        return self.last.get("outcome", {"type": "none"})["type"]

    @property
    def interrupts(self) -> list[Event]:
        """The questions the run ended with."""
        return self.last.get("outcome", {}).get("interrupts", [])

    @property
    def turn_id(self) -> str | None:
        """The turn this run belongs to."""
        return self.events[0]["metadata"].get("agui-server/turnId")

    @property
    def text(self) -> str:
        """Everything that was said."""
        return "".join(self.all("TEXT_MESSAGE_CONTENT", "delta"))

    @property
    def warnings(self) -> list[str]:
        """The codes of what was left out of the input."""
        return [value["code"] for value in self.all("CUSTOM", "value")]

    def all(self, kind: str, member: str) -> list[Any]:
        """One member of every event of a type."""
        return [event[member] for event in self.events if event["type"] == kind]


@dataclass
class Server:
    """An application under test, and the client's own idea of its conversation."""

    client: httpx.AsyncClient
    engine: Engine
    runs: int = 0

    async def run(
        self,
        *messages: Event,
        resume: Iterable[Event] | None = None,
        agent: str = "a",
        thread: str = "t",
        **more: Any,
    ) -> Stream:
        """Post an input and read its stream to the end. Missing fields get plain values."""
        self.runs += 1
        body: Event = {
            "threadId": thread,
            "runId": f"r{self.runs}",
            "protocolVersion": "1.0",
            "messages": list(messages),
            "tools": [],
            "context": [],
            "state": {},
            "forwardedProps": {},
            **more,
        }
        if resume is not None:
            body["resume"] = list(resume)
        return await self.post(agent, body)

    async def post(self, agent: str, body: Event) -> Stream:
        """Post a body as it is, without what is `None`."""
        body = {key: value for key, value in body.items() if value is not None}
        response = await self.client.post(f"/api/channels/ag-ui/agents/{agent}/run", json=body)
        if response.status_code != 200:
            return Stream(response.status_code, problem=response.json())
        assert b"\r" not in response.content
        return Stream(200, parse(response.content))

    async def cancel(self, address: str = "t") -> Event:
        """Stop everything in a session."""
        response = await self.client.post(f"/api/client/sessions/{address}/cancel")
        return response.json()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Let the others run until something holds."""
    while not await condition():  # noqa: ASYNC110 - what is waited for has no event of its own
        await asyncio.sleep(0)


async def is_running(server: Server) -> bool:
    """Whether a turn is under way."""
    rows = await server.engine.store.sessions(limit=1)
    return bool(rows) and rows[0].status == "running"


async def is_saying(server: Server) -> bool:
    """Whether a model has said something, with time enough for it to be heard."""
    pieces = [
        len(part.pieces)
        for row in await server.engine.store.sessions(limit=1)
        for live in server.engine.reader(row.session_id, 0).feed.live.values()
        for part in live.parts
    ]
    return any(count > HEARD for count in pieces)


HEARD = 3
"""Deltas after which, milliseconds apart, the first have reached every reader."""


def parse(content: bytes) -> list[Event]:
    """Read frames as the official client does: separated by an empty line, LF only."""
    events: list[Event] = []
    for frame in content.decode().split("\n\n"):
        data = [line[5:] for line in frame.split("\n") if line.startswith("data:")]
        if data:
            events.append(json.loads("\n".join(data)))
    return events


@asynccontextmanager
async def serving(*agents: Agent, **more: Any) -> AsyncGenerator[Server]:
    """Serve agents from memory, inside the test."""
    engine = Engine(agents=agents, db=more.pop("db", None) or MemoryStore(), **more)
    async with engine:
        transport = httpx.ASGITransport(create_app(engine), raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", timeout=30
        ) as client:
            yield Server(client, engine)
