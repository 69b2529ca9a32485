"""What only a file can show: groups, durability, failures, and what is not read."""

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from engine.core.errors import StorageUnavailable
from engine.core.state import Control
from engine.store import dialect, statements
from engine.store.protocol import Appended, Conflict
from engine.store.sql import SqlStore
from tests.store.notes import METADATA, note
from tests.store.sample import append, created, replied, said


@contextmanager
def write_lock(path: Path) -> Generator[None]:
    """Hold the database's write lock, so that the store's writer waits with its first group."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def started(*tasks: asyncio.Task[Appended | Conflict]) -> None:
    """Let these tasks run until they wait."""
    await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


# ------------------------------------------------------------------ groups


async def test_what_is_ready_shares_a_transaction(file_store: SqlStore) -> None:
    """Appends that wait together are committed together, and all are durable."""
    count = 100
    async with asyncio.TaskGroup() as group:
        with write_lock(file_store.path):
            tasks = [
                group.create_task(
                    file_store.append(append(created(f"s{n}"), said("m"), session_id=f"s{n}"))
                )
                for n in range(count)
            ]
            await started(*tasks)
    assert {task.result() for task in tasks} == {Appended()}
    # The first group is what the writer met when it woke up; the rest is the second.
    assert file_store.transactions <= 2
    await file_store.close()
    reopened = SqlStore(file_store.path, metadata=METADATA)
    await reopened.open()
    assert len(await reopened.sessions(limit=2 * count)) == count
    await reopened.close()


async def test_one_of_two_in_a_group_wins(file_store: SqlStore) -> None:
    """Two appends to one place that share a transaction: one commits, one is a conflict."""
    async with asyncio.TaskGroup() as group:
        with write_lock(file_store.path):
            tasks = [
                group.create_task(file_store.append(append(created(), said(name))))
                for name in ("m1", "m2")
            ]
            await started(*tasks)
    assert [task.result() for task in tasks] == [Appended(), Conflict()]
    assert [node.message.id for node in (await file_store.paths("s1", ["m1", "m2"])).nodes] == [
        "m1"
    ]


async def test_a_session_may_append_twice_in_a_group(file_store: SqlStore) -> None:
    """An append that expects what the one before it writes commits in the same group."""
    async with asyncio.TaskGroup() as group:
        with write_lock(file_store.path):
            first = group.create_task(file_store.append(append(created())))
            second = group.create_task(file_store.append(append(said("m1"), after=1)))
            await started(first, second)
    assert (first.result(), second.result()) == (Appended(), Appended())
    assert [event.seq for event in await file_store.events("s1")] == [1, 2]


async def test_only_the_append_with_bad_values_fails(file_store: SqlStore) -> None:
    """In a group, an append the database refuses fails alone; the others commit."""
    assert await file_store.append(append(created("s0"), session_id="s0", companions=[note("a")]))
    async with asyncio.TaskGroup() as group:
        with write_lock(file_store.path):
            good = group.create_task(file_store.append(append(created())))
            bad = group.create_task(
                _outcome(file_store, append(created("s2"), session_id="s2", companions=[note("a")]))
            )
            lone = group.create_task(
                _outcome(file_store, append(created("s3"), session_id="s3", title="\ud800"))
            )
            fine = group.create_task(file_store.append(append(created("s4"), session_id="s4")))
            await started(good, fine)
    assert (good.result(), fine.result()) == (Appended(), Appended())
    assert isinstance(bad.result(), StorageUnavailable)
    assert isinstance(lone.result(), UnicodeEncodeError)
    listed = {session.session_id for session in await file_store.sessions(limit=9)}
    assert listed == {"s0", "s1", "s4"}


async def _outcome(store: SqlStore, one: object) -> object:
    try:
        return await store.append(one)  # pyright: ignore[reportArgumentType]
    except (StorageUnavailable, ValueError) as error:
        return error


async def test_a_cancelled_caller_does_not_stop_its_commit(file_store: SqlStore) -> None:
    """Cancelling who waits for an append leaves the commit, and the writer, as they were."""
    with write_lock(file_store.path):
        task = asyncio.create_task(file_store.append(append(created())))
        await started(task)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await file_store.append(append(said("m1"), after=1)) == Appended()
    assert [event.seq for event in await file_store.events("s1")] == [1, 2]


async def test_closing_finishes_what_is_queued(file_store: SqlStore) -> None:
    """Appends that were queued before `close` are committed and answered."""
    tasks = [
        asyncio.create_task(file_store.append(append(created(f"s{n}"), session_id=f"s{n}")))
        for n in range(20)
    ]
    await asyncio.sleep(0)
    await file_store.close()
    assert {await task for task in tasks} == {Appended()}
    with closing(sqlite3.connect(file_store.path)) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (20,)


# ---------------------------------------------------------------- failures


async def test_a_full_disk_is_unavailable_and_then_works_again(file_store: SqlStore) -> None:
    """A write that does not fit raises and changes nothing; with room the same one commits."""
    assert await file_store.append(append(created())) == Appended()
    pages = await file_store.pragma("page_count")
    await file_store.pragma("max_page_count", pages)
    large = append(said("m1", text="x" * 100_000), after=1)
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="the disk is full"):
            await file_store.append(large)
    assert [event.seq for event in await file_store.events("s1")] == [1]
    await file_store.pragma("max_page_count", 1_000_000)
    assert await file_store.append(large) == Appended()
    assert file_store.transactions == 2


async def test_a_group_that_fails_fails_for_all(file_store: SqlStore) -> None:
    """When the database fails under a group, each caller gets an error of its own."""
    await file_store.pragma("busy_timeout", 0)
    with write_lock(file_store.path):
        outcomes = await asyncio.gather(
            *(_outcome(file_store, append(created(s), session_id=s)) for s in ("s1", "s2", "s3"))
        )
    assert all(isinstance(outcome, StorageUnavailable) for outcome in outcomes)
    assert len({id(outcome) for outcome in outcomes}) == 3
    assert "another program holds its lock" in str(outcomes[0])
    assert await file_store.append(append(created())) == Appended()


async def test_a_read_only_database_is_unavailable(file_store: SqlStore) -> None:
    """Writing where writing is forbidden raises `StorageUnavailable`; reading goes on."""
    await file_store.append(append(created()))
    await file_store.pragma("query_only", 1)
    with pytest.raises(StorageUnavailable, match="read-only"):
        await file_store.append(append(said("m1"), after=1))
    assert await file_store.load("s1")
    await file_store.pragma("query_only", 0)
    assert await file_store.append(append(said("m1"), after=1)) == Appended()


async def test_a_damaged_line_names_its_place(file_store: SqlStore) -> None:
    """A payload that cannot be read raises `StorageUnavailable` with session and seq."""
    await file_store.append(append(created(), said("m1")))
    with closing(sqlite3.connect(file_store.path)) as other, other:
        other.execute("UPDATE event SET payload = '{' WHERE seq = 2")
    with pytest.raises(StorageUnavailable, match="Event 2 of session s1 cannot be read"):
        await file_store.load("s1")
    with pytest.raises(StorageUnavailable):
        await file_store.paths("s1", ["m1"])


async def test_a_damaged_snapshot_is_named(file_store: SqlStore) -> None:
    """A snapshot that cannot be read, or a path through no message, raises with a sentence."""
    await file_store.append(append(created(), said("m1"), snapshot=Control(session_id="s1", seq=2)))
    with closing(sqlite3.connect(file_store.path)) as other, other:
        other.execute("UPDATE snapshot SET control = '{'")
        other.execute("UPDATE message SET seq = 1")
    with pytest.raises(StorageUnavailable, match="snapshot of session s1 cannot be read"):
        await file_store.load("s1")
    with pytest.raises(StorageUnavailable, match="Event 1 of session s1 recorded no message"):
        await file_store.paths("s1", ["m1"])


def test_a_place_without_a_wal_is_refused() -> None:
    """Where SQLite cannot keep a WAL, an engine does not start."""
    with (
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(StorageUnavailable, match="local disk"),
    ):
        dialect.prepare_writer(connection, "FULL")


# --------------------------------------------------------- what is not read


async def test_a_cold_load_reads_only_what_it_returns(file_store: SqlStore) -> None:
    """Lines before the snapshot, and branches beside its path, are not even parsed."""
    bodies = (created(), said("m1"), replied("m2", "m1"), replied("n2", "m1"))
    await file_store.append(append(*bodies, snapshot=Control(session_id="s1", seq=4, head="n2")))
    await file_store.append(append(said("n3", "n2"), after=4))
    with closing(sqlite3.connect(file_store.path)) as other, other:
        other.execute("UPDATE event SET payload = 'broken' WHERE seq IN (1, 3)")
    loaded = await file_store.load("s1")
    assert loaded
    assert [node.message.id for node in loaded.path.nodes] == ["m1", "n2"]
    assert [event.seq for event in loaded.events] == [5]


@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("LOAD", {"PRIMARY KEY"}),
        ("LOAD_THREAD", {"sqlite_autoindex_session_2", "PRIMARY KEY"}),
        ("THREADS", {"sqlite_autoindex_session_2"}),
        ("EVENTS", {"sqlite_autoindex_event_1"}),
        ("LAST_FINDABLE", {"event_subject"}),
        ("LAST_MESSAGE", {"PRIMARY KEY", "sqlite_autoindex_event_1"}),
        ("LAST_OF_TYPE", {"sqlite_autoindex_event_1"}),
        ("PATHS", {"PRIMARY KEY", "sqlite_autoindex_event_1"}),
        ("MARKS", {"event_subject"}),
        ("BEHIND", {"message_behind", "sqlite_autoindex_event_1"}),
        ("MARKS_BEHIND", {"event_subject", "message_behind"}),
        ("ALL_MESSAGES", {"message_behind", "sqlite_autoindex_event_1"}),
        ("ALL_MARKS", {"event_subject"}),
        ("WAKEUPS", {"session_wake"}),
        ("BUSY", {"session_busy"}),
    ],
)
async def test_queries_use_their_index(file_store: SqlStore, name: str, indexes: set[str]) -> None:
    """No query of the store walks a whole table, and none but `paths` has to sort."""
    await _walks_nothing(file_store, getattr(statements, name), indexes, sorts=name in SORTING)


async def test_a_page_of_sessions_uses_its_index(file_store: SqlStore) -> None:
    """An owner's list is read in its order; only a backend's, over all owners, is sorted."""
    for equals in (("owner", "tenant"), ("agent_id", "owner", "status", "tenant")):
        await _walks_nothing(file_store, statements.sessions(equals), {"session_updated"})
    narrowed = statements.sessions(("status", "tenant"))
    await _walks_nothing(file_store, narrowed, {"(tenant=?"}, sorts=True)


SORTING = {"PATHS", "ALL_MESSAGES", "BEHIND", "MARKS"}
"""Queries that have to sort what they found: never more than they return."""


async def _walks_nothing(
    file_store: SqlStore, text: str, indexes: set[str], *, sorts: bool = False
) -> None:
    with closing(dialect.connect(file_store.path, read_only=True)) as connection:
        values = dict.fromkeys(_parameters(text), 1) | {"message_ids": "[]"}
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    used = {index for index in indexes for step in plan if index in step}
    assert used == indexes, plan
    walked = [step for step in plan if step.startswith("SCAN") and "INDEX" not in step]
    assert [
        step
        for step in walked
        if not any(small in step for small in ("json_each", "path", "CONSTANT ROW"))
    ] == [], plan
    assert sorts or not any("TEMP B-TREE" in step for step in plan), plan


def _parameters(text: str) -> list[str]:
    return [word.strip("(),").removeprefix(":") for word in text.split() if ":" in word]


# ----------------------------------------------------------------- settings


async def test_commits_are_flushed_to_the_disk_by_default(file_store: SqlStore) -> None:
    """`synchronous` is FULL (2) and the journal a WAL unless the caller says otherwise."""
    assert await file_store.pragma("synchronous") == 2
    assert await file_store.pragma("journal_mode") == "wal"
    with pytest.raises(ValueError, match="not a plain PRAGMA"):
        await file_store.pragma("x; DROP TABLE session")


async def test_synchronous_can_be_chosen(path: Path) -> None:
    """Whoever accepts losing the last commits in a power cut says `NORMAL` (1)."""
    store = SqlStore(path, metadata=METADATA, synchronous="NORMAL")
    await store.open()
    assert await store.pragma("synchronous") == 1
    await store.close()
