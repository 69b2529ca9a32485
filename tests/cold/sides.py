"""Two places a session can be: always in memory, or loaded anew between its commands.

Both take commands on the real write path and tell what came of each in the same words.
"""

import asyncio
import itertools
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from unittest.mock import Mock, patch

from engine.core import commands as cmd
from engine.core.env import AgentSpec, Env
from engine.core.errors import Refused
from engine.core.events import Event
from engine.core.handle import Receipt
from engine.core.messages import Message
from engine.core.pending import Work
from engine.core.state import State
from engine.core.worker import DecisionRequest
from engine.runtime import sessions
from engine.runtime.agents import RunnableAgent
from engine.runtime.clock import FakeClock
from engine.runtime.entry import Entry, Running
from engine.runtime.schemas import conforms
from engine.store.memory import MemoryStore

SESSION = "s"
BIRTH = cmd.Birth(agent_id="a", owner="o", tenant="t", thread_id="th")
GOES_ON = Work("tool", "elsewhere", 1, None)
"""Work that is under way while a session is forgotten, so that loading it recovers nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one side makes of one command.

    `path` is the active one and `questions` are those of the workers that are out, both as
    of the end of the command.
    """

    events: Sequence[Event] = ()
    receipt: Receipt | None = None
    refusal: Refused | None = None
    crash: str | None = None
    path: Sequence[Message] = ()
    questions: Sequence[DecisionRequest] = ()

    def parts_unlike(self, other: "Told") -> list[str]:
        """Return the names of the parts that the two tell differently."""
        return [
            field.name
            for field in fields(self)
            if _plain(getattr(self, field.name)) != _plain(getattr(other, field.name))
        ]


def _plain(part: object) -> object:
    """Return something that can be compared: an exception is its type and its words."""
    return (type(part), str(part)) if isinstance(part, Exception) else part


class Side:
    """One engine with one session. `forgets`: between commands only the store holds it."""

    def __init__(self, spec: AgentSpec, group: asyncio.TaskGroup, *, forgets: bool) -> None:
        self.store = MemoryStore()
        self.clock = FakeClock()
        self._forgets = forgets
        numbers = itertools.count(1)
        self._sessions = _Sessions(
            store=self.store,
            agents={spec.id: RunnableAgent(spec, Mock(), None, {})},
            clock=self.clock,
            new_id=lambda prefix: f"{prefix}{next(numbers)}",
            conforms=conforms,
            group=group,
        )
        self._sessions.effects.stopping = True  # what is in flight, a test ends

    @property
    def state(self) -> State:
        """The session as it is now."""
        return self._entry.loaded()

    @property
    def _entry(self) -> Entry:
        return self._sessions.entry(SESSION)

    async def open(self) -> None:
        """Get ready for the first command."""
        await self.store.open()
        await self._sessions.state(SESSION)

    async def do(self, command: cmd.Command, *, after: timedelta) -> Told:
        """Run one command some time after the last one, and tell what came of it."""
        self.clock.advance(after)
        seq = self.state.control.seq
        try:
            receipt = await self._sessions.write(SESSION, command, BIRTH)
            events = await self.store.events(SESSION, after_seq=seq)
            told = Told(events=events, receipt=receipt)
        except Refused as refusal:
            told = Told(refusal=refusal)
        except Exception as error:  # noqa: BLE001 - whoever compares reports it
            return Told(crash=repr(error))
        try:
            if self._forgets:
                await self._load_anew()
            return replace(told, path=self._path(), questions=await self._questions())
        except Exception as error:  # noqa: BLE001 - whoever compares reports it
            return replace(told, crash=f"afterwards: {error!r}")

    async def _load_anew(self) -> None:
        self._entry.work[GOES_ON] = Running()
        self._entry.forget()
        await self._sessions.state(SESSION)

    def _path(self) -> list[Message]:
        return [node.message for node in self.state.tree.path(self.state.control.head)]

    async def _questions(self) -> list[DecisionRequest]:
        asked = [
            await self._sessions.question(self._entry, decision.id)
            for decision in self.state.control.decisions
            if decision.is_out
        ]
        return [question for question in asked if question is not None]


class _Sessions(sessions.Sessions):
    """Sessions without chance: each wait before another attempt is half of the longest."""

    def _world(self, agent_id: str, used: set[str]) -> Env:
        return replace(super()._world(agent_id, used), jitter=lambda: 0.5)


@contextmanager
def a_snapshot_with_every_commit() -> Generator[None]:
    """Let every load start from a snapshot, as one of an old session does."""
    with patch.object(sessions, "wants_snapshot", return_value=True):
        yield
