"""Time for sessions: wake those whose moment has come.

Only what is near is held in memory; what is far is a row with a `wake_at`, found by
looking again from time to time. A paused session costs nothing here.
"""

import asyncio
import heapq
import logging
from datetime import datetime, timedelta
from typing import Protocol

from engine.core import commands as cmd
from engine.core.errors import EngineError
from engine.core.handle import Receipt
from engine.core.ports import Clock
from engine.store.protocol import Store

logger = logging.getLogger(__name__)

HORIZON = timedelta(seconds=60)
"""What is due within this time is held in memory."""

LOOK_EVERY = timedelta(seconds=30)
"""How often the database is asked; less than the horizon, so that nothing is missed."""

BATCH = 1_000
"""Wake-ups read at once. More of them are read as soon as these are through."""


class Writer(Protocol):
    """The one write path."""

    async def write(self, session_id: str, command: cmd.Command) -> Receipt:
        """Run a command."""
        ...


class Timers:
    """The wake-ups of one engine."""

    def __init__(self, sessions: Writer, *, clock: Clock, store: Store) -> None:
        self._sessions = sessions
        self._clock = clock
        self._store = store
        self._heap: list[tuple[datetime, str]] = []
        self._until: datetime | None = None
        self._changed = asyncio.Event()

    def note(self, session_id: str, wake_at: datetime | None) -> None:
        """Remember that a session is due at a time, if that is soon."""
        if wake_at is None or self._until is None or wake_at > self._until:
            return
        is_first = not self._heap or wake_at < self._heap[0][0]
        heapq.heappush(self._heap, (wake_at, session_id))
        if is_first:
            self._changed.set()

    async def run(self) -> None:
        """Wake sessions, until cancelled."""
        while True:
            try:
                look_again = await self._look()
                await self._until_then(look_again)
            except EngineError:
                logger.exception("timers: the database did not answer; trying again")
                await self._clock.sleep_until(self._clock.now() + timedelta(seconds=1))

    async def _look(self) -> datetime:
        """Read what is due soon; return when to look again."""
        now = self._clock.now()
        self._until = now + HORIZON
        found = await self._store.wakeups(until=self._until, limit=BATCH)
        for wake_at, session_id in found:
            heapq.heappush(self._heap, (wake_at, session_id))
        return now if len(found) == BATCH else now + LOOK_EVERY

    async def _until_then(self, look_again: datetime) -> None:
        while True:
            now = self._clock.now()
            due: set[str] = set()
            while self._heap and self._heap[0][0] <= now:
                due.add(heapq.heappop(self._heap)[1])
            for session_id in due:
                await self._wake(session_id)
            if look_again <= now:
                return
            upcoming = min(look_again, self._heap[0][0]) if self._heap else look_again
            await self._sleep(upcoming)

    async def _sleep(self, until: datetime) -> None:
        """Sleep until then, or until something nearer is noted."""
        self._changed.clear()
        sleeper = asyncio.ensure_future(self._clock.sleep_until(until))
        waiter = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({sleeper, waiter}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            waiter.cancel()

    async def _wake(self, session_id: str) -> None:
        try:
            await self._sessions.write(session_id, cmd.PassTime())
        except EngineError as error:
            logger.warning("session %s could not be woken: %s", session_id, error)
