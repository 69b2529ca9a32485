"""The one writer: everything that is ready goes into one transaction."""

import contextlib
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import Table

from engine.store import dialect, statements
from engine.store.dialect import Connection
from engine.store.protocol import Appended, Companion, Conflict
from engine.store.rows import Row, Rows

Outcome: TypeAlias = Appended | Conflict | Exception

_APPENDED = Appended()
_CONFLICT = Conflict()


class Writer:
    """Commits groups of appends on one connection. Used by one thread."""

    def __init__(self, connection: Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self.transactions = 0

    def commit(self, group: Sequence[Rows]) -> Sequence[Outcome]:
        """Commit the appends of a group whose session is where they expect it.

        Several appends to one session are judged in their order. An append whose
        values the database refuses fails alone; when the database itself fails, all
        of the group do, and the next group tries anew.
        """
        try:
            return self._commit(group)
        except Exception as error:  # noqa: BLE001 - every caller of the group must hear of it
            self._roll_back()
            if len(group) > 1 and not dialect.concerns_database(error):
                return [outcome for rows in group for outcome in self.commit([rows])]
            return [self._failure(error) for _ in group]

    def _commit(self, group: Sequence[Rows]) -> Sequence[Outcome]:
        connection = self._connection
        connection.execute(dialect.BEGIN_WRITE)
        outcomes = [_APPENDED if self._move(rows) else _CONFLICT for rows in group]
        won = [rows for rows, outcome in zip(group, outcomes, strict=True) if outcome is _APPENDED]
        if not won:
            connection.execute("ROLLBACK")
            return outcomes
        self._write(statements.INSERT_EVENT, [row for rows in won for row in rows.events])
        self._write(statements.INSERT_MESSAGE, [row for rows in won for row in rows.messages])
        self._write(statements.REPLACE_SNAPSHOT, [rows.snapshot for rows in won if rows.snapshot])
        self._write_companions([row for rows in won for row in rows.companions])
        connection.execute("COMMIT")
        self.transactions += 1
        return outcomes

    def _move(self, rows: Rows) -> bool:
        """Move the session's row; it is the lock that all other rows rely on."""
        statement = statements.CREATE_SESSION if rows.creates else statements.MOVE_SESSION
        return self._connection.execute(statement, rows.session).rowcount == 1

    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        if rows:
            self._connection.executemany(statement, rows)

    def _write_companions(self, companions: Sequence[Companion]) -> None:
        by_shape: defaultdict[tuple[Table, tuple[str, ...]], list[Row]] = defaultdict(list)
        for companion in companions:
            columns = companion.table.c
            row = {
                name: dialect.to_database(columns[name], value)
                for name, value in companion.values.items()
            }
            by_shape[companion.table, tuple(row)].append(row)
        for (table, names), rows in by_shape.items():
            self._write(statements.insert_into(table, names), rows)

    def _roll_back(self) -> None:
        # SQLite has rolled back by itself after some errors (a full disk).
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _failure(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.Error):
            return dialect.unavailable(error, self._path)
        return error
