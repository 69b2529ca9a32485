"""What every store promises. Each test runs on each kind of store."""

from typing import Any

import pytest

from engine.core.errors import StorageUnavailable
from engine.core.events import (
    Event,
    HeadMoved,
    MessageNew,
    TurnCompleted,
    TurnStarted,
)
from engine.core.messages import UserMessage
from engine.core.state import Control
from engine.store.protocol import Append, Branches, Conflict, Loaded, Store
from tests.store import sample
from tests.store.notes import MADE, NOTE, note
from tests.store.sample import append, at, commit, created, row, said

# ---------------------------------------------------------------- appends


async def test_an_append_can_be_loaded(store: Store) -> None:
    """A session comes back with its row and its events, by id and by thread."""
    first = append(created(), said("m1"), title="A", busy=True, wake_at=at(60), status="running")
    await commit(store, first)
    expected = Loaded(session=first.session, snapshot=None, events=tuple(first.events))
    assert await store.load("s1") == expected
    thread = {"tenant": "t", "owner": "ada", "agent_id": "helper", "thread_id": "thread-s1"}
    assert await store.load_thread(**thread) == expected


async def test_what_is_not_there_is_none(store: Store) -> None:
    """An unknown session, thread or event is `None`, never an error."""
    await commit(store, append(created()))
    assert await store.load("nobody") is None
    thread = {"tenant": "t", "owner": "ada", "agent_id": "other", "thread_id": "thread-s1"}
    assert await store.load_thread(**thread) is None
    assert await store.last_event("nobody", type="turn.started", subject="turn-1") is None
    assert await store.events("nobody") == ()
    assert await store.paths("nobody", ["m1"]) == Branches()


async def test_an_append_moves_the_row(store: Store) -> None:
    """The row after a commit is the append's, but whose it is and its birth stay."""
    await commit(store, append(created(), title="A", busy=True, wake_at=at(9)))
    moved = append(said("m1"), after=1, title="B", status="waiting", updated_at=at(5))
    await commit(store, moved)
    loaded = await store.load("s1")
    assert loaded
    assert loaded.session == moved.session

    stranger = append(said("m2", "m1"), after=2, owner="eve", created_at=at(99), title="C")
    await commit(store, stranger)
    loaded = await store.load("s1")
    assert loaded
    assert loaded.session == row("s1", 3, title="C")


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(append(said("m9"), after=1), id="an older seq"),
        pytest.param(append(said("m9"), after=3), id="a seq nobody reached"),
        pytest.param(append(created()), id="the session exists"),
        pytest.param(append(said("m9"), session_id="s2", after=1), id="the session does not exist"),
        pytest.param(
            append(created("s2"), session_id="s2", thread_id="thread-s1"), id="the thread exists"
        ),
    ],
)
async def test_a_conflict_changes_nothing(store: Store, late: Append) -> None:
    """An append with a wrong expected seq, or of an existing thread, writes nothing at all."""
    await commit(store, append(created()), append(said("m1"), after=1))
    before = await store.load("s1")
    snapshot = Control(session_id=late.session.session_id, seq=late.session.head_seq)
    loser = Append(
        session=late.session,
        expected_seq=late.expected_seq,
        events=late.events,
        snapshot=snapshot,
        companions=[note("n1")],
    )
    assert await store.append(loser) == Conflict()
    assert await store.load("s1") == before
    assert await store.load("s2") is None
    assert await store.rows(NOTE) == ()
    assert store.transactions == 2


async def test_threads_of_other_agents_and_owners_do_not_conflict(store: Store) -> None:
    """A thread name is unique for one owner and agent only; `threads` finds all of an owner's."""
    await commit(
        store,
        append(created("s1"), session_id="s1", agent_id="b", thread_id="main"),
        append(created("s2"), session_id="s2", agent_id="a", thread_id="main"),
        append(created("s3"), session_id="s3", owner="eve", thread_id="main"),
        append(created("s4"), session_id="s4", tenant="u", thread_id="main"),
        append(created("s5"), session_id="s5"),
    )
    found = await store.threads(tenant="t", owner="ada", thread_id="main")
    assert [session.session_id for session in found] == ["s2", "s1"]
    assert await store.threads(tenant="t", owner="ada", thread_id="none") == ()


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(
            Append(session=row(head_seq=3), expected_seq=0, events=append(created()).events),
            id="head_seq is not the last event's",
        ),
        pytest.param(
            Append(
                session=row(head_seq=1), expected_seq=0, events=append(said("m"), after=1).events
            ),
            id="a gap",
        ),
        pytest.param(
            Append(session=row("s2"), expected_seq=0, events=append(created()).events),
            id="events of another session",
        ),
        pytest.param(Append(session=row(head_seq=0), expected_seq=0, events=[]), id="no beginning"),
        pytest.param(
            append(created(), snapshot=Control(session_id="s1", seq=2)), id="snapshot too new"
        ),
        pytest.param(
            append(created(), snapshot=Control(session_id="s2", seq=1)), id="snapshot of another"
        ),
        pytest.param(append(said("m1", text="\ud800")), id="half a surrogate pair"),
        pytest.param(append(TurnCompleted(data=object())), id="not JSON"),
    ],
)
async def test_an_append_that_contradicts_itself_is_refused(store: Store, wrong: Append) -> None:
    """An append that would leave a broken log is the caller's error and writes nothing."""
    with pytest.raises(ValueError):  # noqa: PT011 - the texts are for people
        await store.append(wrong)
    assert await store.sessions(limit=9) == ()
    assert store.transactions == 0


async def test_a_message_id_is_recorded_once(store: Store) -> None:
    """A second message with a recorded id fails the whole append."""
    await commit(store, append(created(), said("m1")))
    with pytest.raises(StorageUnavailable):
        await store.append(append(TurnStarted(), said("m1"), after=2))
    assert len(await store.events("s1")) == 2


async def test_nothing_mutable_is_shared(store: Store) -> None:
    """Changing a value after the append, or one that was read, changes nothing stored."""
    part = {"type": "text", "text": "as it was"}
    body = MessageNew(message=UserMessage(id="m1", content=[part]))
    await commit(store, append(body))
    part["text"] = "changed"
    for _ in range(2):
        (event,) = await store.events("s1")
        assert isinstance(event.body, MessageNew)
        content: Any = event.body.message.content
        assert content == [{"type": "text", "text": "as it was"}]
        content[0]["text"] = "changed"


async def test_a_store_that_is_not_open_refuses(store: Store) -> None:
    """A closed store raises `StorageUnavailable` for everything; closing twice is fine."""
    await store.close()
    await store.close()
    with pytest.raises(StorageUnavailable):
        await store.append(append(created()))
    with pytest.raises(StorageUnavailable):
        await store.load("s1")
    with pytest.raises(StorageUnavailable):
        await store.busy()


async def test_a_store_can_be_opened_again(store: Store) -> None:
    """What was committed is there after closing and opening."""
    await commit(store, append(created(), said("m1")))
    before = await store.load("s1")
    await store.close()
    await store.open()
    assert await store.load("s1") == before


# ----------------------------------------------------------------- queries


async def test_events_can_be_read_in_parts(store: Store) -> None:
    """`events` starts behind `after_seq`, stops at `limit`, and can keep to one turn."""
    await commit(
        store,
        append(created(), said("m1"), said("m2", "m1")),
        append(said("m3", "m2"), TurnCompleted(), after=3, turn_id="turn-2"),
        append(HeadMoved(message_id=None), after=5, turn_id=None),
    )

    async def seqs(**how: Any) -> list[int]:
        return [event.seq for event in await store.events("s1", **how)]

    assert await seqs() == [1, 2, 3, 4, 5, 6]
    assert await seqs(after_seq=2) == [3, 4, 5, 6]
    assert await seqs(after_seq=1, limit=2) == [2, 3]
    assert await seqs(limit=0) == []
    assert await seqs(turn_id="turn-2") == [4, 5]
    assert await seqs(turn_id="turn-1", after_seq=1, limit=1) == [2]
    assert await seqs(turn_id="turn-9") == []


@pytest.mark.parametrize(
    ("kind", "subject", "seq"),
    [
        pytest.param("turn.started", "turn-1", 2, id="by its turn"),
        pytest.param("turn.completed", "turn-1", 5, id="the newest of two"),
        pytest.param("turn.completed", "turn-2", None, id="of no such turn"),
        pytest.param("message.new", "m1", 3, id="a message, through the tree"),
        pytest.param("message.new", "m9", None, id="no such message"),
        pytest.param("head.moved", "m1", 6, id="a type without an index"),
        pytest.param("head.moved", "m9", None, id="a type without an index, not found"),
        pytest.param("session.created", "turn-1", 1, id="the first line"),
    ],
)
async def test_last_event(store: Store, kind: str, subject: str, seq: int | None) -> None:
    """`last_event` finds the newest event of any type by its subject."""
    bodies = (created(), TurnStarted(), said("m1"), TurnCompleted(), TurnCompleted(data=1))
    await commit(store, append(*bodies, HeadMoved(message_id="m1")))
    event = await store.last_event("s1", type=kind, subject=subject)
    assert (event and event.seq) == seq
    assert await store.last_event("s2", type=kind, subject=subject) is None


async def test_sessions_are_listed_by_their_last_update(store: Store) -> None:
    """`sessions` starts with the latest, and `before` continues where a page ended."""
    for name, moment in (("a", 1), ("b", 3), ("c", 2), ("d", 3)):
        await commit(store, append(created(name), session_id=name, updated_at=at(moment)))
    listed = await store.sessions(limit=9)
    assert [session.session_id for session in listed] == ["d", "b", "c", "a"]
    first = await store.sessions(limit=1)
    assert [session.session_id for session in first] == ["d"]
    rest = await store.sessions(limit=9, before=(at(3), "d"))
    assert [session.session_id for session in rest] == ["b", "c", "a"]


async def test_wakeups_come_in_order(store: Store) -> None:
    """`wakeups` returns what is due, earliest first; a cleared one is gone."""
    for name, wake in (("a", at(30)), ("b", at(10)), ("c", None), ("d", at(99)), ("e", at(10))):
        await commit(store, append(created(name), session_id=name, wake_at=wake))
    assert await store.wakeups(until=at(30), limit=9) == (
        (at(10), "b"),
        (at(10), "e"),
        (at(30), "a"),
    )
    assert await store.wakeups(until=at(30), limit=1) == ((at(10), "b"),)
    await commit(store, append(said("m1"), session_id="b", after=1))
    assert [name for _, name in await store.wakeups(until=at(10), limit=9)] == ["e"]


async def test_busy_sessions_are_found(store: Store) -> None:
    """`busy` lists the sessions with work in flight, until it ends."""
    for name, busy in (("b", True), ("a", True), ("c", False)):
        await commit(store, append(created(name), session_id=name, busy=busy))
    assert await store.busy() == ("a", "b")
    await commit(store, append(said("m1"), session_id="a", after=1))
    assert await store.busy() == ("b",)


# -------------------------------------------------------------- companions


async def test_companions_are_written_with_their_append(store: Store) -> None:
    """Rows of another table land with the commit; columns find them, their key sorts them."""
    await commit(store, append(created(), companions=[note("z"), note("a", None, seq=2)]))
    # A commit may be nothing but rows of others.
    await commit(store, append(after=1, companions=[note("b"), note("s", session_id="s2")]))
    found = await store.rows(NOTE, session_id="s1")
    assert [each["note_id"] for each in found] == ["a", "b", "z"]
    assert await store.rows(NOTE, session_id="s1", text=None) == (
        {"session_id": "s1", "note_id": "a", "text": None, "seq": 2, "made": MADE},
    )
    assert [each["note_id"] for each in await store.rows(NOTE)] == ["a", "b", "z", "s"]
    assert await store.rows(NOTE, note_id="none") == ()
    with pytest.raises(KeyError):
        await store.rows(NOTE, colour="red")


async def test_a_companion_may_leave_columns_out(store: Store) -> None:
    """A column that a companion does not name is null."""
    values = {name: value for name, value in note("a").values.items() if name != "text"}
    await commit(store, append(created(), companions=[note("b")]))
    await commit(store, append(after=1, companions=[type(note("a"))(table=NOTE, values=values)]))
    assert [each["text"] for each in await store.rows(NOTE)] == [None, "remember"]


async def test_a_companion_that_cannot_be_written_stops_its_append(store: Store) -> None:
    """When a companion's row exists already, nothing of the append is written."""
    await commit(store, append(created(), companions=[note("a")]))
    with pytest.raises(StorageUnavailable):
        await store.append(append(said("m1"), after=1, companions=[note("a", "again")]))
    assert len(await store.events("s1")) == 1
    assert [each["text"] for each in await store.rows(NOTE)] == ["remember"]


@pytest.mark.parametrize(
    "text", ["\u0000", "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁳󠁣󠁴󠁿", "\u2028\r\n\t\"'\\", "%s :x ?", "é\u0301"], ids=ascii
)
async def test_every_text_survives(store: Store, text: str) -> None:
    """Text comes back as it went in, in messages and titles, and (control codes aside) in ids."""
    name = "m" + text.replace("\u0000", "")
    await commit(store, append(created(), said(name, text=text), title=text))
    loaded = await store.load("s1")
    assert loaded
    assert loaded.session.title == text
    assert loaded.events[1].body == said(name, text=text)
    assert [node.message.content for node in (await store.paths("s1", [name])).nodes] == [text]


async def test_times_are_exact_and_in_utc(store: Store) -> None:
    """A moment comes back to the microsecond, in UTC, whatever its zone was."""
    for moment in (at(0.000001), at(-7e9), sample.NOW.astimezone(sample.ELSEWHERE)):
        session_id = moment.isoformat()
        event = Event(session_id, 1, moment, None, created())
        session = row(session_id, created_at=moment, updated_at=moment, wake_at=moment)
        await commit(store, Append(session=session, expected_seq=0, events=[event]))
        loaded = await store.load(session_id)
        assert loaded
        assert loaded.session == session
        assert loaded.events == (event,)
        assert loaded.session.created_at.utcoffset() == sample.at(0).utcoffset()


async def test_a_list_of_sessions_can_be_narrowed(store: Store) -> None:
    """By tenant, owner, agent and status; by nothing else."""
    for name, status, owner in (
        ("s1", "idle", "ada"),
        ("s2", "running", "ada"),
        ("s3", "idle", "bo"),
    ):
        await commit(store, append(created(), session_id=name, status=status, owner=owner))
    listed = await store.sessions(limit=9, owner="ada")
    assert {row.session_id for row in listed} == {"s1", "s2"}
    listed = await store.sessions(limit=9, owner="ada", status="idle", tenant="t")
    assert [row.session_id for row in listed] == ["s1"]
    with pytest.raises(KeyError):
        await store.sessions(limit=9, title="x")
