"""Sessions of a chosen size, grown through the engine's own write path.

Nothing runs beside it: the effects are off, and each model call is answered by hand, so
that what is measured is the write path alone.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from engine import Agent, Engine
from engine.core import commands as cmd
from engine.core.handle import Receipt
from engine.core.messages import AssistantMessage, UserMessage
from engine.core.state import State

BIRTH = cmd.Birth(agent_id="a", owner="o", tenant="t", thread_id="th")
TEXT = "What people say to each other is about this long, now and then."
SESSION = "session"


_ids = count(1)


@dataclass
class Grown:
    """One session, and the engine it lives in."""

    engine: Engine

    async def append(self) -> Receipt:
        """Send one message at the head (`client.append`); a turn starts."""
        message = UserMessage(id=f"user-{next(_ids):06}", content=TEXT)
        command = cmd.AppendMessages(messages=(message,))
        return await self.engine.submit(SESSION, command, birth=BIRTH)

    async def reply(self) -> Receipt:
        """Answer the model call in flight; the turn completes."""
        [call] = (await self.state()).control.calls
        message = AssistantMessage(id=call.message_id, content=TEXT)
        return await self.engine.submit(
            SESSION, cmd.FinishModelCall(call_id=call.id, attempt=call.attempt, message=message)
        )

    async def state(self) -> State:
        """Return the session as it is."""
        state = await self.engine.state(SESSION)
        assert state is not None
        return state

    async def grow(self, messages: int) -> None:
        """Add messages to the active path until it has that many."""
        for _ in range(messages // 2):
            await self.append()
            await self.reply()

    async def branch(self, branches: int, messages: int) -> None:
        """Leave the path near its root that many times, and come back to where it was."""
        state = await self.state()
        home = [node.message for node in state.tree.path(state.control.head)]
        for number in range(branches):
            edit = UserMessage(id=f"edit-{number}", content=TEXT)
            await self.engine.submit(SESSION, cmd.ClientView(messages=(*home[:2], edit)))
            await self.reply()
            await self.grow(messages - 2)
        await self.engine.submit(SESSION, cmd.ClientView(messages=tuple(home)))


@asynccontextmanager
async def opened(db: Path, *, synchronous: Any = "OFF") -> AsyncGenerator[Grown]:
    """Open a file with an engine that starts nothing by itself."""
    engine = Engine(db=db, agents=[Agent("a")], synchronous=synchronous)
    async with engine:
        sessions: Any = vars(engine)["_running"]
        sessions.effects.stopping = True
        yield Grown(engine)
