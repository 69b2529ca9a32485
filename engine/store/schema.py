"""The schema of a database file: made when empty, checked when not.

Alembic's `alembic_version` says which revision a database has. An empty database
gets every table and that mark in one exclusive transaction, so that of two programs
that start at once one creates and the other finds it done. Alembic itself is only
imported to migrate.
"""

import contextlib
import sqlite3
from pathlib import Path

from sqlalchemy import Column, MetaData, PrimaryKeyConstraint, String, Table

from engine.core.errors import SchemaOutdated, StorageUnavailable
from engine.store import dialect
from engine.store.dialect import Connection
from engine.store.migrations import HEAD

_VERSION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""As alembic makes it."""


def ensure(connection: Connection, metadata: MetaData, path: Path) -> None:
    """Make the schema of an empty database, or check the one it has.

    A table of another package that a current database lacks is made, too: that
    package is new to this file.

    Raises:
        SchemaOutdated: a migration is needed first.
        StorageUnavailable: the database is not ours, or newer than this version.
    """
    if is_current(connection, metadata, path):
        return
    connection.execute(dialect.BEGIN_SCHEMA)
    try:
        # Again, now that nobody else can write.
        if not is_current(connection, metadata, path):
            _create(connection, metadata)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def is_current(connection: Connection, metadata: MetaData, path: Path) -> bool:
    """Whether nothing is left to create.

    Raises:
        SchemaOutdated: a migration is needed first.
        StorageUnavailable: the database is not ours, or newer than this version.
    """
    names = _table_names(connection)
    if not names:
        return False
    check_revision(connection, path)
    return names >= set(metadata.tables)


def check_revision(connection: Connection, path: Path) -> None:
    """Refuse a database whose revision is not :data:`HEAD`, the empty one too.

    Raises:
        SchemaOutdated: a migration is needed first.
        StorageUnavailable: the database is not ours, or newer than this version.
    """
    if _VERSION.name not in _table_names(connection):
        raise StorageUnavailable(f"{path} is no database of an engine.")
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    found = str(row[0]) if row else "none"
    if row and found > HEAD:
        raise StorageUnavailable(
            f"{path} was written by a newer version (schema {found}, this one knows {HEAD}). "
            "Install that version."
        )
    if found != HEAD:
        raise SchemaOutdated(found, HEAD)


def _create(connection: Connection, metadata: MetaData) -> None:
    present = _table_names(connection)
    if not present:
        for statement in dialect.create_table(_VERSION):
            connection.execute(statement)
        connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (HEAD,))
    for table in metadata.sorted_tables:
        if table.name not in present:
            for statement in dialect.create_table(table):
                connection.execute(statement)


def _table_names(connection: Connection) -> set[str]:
    return {str(name) for (name,) in connection.execute(dialect.TABLE_NAMES)}
