"""The SQL store: one writer thread, two reader threads, one file.

The hot paths are the append and `load_thread` of a thread nobody has seen. Both run
prepared statements on the driver's own connection: one hop to a thread and back.
"""

import asyncio
import re
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import MetaData, Table
from sqlmodel import SQLModel

from engine.core.errors import StorageUnavailable
from engine.core.events import Event
from engine.store import dialect, reader, schema, statements
from engine.store.dialect import Connection, Synchronous
from engine.store.lane import Lane
from engine.store.lock import EngineLock
from engine.store.protocol import Append, Appended, Branches, Conflict, Loaded, SessionRow
from engine.store.rows import Rows, from_micros, rows_of, to_micros
from engine.store.writer import Writer

READERS = 2
"""One long log being read must not hold up the short questions behind it."""

_Question: TypeAlias = Callable[[Connection], Any]
_T = TypeVar("_T")


class SqlStore:
    """A `Store` on an SQLite file. One engine a file; see `lock.py`.

    `metadata` holds the tables to create: all that were imported, unless told
    otherwise. `synchronous` is SQLite's: under `FULL` a commit survives a power cut,
    under `NORMAL` only the end of the process. With `read_only` the database is neither
    locked nor written, an engine may run beside it, and `append` is refused. (SQLite may
    leave its `-wal` and `-shm` files, without content, where no engine runs.)

    Every method raises `StorageUnavailable` when the database fails or is not open.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        metadata: MetaData = SQLModel.metadata,
        synchronous: Synchronous = "FULL",
        read_only: bool = False,
    ) -> None:
        self.path = Path(path)
        self._metadata = metadata
        self._synchronous: Synchronous = synchronous
        self._read_only = read_only
        self._lock = EngineLock(self.path)
        # Changed on the event loop only, so nothing is asked of a lane that ends.
        self._accepting = False
        # Opening and closing happen in threads, and a cancelled caller does not stop them.
        self._switching = threading.Lock()
        self._connections: list[Connection] = []
        self._writer: Writer | None = None
        self._writing: Lane[Rows] | None = None
        self._reading: Lane[_Question] | None = None

    @property
    def transactions(self) -> int:
        """Write transactions committed so far."""
        return self._writer.transactions if self._writer else 0

    # ------------------------------------------------------ open and close

    async def open(self) -> None:
        """Open the file; see :meth:`Store.open`."""
        await asyncio.to_thread(self._open, asyncio.get_running_loop())
        self._accepting = True

    async def close(self) -> None:
        """Finish what is queued, then release everything. Safe to call twice."""
        self._accepting = False
        await asyncio.to_thread(self._close)

    def set_owner(self, url: str) -> None:
        """Write the engine's address into the lock's file, for the command line to find."""
        self._lock.set_owner(url)

    def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._switching, dialect.translated(self.path):
            if self._reading is not None:
                raise StorageUnavailable(f"{self.path} is open already.")
            self._check_path()
            try:
                writer = None if self._read_only else self._open_writer()
                readers = [self._connect(read_only=True) for _ in range(READERS)]
                if self._read_only:
                    schema.check_revision(readers[0], self.path)
            except BaseException:
                self._release()
                raise
            self._start(loop, writer, readers)

    def _check_path(self) -> None:
        if self._read_only and not self.path.exists():
            raise StorageUnavailable(f"There is no database {self.path}.")
        if not self.path.parent.is_dir():
            raise StorageUnavailable(
                f"The folder {self.path.parent} of the database does not exist; create it first."
            )
        if self.path.is_dir():
            raise StorageUnavailable(f"{self.path} is a folder; name a file in it.")

    def _open_writer(self) -> Connection:
        self._lock.acquire()
        connection = self._connect(create=True)
        schema.ensure(connection, self._metadata, self.path)
        # After the check: a file that is not ours is left as it was.
        dialect.prepare_writer(connection, self._synchronous)
        return connection

    def _connect(self, *, read_only: bool = False, create: bool = False) -> Connection:
        connection = dialect.connect(self.path, read_only=read_only, create=create)
        self._connections.append(connection)
        return connection

    def _start(
        self,
        loop: asyncio.AbstractEventLoop,
        writer: Connection | None,
        readers: Sequence[Connection],
    ) -> None:
        if writer is not None:
            self._writer = Writer(writer, self.path)
            self._writing = Lane("store-writer", self._writer.commit, loop=loop)
            self._writing.start()
        answers = [partial(self._answer, connection) for connection in readers]
        self._reading = Lane("store-reader", *answers, loop=loop, at_once=1)
        self._reading.start()

    def _close(self) -> None:
        with self._switching:
            writing, self._writing = self._writing, None
            reading, self._reading = self._reading, None
            if writing is not None:
                writing.finish()
            if reading is not None:
                reading.finish()
            self._release()

    def _release(self) -> None:
        # The writer's connection was opened first and goes last: it tidies the WAL up.
        while self._connections:
            with suppress(sqlite3.Error):
                self._connections.pop().close()
        self._lock.release()

    # --------------------------------------------------------------- write

    async def append(self, append: Append) -> Appended | Conflict:
        """Commit, together with what other sessions have ready; see :meth:`Store.append`.

        A caller that is cancelled stops waiting; the commit goes on.
        """
        rows = rows_of(append)
        if self._writing is None or not self._accepting:
            raise self._not_open("written")
        return await self._writing.ask(rows)

    async def pragma(self, name: str, value: str | int | None = None) -> Any:
        """Return a PRAGMA of the writer's connection, or set it: for tests and measurements."""
        if re.fullmatch(r"\w+", f"{name}{'' if value is None else value}") is None:
            raise ValueError(f"{name!r} = {value!r} is not a plain PRAGMA")
        if not self._accepting:
            raise self._not_open("read")
        return await asyncio.to_thread(self._pragma, name, value)

    def _pragma(self, name: str, value: str | int | None) -> Any:
        assignment = "" if value is None else f" = {value}"
        with dialect.translated(self.path):
            row = self._connections[0].execute(f"PRAGMA {name}{assignment}").fetchone()
        return None if row is None else row[0]

    # ---------------------------------------------------------------- read

    async def load(self, session_id: str) -> Loaded | None:
        """Return a session by id."""
        parameters = {"session_id": session_id}
        return await self._read(lambda c: reader.load(c, statements.LOAD, parameters))

    async def load_thread(
        self, *, tenant: str, owner: str, agent_id: str, thread_id: str
    ) -> Loaded | None:
        """Return the session a client's thread name stands for."""
        parameters = {
            "tenant": tenant,
            "owner": owner,
            "agent_id": agent_id,
            "thread_id": thread_id,
        }
        return await self._read(lambda c: reader.load(c, statements.LOAD_THREAD, parameters))

    async def threads(self, *, tenant: str, owner: str, thread_id: str) -> Sequence[SessionRow]:
        """Return the sessions an owner has under a thread name, by agent."""
        parameters = {"tenant": tenant, "owner": owner, "thread_id": thread_id}
        return await self._read(lambda c: reader.sessions(c, statements.THREADS, parameters))

    async def paths(self, session_id: str, message_ids: Sequence[str]) -> Branches:
        """Return the recorded ones of these messages and all above them."""
        return await self._read(lambda c: reader.paths(c, session_id, message_ids))

    async def behind(self, session_id: str, message_ids: Sequence[str]) -> Branches:
        """Return what is recorded right below these messages, but for what people said."""
        return await self._read(lambda c: reader.behind(c, session_id, message_ids))

    async def tree(self, session_id: str) -> Branches:
        """Return every branch of a session."""
        return await self._read(lambda c: reader.tree(c, session_id))

    async def events(
        self,
        session_id: str,
        *,
        after_seq: int = 0,
        limit: int | None = None,
        turn_id: str | None = None,
    ) -> Sequence[Event]:
        """Return stored events in order."""
        parameters = {
            "session_id": session_id,
            "after_seq": after_seq,
            "limit": dialect.WITHOUT_LIMIT if limit is None else limit,
            "turn_id": turn_id,
        }
        return await self._read(lambda c: reader.events(c, parameters))

    async def last_event(self, session_id: str, *, type: str, subject: str) -> Event | None:
        """Return the newest event of a type about a thing."""
        parameters = {"session_id": session_id, "type": type, "subject": subject}
        return await self._read(lambda c: reader.last_event(c, parameters))

    async def sessions(
        self, *, limit: int, before: tuple[datetime, str] | None = None, **equals: str
    ) -> Sequence[SessionRow]:
        """Return sessions, the latest updated first; see :meth:`Store.sessions`."""
        statement = statements.sessions(tuple(sorted(equals)))
        moment, session_id = (dialect.WITHOUT_LIMIT, "") if before is None else before
        parameters = {
            "updated_at": to_micros(moment) if isinstance(moment, datetime) else moment,
            "session_id": session_id,
            "limit": limit,
            **equals,
        }
        return await self._read(lambda c: reader.sessions(c, statement, parameters))

    async def wakeups(self, *, until: datetime, limit: int) -> Sequence[tuple[datetime, str]]:
        """Return the sessions that time changes until then, earliest first."""
        parameters = {"until": to_micros(until), "limit": limit}
        found = await self._fetch(statements.WAKEUPS, parameters)
        return tuple((from_micros(wake_at), session_id) for wake_at, session_id in found)

    async def busy(self) -> Sequence[str]:
        """Return the sessions with work in flight."""
        return tuple(session_id for (session_id,) in await self._fetch(statements.BUSY, {}))

    async def rows(self, table: Table, **equals: Any) -> Sequence[Mapping[str, Any]]:
        """Return companion rows whose columns equal these values, in the order of its key."""
        return await self._read(lambda c: reader.rows(c, table, equals))

    async def _fetch(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        return await self._read(lambda c: c.execute(statement, parameters).fetchall())

    async def _read(self, question: Callable[[Connection], _T]) -> _T:
        if self._reading is None or not self._accepting:
            raise self._not_open("read")
        return await self._reading.ask(question)

    def _answer(self, connection: Connection, questions: Sequence[_Question]) -> Sequence[Any]:
        answers: list[Any] = []
        for question in questions:
            try:
                answers.append(question(connection))
            except sqlite3.Error as error:
                answers.append(dialect.unavailable(error, self.path))
            except Exception as error:  # noqa: BLE001 - raised where the question was asked
                answers.append(error)
        return answers

    def _not_open(self, verb: str) -> StorageUnavailable:
        state = "open for reading only" if self._accepting else "not open"
        return StorageUnavailable(f"{self.path} cannot be {verb}: the store is {state}.")
