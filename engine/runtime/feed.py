"""What readers of one session wait for: committed events, and live text.

A feed keeps no queue for anybody. It remembers the newest events and the live text
of the calls in flight; a reader has its own place in both.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.events import Event
from engine.core.state import Control
from engine.runtime.live import LiveText

RECENT_EVENTS = 256
"""Events kept in memory for readers. Who is further behind reads from the store."""

GROUP_S = 0.016
"""How long live text may wait to go out together with what follows: as long as a screen
shows one picture, so nobody sees it, and long enough to make one write of many deltas.
The first text after a silence of this length never waits."""


@dataclass(frozen=True, slots=True)
class Told:
    """A committed event, and what is open after it.

    `control` is `None` for a reader that fell so far behind that it reads from the store.
    """

    event: Event
    control: Control | None


class Feed:
    """The newest of one session."""

    def __init__(self, seq: int) -> None:
        self.seq = seq
        """The newest committed event."""
        self.live: dict[tuple[str, int], LiveText] = {}
        """Live text by call id and attempt."""
        self.live_version = 0
        self._recent: deque[Sequence[Told]] = deque()
        self._recent_events = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._text_due = 0.0
        """The loop's time before which more live text wakes nobody."""

    @property
    def readers(self) -> int:
        """How many wait right now."""
        return len(self._waiters)

    def publish(self, commit: Sequence[Told]) -> None:
        """Show a commit to everybody."""
        if not commit:
            return
        self._recent.append(commit)
        self._recent_events += len(commit)
        while self._recent_events > RECENT_EVENTS and len(self._recent) > 1:
            self._recent_events -= len(self._recent.popleft())
        self.seq = commit[-1].event.seq
        self.wake()

    def recent(self, after_seq: int) -> list[Sequence[Told]] | None:
        """Return the commits after `after_seq`; `None`: memory does not reach so far back."""
        if after_seq >= self.seq:
            return []
        if not self._recent or self._recent[0][0].event.seq > after_seq + 1:
            return None
        return [commit for commit in self._recent if commit[-1].event.seq > after_seq]

    def live_changed(self) -> None:
        """Say that some live text grew: readers wake now, or in a moment with what follows."""
        self.live_version += 1
        if self._waiters and self._timer is None:
            self._wake_for_text()

    async def wait(self, *, seq: int, live_version: int) -> None:
        """Return when there is more than this reader has seen.

        New live text alone may wait :data:`GROUP_S` since it last woke anybody.
        """
        if self.seq > seq:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        if self.live_version > live_version and self._timer is None:
            self._wake_for_text()
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _wake_for_text(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now < self._text_due:
            self._timer = loop.call_at(self._text_due, self._wake_late)
        else:
            self._text_due = now + GROUP_S
            self.wake()

    def _wake_late(self) -> None:
        self._text_due = asyncio.get_running_loop().time() + GROUP_S
        self.wake()

    def wake(self) -> None:
        """Wake everybody who waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
