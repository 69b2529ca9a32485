"""Counts of what a database is asked, for measurements that do not depend on the machine."""

import sqlite3
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, cast
from unittest.mock import patch

_CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA", "SAVEPOINT", "RELEASE")


@dataclass(slots=True)
class Counts:
    """What was asked and answered. Bytes are those of texts; `steps` are SQLite's own."""

    queries: int = 0
    rows_read: int = 0
    bytes_read: int = 0
    writes: int = 0
    rows_written: int = 0
    bytes_written: int = 0
    steps: int = 0

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    def copy(self) -> "Counts":
        """Return these counts as they are now."""
        return self - Counts()


@contextmanager
def counted() -> Generator[Counts]:
    """Count what every connection does that is opened inside."""
    counts = Counts()
    connect = sqlite3.connect

    def opened(*args: Any, **more: Any) -> sqlite3.Connection:
        connection = connect(*args, factory=_connection_of(counts), **more)
        connection.set_progress_handler(lambda: _step(counts), 1)
        return connection

    with patch("engine.store.dialect.sqlite3.connect", opened):
        yield counts


def _step(counts: Counts) -> int:
    counts.steps += 1
    return 0


def _connection_of(counts: Counts) -> type[sqlite3.Connection]:
    class Cursor(sqlite3.Cursor):
        def fetchone(self) -> Any:
            row = super().fetchone()
            _read(counts, () if row is None else (row,))
            return row

        def fetchall(self) -> list[Any]:
            rows = super().fetchall()
            _read(counts, rows)
            return rows

        def __next__(self) -> Any:
            row = super().__next__()
            _read(counts, (row,))
            return row

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            _asked(counts, sql, (parameters,))
            return self.cursor(Cursor).execute(sql, parameters)

        def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
            given = list(parameters)
            _asked(counts, sql, given)
            return self.cursor(Cursor).executemany(sql, given)

    return Connection


def _read(counts: Counts, rows: Iterable[Any]) -> None:
    for row in rows:
        counts.rows_read += 1
        counts.bytes_read += sum(len(cell) for cell in row if isinstance(cell, str))


def _asked(counts: Counts, sql: str, parameters: Iterable[Any]) -> None:
    word = sql.lstrip().split(maxsplit=1)[0].upper()
    if word in _CONTROL:
        return
    if word in {"SELECT", "WITH"}:
        counts.queries += 1
        return
    counts.writes += 1
    for given in parameters:
        counts.rows_written += 1
        values: Iterable[Any] = (
            cast("Mapping[str, Any]", given).values() if isinstance(given, Mapping) else given
        )
        counts.bytes_written += sum(len(value) for value in values if isinstance(value, str))
