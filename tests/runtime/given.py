"""An engine in a test: talk to it without HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

from engine import Engine, Thread
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.handle import Receipt
from engine.core.messages import Message, UserMessage
from engine.core.ports import Finish, ModelDelta, ModelRequest, TextDelta
from engine.core.state import State

THREAD = Thread(tenant="t", owner="o", agent_id="a", thread_id="th")
BIRTH = cmd.Birth(agent_id="a", owner="o", tenant="t", thread_id="th")


class Talk:
    """One conversation with a running engine."""

    def __init__(self, engine: Engine, session_id: str, thread_id: str = "th") -> None:
        self.engine = engine
        self.session_id = session_id
        self.thread_id = thread_id

    @classmethod
    async def begin(cls, engine: Engine) -> "Talk":
        """Find or make the conversation."""
        return cls(engine, await engine.session_of(THREAD))

    async def say(self, text: str, **more: Any) -> Receipt:
        """A person says something, below everything that is recorded."""
        path = await self.path()
        message = UserMessage(id=f"u{len(path)}", content=text)
        return await self.do(cmd.ClientView(messages=(*path, message), **more))

    async def do(self, command: cmd.Command) -> Receipt:
        """Run a command."""
        birth = replace(BIRTH, thread_id=self.thread_id)
        return await self.engine.submit(self.session_id, command, birth=birth)

    async def answer(self, payload: Any = True) -> Receipt:  # noqa: FBT002 - a person's word
        """Somebody answers the oldest question."""
        interrupt = (await self.state()).control.interrupts[0]
        answer = cmd.Answer(interrupt_id=interrupt.id, payload=payload)
        return await self.do(cmd.ResumeInterrupt(answer=answer))

    async def state(self) -> State:
        """The session as it is."""
        state = await self.engine.state(self.session_id)
        assert state is not None
        return state

    async def path(self) -> Sequence[Message]:
        """The active path."""
        state = await self.engine.state(self.session_id)
        if state is None:
            return []
        return [node.message for node in state.tree.path(state.control.head)]

    async def log(self) -> Sequence[ev.Event]:
        """Everything that is stored."""
        return await self.engine.store.events(self.session_id)

    async def until(self, condition: Callable[[State], bool]) -> State:
        """Follow the session until its state satisfies something."""
        reader = self.engine.reader(self.session_id, 0)
        state = await self.state()
        if condition(state):
            return state
        async for _ in reader.batches():
            state = await self.state()
            if condition(state):
                return state
        raise AssertionError

    async def until_idle(self) -> State:
        """Follow the session until its turn is over."""
        return await self.until(lambda state: not state.control.turns)

    async def until_paused(self) -> State:
        """Follow the session until a person is asked."""
        return await self.until(lambda state: bool(state.control.interrupts))


class Slow:
    """A model that says one word and then waits; it notes when it is closed."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.said = asyncio.Event()
        self.closed = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """Say a word, then hang."""
        self.requests.append(request)
        try:
            yield TextDelta("well ")
            self.said.set()
            await asyncio.Event().wait()
            yield Finish()
        finally:
            self.closed.set()
