"""Clocks: the real one, and one that a test moves by hand."""

import asyncio
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)

    async def sleep_until(self, when: datetime) -> None:
        """Return at `when`, or at once when it has passed."""
        await asyncio.sleep(max(0.0, (when - self.now()).total_seconds()))


class FakeClock:
    """A clock that stands still until :meth:`advance` is called."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._sleepers: list[tuple[datetime, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Return the time this clock shows."""
        return self._now

    async def sleep_until(self, when: datetime) -> None:
        """Return once the clock was moved to `when`, or at once when it has passed."""
        if when <= self._now:
            return
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((when, sleeper))
        await sleeper

    def advance(self, by: timedelta) -> None:
        """Move on, and wake everybody whose time has come."""
        self._now += by
        due = [sleeper for when, sleeper in self._sleepers if when <= self._now]
        self._sleepers = [(when, s) for when, s in self._sleepers if when > self._now]
        for sleeper in due:
            if not sleeper.done():
                sleeper.set_result(None)
