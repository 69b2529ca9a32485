"""What differs between databases: connecting, locking, a few words of SQL, and errors.

SQLite, for now. Statements are compiled with *named* parameters (`:session_id`), so
that no code counts places; psycopg has the same style under another spelling.
"""

import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from sqlalchemy import (
    ClauseElement,
    Column,
    Select,
    String,
    Table,
    bindparam,
    column,
    func,
    select,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from engine.core.errors import StorageUnavailable

Connection: TypeAlias = sqlite3.Connection
Parameters: TypeAlias = Mapping[str, Any]
Synchronous: TypeAlias = Literal["EXTRA", "FULL", "NORMAL", "OFF"]

BUSY_TIMEOUT_MS = 5000
"""How long a write waits for another program's lock. The engine has one writer, so
only a person's `sqlite3` shell or a backup is ever waited for."""

BEGIN_WRITE = "BEGIN IMMEDIATE"
"""Takes the write lock at once: a transaction that first reads could not keep its view."""

BEGIN_READ = "BEGIN"
BEGIN_SCHEMA = "BEGIN EXCLUSIVE"

WITHOUT_LIMIT = 2**62
"""A `LIMIT` that is none, in every database."""

TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table'"

insert = sqlite.insert
"""`INSERT` with `ON CONFLICT`; PostgreSQL's has the same methods."""

_DIALECT = sqlite.dialect(paramstyle="named")

# -------------------------------------------------------------- connecting


def connect(path: Path, *, read_only: bool = False, create: bool = False) -> Connection:
    """Open a connection that any one thread at a time may use.

    Transactions are begun and ended by hand.
    """
    mode = "ro" if read_only else "rwc" if create else "rw"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    return connection


def prepare_writer(connection: Connection, synchronous: Synchronous) -> None:
    """Set a writer up: readers beside it, and commits that survive a power cut (`FULL`).

    Raises:
        StorageUnavailable: the file system cannot do it.
    """
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StorageUnavailable(
            f"The database cannot be opened in WAL mode (it stays in {mode!r}): "
            "keep it on a local disk."
        )
    connection.execute(f"PRAGMA synchronous = {synchronous}")


@contextmanager
def one_view(connection: Connection) -> Generator[None]:
    """Let several reads see one moment of the database."""
    connection.execute(BEGIN_READ)
    try:
        yield
    finally:
        connection.execute("COMMIT")


# ---------------------------------------------------------------- compiling


def sql(statement: ClauseElement) -> str:
    """Return a statement's text, with named parameters."""
    return str(statement.compile(dialect=_DIALECT))


def each(name: str) -> Select[str]:
    """Return a query of the strings in a parameter that holds a JSON list."""
    return select(column("value", String)).select_from(func.json_each(bindparam(name)))


def create_table(table: Table) -> Iterator[str]:
    """Return the statements that create a table and its indexes, as alembic writes them."""
    yield str(CreateTable(table).compile(dialect=_DIALECT)).strip()
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        yield str(CreateIndex(index).compile(dialect=_DIALECT))


def to_database(column: Column[Any], value: Any) -> Any:
    """Return a value as the driver takes it for a column."""
    process = column.type.dialect_impl(_DIALECT).bind_processor(_DIALECT)
    return value if process is None else process(value)


def from_database(column: Column[Any], value: Any) -> Any:
    """Return a column's value from what the driver gave."""
    process = column.type.dialect_impl(_DIALECT).result_processor(_DIALECT, None)
    return value if process is None else process(value)


# ------------------------------------------------------------------- errors

_LASTING = {
    sqlite3.SQLITE_BUSY: "another program holds its lock",
    sqlite3.SQLITE_LOCKED: "another program holds its lock",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore a backup",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that it exists and may be read",
    sqlite3.SQLITE_PERM: "the file system refuses access",
    sqlite3.SQLITE_AUTH: "the file system refuses access",
    sqlite3.SQLITE_PROTOCOL: "its locks do not work on this file system",
    sqlite3.SQLITE_NOTADB: "it is not a database",
}


def _code(error: Exception) -> int:
    # Extended codes keep the primary one in their lowest byte.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def concerns_database(error: Exception) -> bool:
    """Whether the database as a whole failed, not one statement with its values."""
    return isinstance(error, sqlite3.Error) and _code(error) in _LASTING


def unavailable(error: sqlite3.Error, path: Path) -> StorageUnavailable:
    """Return a driver's error as ours, with a sentence."""
    reason = _LASTING.get(_code(error), "")
    said = f"{reason} ({error})" if reason else str(error)
    failure = StorageUnavailable(f"The database {path} cannot be used: {said}.")
    failure.__cause__ = error
    return failure


@contextmanager
def translated(path: Path) -> Generator[None]:
    """Turn the driver's errors into `StorageUnavailable`."""
    try:
        yield
    except sqlite3.Error as error:
        raise unavailable(error, path) from error
