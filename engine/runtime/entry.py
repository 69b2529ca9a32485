"""A session's place in memory."""

import asyncio
from dataclasses import dataclass, field

from engine.core.pending import Work
from engine.core.state import State
from engine.runtime.feed import Feed
from engine.store.protocol import SessionRow


@dataclass(slots=True, eq=False)
class Running:
    """A piece of outside work under way. `reporting`: it is through, and tells the session."""

    task: asyncio.Task[None] | None = None
    reporting: bool = False

    def cancel(self) -> None:
        """Stop the work; one that reports is left to end, for its commit is under way."""
        if self.task is not None and not self.reporting:
            self.task.cancel()


@dataclass(slots=True, eq=False, weakref_slot=True)
class Entry:
    """One session: its lock, its state, its readers and its running work.

    `state` is `None` until it is loaded, and again when an append failed.
    `looked_behind`: messages of which all is in memory that a view may leave out behind them.
    `orphaned`: loaded with work that another process was running.
    """

    session_id: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    state: State | None = None
    row: SessionRow | None = None
    snapshot_seq: int = 0
    is_new: bool = False
    looked_behind: set[str] = field(default_factory=set[str])
    orphaned: bool = False
    feed: Feed = field(default_factory=lambda: Feed(0))
    work: dict[Work, Running] = field(default_factory=dict["Work", "Running"])

    def loaded(self) -> State:
        """Return the state of an entry that is loaded."""
        if self.state is None:
            message = f"session {self.session_id} is not loaded"
            raise RuntimeError(message)
        return self.state

    def forget(self) -> None:
        """Drop the state: the database knows better."""
        self.state = None
        self.row = None
        self.is_new = False
        self.looked_behind.clear()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way here."""
        return not self.work and not self.lock.locked()
