"""The store: what the runtime needs of a database.

A commit is atomic, and durable when :meth:`Store.append` returns. Appends are
optimistic: one with the wrong expected `seq` changes nothing and returns
:class:`Conflict`. Appends of different sessions that are ready together share one
transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypeAlias

from sqlalchemy import Table

from engine.core.events import Event
from engine.core.state import Control
from engine.core.tree import Mark, Node

SessionStatus: TypeAlias = Literal["idle", "running", "waiting", "interrupted"]


SELECTABLE = frozenset({"tenant", "owner", "agent_id", "status"})
"""What a list of sessions can be narrowed to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session as the list of sessions shows it.

    `wake_at` is the next moment at which time alone changes the session. `busy`:
    work is in flight that an engine must continue after a crash.
    """

    session_id: str
    tenant: str
    owner: str
    agent_id: str
    thread_id: str
    title: str | None
    status: SessionStatus
    head_seq: int
    created_at: datetime
    updated_at: datetime
    wake_at: datetime | None = None
    busy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """A row of somebody else's table, written in the transaction of an append."""

    table: Table
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """One session's commit.

    `session` is the row after the commit; its `head_seq` is the last event's `seq`.
    `expected_seq` is the `seq` before it; 0 creates the session. `events` may be
    empty when only companions are written. A `snapshot` replaces the older one.
    """

    session: SessionRow
    expected_seq: int
    events: Sequence[Event]
    snapshot: Control | None = None
    companions: Sequence[Companion] = ()


@dataclass(frozen=True, slots=True)
class Appended:
    """The commit is durable."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Somebody else appended first, or created the session (or its thread): load it again."""


@dataclass(frozen=True, slots=True)
class Branches:
    """A part of the message tree: messages, parents first, and where values were written."""

    nodes: Sequence[Node] = ()
    marks: Sequence[Mark] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A session as stored: its row, the newest snapshot, and the events behind that.

    `path` is the active path as of the snapshot (empty without one).
    """

    session: SessionRow
    snapshot: Control | None
    path: Branches = field(default_factory=Branches)
    events: Sequence[Event] = field(default=())


class Store(Protocol):
    """A database of sessions."""

    @property
    def transactions(self) -> int:
        """Write transactions committed so far, for tests and measurements."""
        ...

    async def open(self) -> None:
        """Create or check the schema. Call once, before anything else.

        Raises:
            EngineLocked: another engine holds the file.
            SchemaOutdated: a migration is needed first.
            StorageUnavailable: the database cannot be opened.
        """
        ...

    async def close(self) -> None:
        """Finish what is queued, then release everything. Safe to call twice."""
        ...

    def set_owner(self, url: str) -> None:
        """Tell others where the engine that holds this database answers, if they can see that."""
        ...

    async def append(self, append: Append) -> Appended | Conflict:
        """Commit.

        Raises:
            StorageUnavailable: nothing was written, or nobody knows: load the session again.
            ValueError: the append contradicts itself, or a value in it cannot be stored
                (not JSON, not Unicode, nested too deeply); nothing was written.
        """
        ...

    async def load(self, session_id: str) -> Loaded | None:
        """Return a session by id."""
        ...

    async def load_thread(
        self, *, tenant: str, owner: str, agent_id: str, thread_id: str
    ) -> Loaded | None:
        """Return the session a client's thread name stands for (unique in owner and agent)."""
        ...

    async def threads(self, *, tenant: str, owner: str, thread_id: str) -> Sequence[SessionRow]:
        """Return the sessions an owner has under a thread name, whatever their agent."""
        ...

    async def paths(self, session_id: str, message_ids: Sequence[str]) -> Branches:
        """Return the recorded ones of these messages and all above them.

        Ids that are not recorded are passed over. The marks include those above every
        message.
        """
        ...

    async def behind(self, session_id: str, message_ids: Sequence[str]) -> Branches:
        """Return what is recorded right below these messages, but for what people said.

        These are the messages that a client's view may leave out; of those named none is
        returned.
        """
        ...

    async def tree(self, session_id: str) -> Branches:
        """Return every branch of a session."""
        ...

    async def events(
        self,
        session_id: str,
        *,
        after_seq: int = 0,
        limit: int | None = None,
        turn_id: str | None = None,
    ) -> Sequence[Event]:
        """Return stored events in order."""
        ...

    async def last_event(self, session_id: str, *, type: str, subject: str) -> Event | None:
        """Return the newest event of a type about a thing, such as the `turn.completed` of a turn.

        The subject of an event is its interrupt's, call's or decision's id, else its
        message's, else its turn's: see `codec.subject`.
        """
        ...

    async def sessions(
        self, *, limit: int, before: tuple[datetime, str] | None = None, **equals: str
    ) -> Sequence[SessionRow]:
        """Return sessions, the latest updated first; `before` continues a list.

        `equals` narrows it, by the fields in :data:`SELECTABLE`.

        Raises:
            KeyError: a session cannot be asked for by that.
        """
        ...

    async def wakeups(self, *, until: datetime, limit: int) -> Sequence[tuple[datetime, str]]:
        """Return `(wake_at, session_id)` of what time changes until then, earliest first."""
        ...

    async def busy(self) -> Sequence[str]:
        """Return the sessions with work in flight, for recovery."""
        ...

    async def rows(self, table: Table, **equals: Any) -> Sequence[Mapping[str, Any]]:
        """Return companion rows whose columns equal these values, in the order of the table's key.

        Raises:
            KeyError: the table has no such column.
        """
        ...
