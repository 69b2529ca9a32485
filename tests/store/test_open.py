"""Opening a file: the lock, readers beside an engine, and files that are no database."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from engine.core.errors import EngineLocked, StorageUnavailable
from engine.store.lock import Owner, lock_path, read_owner
from engine.store.protocol import Appended
from engine.store.sql import SqlStore
from tests.store.notes import METADATA
from tests.store.sample import append, content, created, said

# ---------------------------------------------------------------- the lock


async def test_one_engine_a_file(file_store: SqlStore, path: Path) -> None:
    """A second engine is refused with the first one's process and address."""
    file_store.set_owner("http://127.0.0.1:8000")
    with pytest.raises(EngineLocked) as refused:
        await SqlStore(path, metadata=METADATA).open()
    assert refused.value.path == str(path)
    assert refused.value.owner == f"process {os.getpid()} at http://127.0.0.1:8000"
    assert read_owner(path) == Owner(pid=os.getpid(), url="http://127.0.0.1:8000")
    # The engine that runs is not disturbed.
    assert await file_store.append(append(created())) == Appended()


async def test_two_names_of_a_file_have_one_lock(file_store: SqlStore, path: Path) -> None:
    """A symbolic link does not lead around the lock."""
    link = path.with_name("link.db")
    link.symlink_to(path)
    with pytest.raises(EngineLocked):
        await SqlStore(link, metadata=METADATA).open()


async def test_closing_gives_the_lock_back(file_store: SqlStore, path: Path) -> None:
    """After `close` another engine can start, and nobody is named as the owner."""
    await file_store.close()
    assert read_owner(path) is None
    other = SqlStore(path, metadata=METADATA)
    await other.open()
    await other.close()


async def test_a_killed_engine_leaves_no_lock(path: Path) -> None:
    """`kill -9` frees the file; what was committed is there, whatever the lock's file says."""
    script = """
import asyncio, sys
from engine.store.sql import SqlStore
from tests.store.sample import append, created

async def main():
    store = SqlStore(sys.argv[1])
    await store.open()
    await store.append(append(created()))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(path), stdout=subprocess.PIPE, cwd=_root()
    )
    assert process.stdout
    assert await process.stdout.readline() == b"ready\n"
    with pytest.raises(EngineLocked, match=str(process.pid)):
        await SqlStore(path).open()
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    store = SqlStore(path)
    await store.open()
    assert [event.seq for event in await store.events("s1")] == [1]
    await store.close()


def _root() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"pid": "x"}', "{}"])
def test_an_owner_nobody_can_read_is_unknown(path: Path, text: str) -> None:
    """A lock's file that was cut short, or is of another program, names no owner."""
    assert read_owner(path) is None
    lock_path(path).write_text(text)
    assert read_owner(path) is None


# ------------------------------------------------------------------ readers


async def test_a_reader_beside_an_engine(file_store: SqlStore, path: Path) -> None:
    """A read-only store sees each commit of a running engine, and writes nothing."""
    reader = SqlStore(path, read_only=True)
    await reader.open()
    await file_store.append(append(created()))
    assert len(await reader.events("s1")) == 1
    await file_store.append(append(said("m1"), after=1))
    assert len(await reader.events("s1")) == 2
    with pytest.raises(StorageUnavailable, match="open for reading only"):
        await reader.append(append(said("m2", "m1"), after=2))
    await reader.close()
    assert read_owner(path) == Owner(pid=os.getpid())


async def test_a_reader_after_an_engine(file_store: SqlStore, path: Path) -> None:
    """A database no engine runs on can be read, and stays as it was, byte for byte."""
    await file_store.append(append(created()))
    await file_store.close()
    before = content(path)
    reader = SqlStore(path, read_only=True)
    await reader.open()
    assert len(await reader.events("s1")) == 1
    await reader.close()
    assert content(path) == before
    engine = SqlStore(path, metadata=METADATA)
    await engine.open()
    await engine.close()


async def test_a_reader_creates_nothing(path: Path) -> None:
    """Reading a database that does not exist says so, and leaves no file."""
    with pytest.raises(StorageUnavailable, match="There is no database"):
        await SqlStore(path, read_only=True).open()
    assert list(path.parent.iterdir()) == []


# -------------------------------------------------------- what cannot be opened


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A database in a folder that does not exist is not made, and the folder is named."""
    path = tmp_path / "missing" / "engine.db"
    with pytest.raises(StorageUnavailable, match=r"folder .*missing"):
        await SqlStore(path).open()


async def test_a_folder_is_no_database(tmp_path: Path) -> None:
    """A folder given as the file is refused with a sentence."""
    with pytest.raises(StorageUnavailable, match="is a folder"):
        await SqlStore(tmp_path).open()


def letter(path: Path) -> None:
    """Write a file that is no database."""
    path.write_bytes(b"This is a letter, not a database. " * 100)


@pytest.mark.parametrize("read_only", [False, True], ids=["engine", "reader"])
async def test_a_file_that_is_no_database(path: Path, *, read_only: bool) -> None:
    """Some other file is refused, left as it was, and not left locked."""
    letter(path)
    before = content(path)
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="it is not a database"):
            await SqlStore(path, read_only=read_only).open()
    assert content(path) == before


@pytest.mark.parametrize("read_only", [False, True], ids=["engine", "reader"])
async def test_the_database_of_another_program(path: Path, *, read_only: bool) -> None:
    """A database with somebody else's tables is refused and not changed."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE stamps (country TEXT)")
    before = content(path)
    with pytest.raises(StorageUnavailable, match="no database of an engine"):
        await SqlStore(path, read_only=read_only).open()
    assert content(path) == before


async def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """Where no lock can be made, no engine starts, and the reason is given."""
    blocked = tmp_path / "engine.db.lock"
    blocked.mkdir()
    with pytest.raises(StorageUnavailable, match=r"lock .* cannot be made"):
        await SqlStore(tmp_path / "engine.db").open()


async def test_opening_twice_is_refused(file_store: SqlStore) -> None:
    """A store that is open cannot be opened again, and goes on working."""
    with pytest.raises(StorageUnavailable, match="open already"):
        await file_store.open()
    assert await file_store.append(append(created())) == Appended()


async def test_an_opening_that_was_cancelled_can_be_closed(path: Path) -> None:
    """Whoever gives up while a store opens still closes it: nothing stays locked."""
    store = SqlStore(path, metadata=METADATA)
    task = asyncio.create_task(store.open())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.close()
    await store.open()
    await store.close()
