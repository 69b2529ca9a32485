"""The schema: made in one step or migrated to, with the same result."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Column, MetaData, String, Table
from sqlmodel import SQLModel

import agui_server.agui.table
from engine.core.errors import EngineLocked, SchemaOutdated, StorageUnavailable
from engine.store import dialect, schema
from engine.store.migrations import HEAD, migrate
from engine.store.migrations.upgrade import configuration
from engine.store.sql import SqlStore
from engine.store.tables import ALL
from tests.store.notes import METADATA
from tests.store.sample import append, content, created

PRODUCT = MetaData()
for _table in (*ALL, agui_server.agui.table.TABLE):
    _table.to_metadata(PRODUCT)


def statements(path: Path) -> dict[str, str]:
    """Return what made each table and index of a database."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        # Alembic ends a table's statement with a line more; its meaning is the same.
        return {name: " ".join(sql.split()) for name, sql in rows}


def revision(path: Path, value: str | None = None) -> None:
    """Change what a database says its revision is; `None` takes the mark away."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM alembic_version")
        if value is not None:
            connection.execute("INSERT INTO alembic_version VALUES (?)", (value,))


async def make(path: Path, metadata: MetaData = PRODUCT) -> None:
    """Make a database by opening it."""
    store = SqlStore(path, metadata=metadata)
    await store.open()
    await store.close()


def test_the_constant_is_the_newest_revision() -> None:
    """`HEAD` is the head of the migrations folder, and the revisions form one line."""
    assert ScriptDirectory.from_config(configuration()).get_heads() == [HEAD]


async def test_migrating_gives_the_schema_that_creating_gives(tmp_path: Path) -> None:
    """Every revision applied to an empty file equals the tables of this version."""
    made, migrated = tmp_path / "made.db", tmp_path / "migrated.db"
    await make(made)
    migrated.touch()
    migrate(migrated)
    assert statements(migrated) == statements(made)
    # And it is current: opening creates nothing, migrating again changes nothing.
    migrate(migrated)
    await make(migrated)
    assert statements(migrated) == statements(made)


def test_the_product_has_no_table_without_a_revision() -> None:
    """What is imported with the server is what the first test compares."""
    ours = {*PRODUCT.tables}
    assert {name for name in SQLModel.metadata.tables if name not in ours} == set()


def test_a_current_database_needs_no_alembic(path: Path) -> None:
    """Starting imports no migration tool, neither on a new file nor on a current one."""
    script = """
import asyncio, sys
from engine.store.sql import SqlStore
async def main():
    for _ in range(2):
        store = SqlStore(sys.argv[1])
        await store.open()
        await store.close()
asyncio.run(main())
assert "alembic" not in sys.modules
"""
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, cwd=root)


@pytest.mark.parametrize(
    ("found", "error"),
    [
        pytest.param("0000", SchemaOutdated, id="older"),
        pytest.param(None, SchemaOutdated, id="without a mark"),
        pytest.param("9999", StorageUnavailable, id="newer"),
    ],
)
@pytest.mark.parametrize("read_only", [False, True], ids=["engine", "reader"])
async def test_another_revision_is_refused(
    path: Path, found: str | None, error: type[Exception], *, read_only: bool
) -> None:
    """A database of another revision is not opened, not even to read, and not changed."""
    await make(path)
    revision(path, found)
    before = content(path)
    with pytest.raises(error):
        await SqlStore(path, read_only=read_only).open()
    assert content(path) == before


async def test_a_newer_database_is_not_migrated(path: Path) -> None:
    """A file of a newer version is left as it was."""
    await make(path)
    revision(path, "9999")
    with pytest.raises(StorageUnavailable, match="newer version"):
        migrate(path)


async def test_migrating_needs_the_lock(path: Path) -> None:
    """No migration runs under a running engine."""
    store = SqlStore(path, metadata=PRODUCT)
    await store.open()
    with pytest.raises(EngineLocked):
        migrate(path)
    await store.close()


def test_migrating_nothing_is_an_error(path: Path) -> None:
    """A file that does not exist is not made by migrating it."""
    with pytest.raises(StorageUnavailable, match="cannot be opened"):
        migrate(path)
    assert not path.exists()


async def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    """All revisions land in one transaction: when one fails, the file is as it was."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        # In the way of the first revision's last table.
        connection.execute("CREATE TABLE run (x)")
    before = statements(path)
    with pytest.raises(StorageUnavailable, match="already exists"):
        migrate(path)
    assert statements(path) == before


def test_two_programs_that_start_at_once_make_one_schema(path: Path) -> None:
    """Of many that find an empty file, one creates the schema and all find it whole."""
    count = 8
    barrier = Barrier(count)

    def start(_: int) -> bool:
        with closing(dialect.connect(path, create=True)) as connection:
            barrier.wait()
            schema.ensure(connection, PRODUCT, path)
            dialect.prepare_writer(connection, "FULL")
            return schema.is_current(connection, PRODUCT, path)

    with ThreadPoolExecutor(count) as threads:
        assert list(threads.map(start, range(count))) == [True] * count
    with closing(sqlite3.connect(path)) as connection:
        marks = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    assert marks == [(HEAD,)]


async def test_a_schema_is_made_whole_or_not_at_all(path: Path) -> None:
    """When one table cannot be made, the file has none, and a later start begins anew."""
    impossible = MetaData()
    for table in (*ALL, Table("sqlite_reserved", MetaData(), Column("x", String))):
        table.to_metadata(impossible)
    with pytest.raises(StorageUnavailable, match="reserved"):
        await make(path, impossible)
    assert statements(path) == {}
    await make(path)
    assert "session" in statements(path)


async def test_a_new_package_gets_its_table(path: Path) -> None:
    """A file an engine made alone gains another package's table when that opens it."""
    alone = MetaData()
    for table in ALL:
        table.to_metadata(alone)
    store = SqlStore(path, metadata=alone)
    await store.open()
    await store.append(append(created()))
    await store.close()
    assert "note" not in statements(path)
    store = SqlStore(path, metadata=METADATA)
    await store.open()
    assert "note" in statements(path)
    assert len(await store.events("s1")) == 1
    await store.close()
