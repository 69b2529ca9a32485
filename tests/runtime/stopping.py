"""What is stopped in a test, or held at its moment, and what a log says of how things ended."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from engine import Agent, Engine
from engine.core import events as ev
from engine.core.errors import StorageUnavailable
from engine.core.messages import AssistantMessage, Message, ToolMessage
from engine.core.ports import Finish, ModelDelta, ModelRequest, TextDelta
from engine.store.memory import MemoryStore
from engine.store.protocol import Append, Appended, Conflict
from tests.runtime.given import Talk
from tests.runtime.provider import PATIENCE_S

CANCELLED = "cancelled: the turn ended"
"""What a model reads of a call that a cancel ended."""


class Stop:
    """Async tools that run until they are cancelled; `ended` says how each came to its end."""

    def __init__(self) -> None:
        self.running: list[asyncio.Task[Any]] = []
        self.ended: list[str] = []
        self._started = asyncio.Condition()

    async def hang(self) -> str:
        """Wait for what never comes."""
        await self._start()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        return "never"

    async def resist(self) -> str:
        """Do not let go when told to."""
        await self._start()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.append("resisted")
        return "late"

    async def _start(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        async with self._started:
            self.running.append(task)
            self._started.notify_all()

    async def started(self, number: int = 1) -> None:
        """Wait until so many run."""
        async with asyncio.timeout(PATIENCE_S), self._started:
            await self._started.wait_for(lambda: len(self.running) >= number)

    async def gone(self) -> None:
        """Wait until none runs any more."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait(self.running)


class Gated(MemoryStore):
    """A store that can be made to hold a commit, or to fail it."""

    def __init__(self) -> None:
        super().__init__()
        self.open_gate = asyncio.Event()
        self.open_gate.set()
        self.held = asyncio.Event()
        self.fails = False

    async def append(self, append: Append) -> Appended | Conflict:
        """Commit, once the gate is open."""
        if not self.open_gate.is_set():
            self.held.set()
            await self.open_gate.wait()
        if self.fails:
            raise StorageUnavailable("full")
        return await super().append(append)


class Waiting:
    """A model whose reply is whole when it is told so."""

    def __init__(self) -> None:
        self.go_on, self.said = asyncio.Event(), asyncio.Event()
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """Say a word, wait, end."""
        self.requests.append(request)
        yield TextDelta("well")
        self.said.set()
        await self.go_on.wait()
        yield Finish()


@asynccontextmanager
async def talking(agent: Agent, db: MemoryStore | None = None) -> AsyncGenerator[Talk]:
    """A conversation with an agent that has the scripted model."""
    async with Engine(agents=[agent], db=db or MemoryStore()) as engine:
        yield await Talk.begin(engine)


def results(path: Sequence[Message]) -> dict[str, list[Any]]:
    """The results on a path of each tool call on it, by the call's id."""
    asked = [call for m in path if isinstance(m, AssistantMessage) for call in m.tool_calls]
    return {
        call.id: [
            m.content for m in path if isinstance(m, ToolMessage) and m.tool_call_id == call.id
        ]
        for call in asked
    }


def of(log: Sequence[ev.Event], kind: type[Any]) -> list[Any]:
    """What happened of one type."""
    return [event.body for event in log if isinstance(event.body, kind)]


def codes(log: Sequence[ev.Event]) -> dict[str | None, list[str | None]]:
    """The error codes that each turn completed with."""
    ended: dict[str | None, list[str | None]] = {}
    for event in log:
        if isinstance(event.body, ev.TurnCompleted):
            error = event.body.error
            ended.setdefault(event.turn_id, []).append(error.code if error else None)
    return ended
