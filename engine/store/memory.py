"""The store in memory: the same contract, gone with the process. For tests.

It keeps the rows a database would, payloads as text, so what goes in and what comes
out is no more shared than with a file.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table

from engine.core.errors import StorageUnavailable
from engine.core.events import Event
from engine.core.tree import Mark
from engine.store import codec
from engine.store.protocol import (
    SELECTABLE,
    Append,
    Appended,
    Branches,
    Companion,
    Conflict,
    Loaded,
    SessionRow,
)
from engine.store.rows import (
    VALUES,
    EventColumns,
    Row,
    Rows,
    SessionColumns,
    ends_before,
    from_micros,
    recorded_until,
    rows_of,
    to_control,
    to_event,
    to_marks,
    to_micros,
    to_nodes,
    to_session,
)
from engine.store.tables import SESSION


class MemoryStore:
    """A `Store` without a database. What it holds stays when it is closed and opened again.

    Example:
        store = MemoryStore()
        await store.open()
        await store.append(Append(session=row, expected_seq=0, events=events))
    """

    def __init__(self) -> None:
        self._transactions = 0
        self._is_open = False
        self._sessions: dict[str, Row] = {}
        self._threads: dict[tuple[str, ...], str] = {}
        self._events: defaultdict[str, list[Row]] = defaultdict(list)
        self._messages: defaultdict[str, dict[str, Row]] = defaultdict(dict)
        self._snapshots: dict[str, Row] = {}
        self._companions: defaultdict[str, list[Row]] = defaultdict(list)

    @property
    def transactions(self) -> int:
        """Appends committed so far."""
        return self._transactions

    async def open(self) -> None:
        """Allow reading and writing."""
        self._is_open = True

    async def close(self) -> None:
        """Refuse everything until opened again."""
        self._is_open = False

    def set_owner(self, url: str) -> None:
        """Nobody but this process can see this store."""

    # --------------------------------------------------------------- write

    async def append(self, append: Append) -> Appended | Conflict:
        """Commit; see :meth:`Store.append`."""
        self._check_open()
        rows = rows_of(append)
        # Other tasks run while a database commits; here too.
        await asyncio.sleep(0)
        if self._conflicts(rows):
            return Conflict()
        self._check_unique(rows)
        session_id = rows.session["session_id"]
        self._sessions[session_id] = _without_guard(rows, self._sessions.get(session_id))
        self._threads[_thread(rows.session)] = session_id
        self._events[session_id].extend(rows.events)
        self._messages[session_id].update({row["id"]: row for row in rows.messages})
        if rows.snapshot is not None:
            self._snapshots[session_id] = rows.snapshot
        for companion in rows.companions:
            self._companions[companion.table.name].append(_companion_row(companion))
        self._transactions += 1
        return Appended()

    def _conflicts(self, rows: Rows) -> bool:
        stored = self._sessions.get(rows.session["session_id"])
        if rows.creates:
            return stored is not None or _thread(rows.session) in self._threads
        return stored is None or stored["head_seq"] != rows.session["expected_seq"]

    def _check_unique(self, rows: Rows) -> None:
        recorded = self._messages[rows.session["session_id"]].keys()
        new = [row["id"] for row in rows.messages]
        if len({*recorded, *new}) != len(recorded) + len(new):
            raise StorageUnavailable("A message with this id is recorded already.")
        for companion in rows.companions:
            key = {column.name for column in companion.table.primary_key}
            wanted = {name: value for name, value in companion.values.items() if name in key}
            if any(self._matching(companion.table, wanted)):
                raise StorageUnavailable(f"This row of {companion.table.name} exists already.")

    # ---------------------------------------------------------------- read

    async def load(self, session_id: str) -> Loaded | None:
        """Return a session by id."""
        self._check_open()
        row = self._sessions.get(session_id)
        if row is None:
            return None
        snapshot = self._snapshots.get(session_id)
        after_seq = 0 if snapshot is None else snapshot["seq"]
        lines = self._events[session_id][after_seq:]
        events = tuple(to_event(session_id, _columns(line)) for line in lines)
        control = None if snapshot is None else to_control(session_id, snapshot["control"])
        path = Branches()
        if control is not None:
            path = self._paths(session_id, ends_before(control, events))
        return Loaded(
            session=_session(row),
            snapshot=control,
            path=recorded_until(after_seq, path),
            events=events,
        )

    async def load_thread(
        self, *, tenant: str, owner: str, agent_id: str, thread_id: str
    ) -> Loaded | None:
        """Return the session a client's thread name stands for."""
        self._check_open()
        session_id = self._threads.get((tenant, owner, thread_id, agent_id))
        return None if session_id is None else await self.load(session_id)

    async def threads(self, *, tenant: str, owner: str, thread_id: str) -> Sequence[SessionRow]:
        """Return the sessions an owner has under a thread name, by agent."""
        self._check_open()
        wanted = (tenant, owner, thread_id)
        found = sorted(thread for thread in self._threads if thread[:3] == wanted)
        return tuple(_session(self._sessions[self._threads[thread]]) for thread in found)

    async def paths(self, session_id: str, message_ids: Sequence[str]) -> Branches:
        """Return the recorded ones of these messages and all above them."""
        self._check_open()
        return self._paths(session_id, message_ids)

    async def behind(self, session_id: str, message_ids: Sequence[str]) -> Branches:
        """Return what is recorded right below these messages, but for what people said."""
        self._check_open()
        messages, events = self._messages[session_id], self._events[session_id]
        below: dict[str, EventColumns] = {
            row["id"]: _columns(events[int(row["seq"]) - 1])
            for row in messages.values()
            if row["parent_id"] in message_ids
            and row["id"] not in message_ids
            and row["role"] != "user"
        }
        return Branches(to_nodes(session_id, below.values()), self._marks(session_id, below))

    async def tree(self, session_id: str) -> Branches:
        """Return every branch of a session."""
        self._check_open()
        return self._paths(session_id, list(self._messages[session_id]))

    def _paths(self, session_id: str, message_ids: Sequence[str]) -> Branches:
        messages, events = self._messages[session_id], self._events[session_id]
        found: set[int] = set()
        for message_id in message_ids:
            row = messages.get(message_id)
            while row is not None and row["seq"] not in found:
                found.add(row["seq"])
                row = messages.get(row["parent_id"])
        nodes = to_nodes(session_id, [_columns(events[seq - 1]) for seq in sorted(found)])
        anchors = {codec.ABOVE_ALL, *(node.message.id for node in nodes)}
        return Branches(nodes, self._marks(session_id, anchors))

    def _marks(self, session_id: str, anchors: Collection[str]) -> tuple[Mark, ...]:
        newest = {
            (event["type"], event["subject"]): event["seq"]
            for event in self._events[session_id]
            if event["type"] in VALUES and event["subject"] in anchors
        }
        return to_marks((*place, seq) for place, seq in newest.items())

    async def events(
        self,
        session_id: str,
        *,
        after_seq: int = 0,
        limit: int | None = None,
        turn_id: str | None = None,
    ) -> Sequence[Event]:
        """Return stored events in order."""
        self._check_open()
        lines = [
            row
            for row in self._events[session_id]
            if row["seq"] > after_seq and turn_id in {None, row["turn_id"]}
        ]
        return tuple(to_event(session_id, _columns(row)) for row in lines[:limit])

    async def last_event(self, session_id: str, *, type: str, subject: str) -> Event | None:
        """Return the newest event of a type about a thing."""
        self._check_open()
        for row in reversed(self._events[session_id]):
            if row["type"] == type:
                event = to_event(session_id, _columns(row))
                if codec.subject(event) == subject:
                    return event
        return None

    async def sessions(
        self, *, limit: int, before: tuple[datetime, str] | None = None, **equals: str
    ) -> Sequence[SessionRow]:
        """Return sessions, the latest updated first; see :meth:`Store.sessions`."""
        self._check_open()
        for name in equals.keys() - SELECTABLE:
            raise KeyError(name)
        listed = sorted(
            (
                (row["updated_at"], session_id)
                for session_id, row in self._sessions.items()
                if all(row[name] == value for name, value in equals.items())
            ),
            reverse=True,
        )
        if before is not None:
            listed = [place for place in listed if place < (to_micros(before[0]), before[1])]
        return tuple(_session(self._sessions[session_id]) for _, session_id in listed[:limit])

    async def wakeups(self, *, until: datetime, limit: int) -> Sequence[tuple[datetime, str]]:
        """Return the sessions that time changes until then, earliest first."""
        self._check_open()
        last = to_micros(until)
        due = sorted(
            (row["wake_at"], session_id)
            for session_id, row in self._sessions.items()
            if row["wake_at"] is not None and row["wake_at"] <= last
        )
        return tuple((from_micros(wake_at), session_id) for wake_at, session_id in due[:limit])

    async def busy(self) -> Sequence[str]:
        """Return the sessions with work in flight."""
        self._check_open()
        return tuple(sorted(key for key, row in self._sessions.items() if row["busy"]))

    async def rows(self, table: Table, **equals: Any) -> Sequence[Mapping[str, Any]]:
        """Return companion rows whose columns equal these values, in the order of its key."""
        self._check_open()
        key = [column.name for column in table.primary_key]
        found = sorted(self._matching(table, equals), key=lambda row: [row[name] for name in key])
        return tuple(dict(row) for row in found)

    def _matching(self, table: Table, equals: Mapping[str, Any]) -> Iterator[Row]:
        for name in equals:
            _ = table.c[name]  # a name that is no column is a KeyError, as in a database
        for row in self._companions[table.name]:
            if all(row[name] == value for name, value in equals.items()):
                yield row

    def _check_open(self) -> None:
        if not self._is_open:
            raise StorageUnavailable("The store is not open.")


def _thread(session: Row) -> tuple[str, ...]:
    return tuple(session[name] for name in ("tenant", "owner", "thread_id", "agent_id"))


def _without_guard(rows: Rows, stored: Row | None) -> Row:
    """Return the session's row; whose it is and when it began never change."""
    row = {name: value for name, value in rows.session.items() if name != "expected_seq"}
    if stored is not None:
        row |= {
            name: stored[name]
            for name in ("tenant", "owner", "agent_id", "thread_id", "created_at")
        }
    return row


def _companion_row(companion: Companion) -> Row:
    return {column.name: companion.values.get(column.name) for column in companion.table.c}


def _session(row: Row) -> SessionRow:
    return to_session(cast("SessionColumns", tuple(row[column.name] for column in SESSION.c)))


def _columns(row: Row) -> EventColumns:
    return (row["seq"], row["type"], row["turn_id"], row["occurred_at"], row["payload"])
