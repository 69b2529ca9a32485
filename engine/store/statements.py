"""Every statement of the store, compiled once from the tables."""

from functools import cache
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Integer,
    Select,
    Table,
    bindparam,
    func,
    literal_column,
    select,
    text,
    tuple_,
    update,
)

from engine.store.codec import ABOVE_ALL
from engine.store.dialect import each, insert, sql
from engine.store.protocol import SELECTABLE
from engine.store.rows import VALUES
from engine.store.tables import EVENT, MESSAGE, SESSION, SNAPSHOT

# ---------------------------------------------------------------- writing

CREATE_SESSION = sql(
    insert(SESSION).values({c.name: bindparam(c.name) for c in SESSION.c}).on_conflict_do_nothing()
)
"""Writes nothing when the session or its thread exists."""

MOVE_SESSION = sql(
    update(SESSION)
    .where(
        SESSION.c.session_id == bindparam("session_id"),
        SESSION.c.head_seq == bindparam("expected_seq"),
    )
    .values(
        {
            name: bindparam(name)
            for name in ("title", "status", "head_seq", "updated_at", "wake_at", "busy")
        }
    )
)
"""Writes nothing when somebody else moved the session."""

INSERT_EVENT = sql(insert(EVENT))
INSERT_MESSAGE = sql(insert(MESSAGE))


def _replace_snapshot() -> str:
    new = insert(SNAPSHOT)
    return sql(
        new.on_conflict_do_update(
            index_elements=[SNAPSHOT.c.session_id],
            set_={name: new.excluded[name] for name in ("seq", "head", "control")},
        )
    )


REPLACE_SNAPSHOT = _replace_snapshot()

# ---------------------------------------------------------------- reading

_EVENT_COLUMNS = (
    EVENT.c.seq,
    EVENT.c.type,
    EVENT.c.turn_id,
    EVENT.c.occurred_at,
    EVENT.c.payload,
)
_of_session = EVENT.c.session_id == bindparam("session_id")
_of_type = EVENT.c.type == bindparam("type")


def _first(query: Select[*tuple[Any, ...]], limit: ColumnElement[int]) -> str:
    # SQLAlchemy writes an offset in any case; as a parameter it would have to be given.
    return sql(query.limit(limit).offset(literal_column("0")))


_limit = bindparam("limit", type_=Integer)
_load = select(*SESSION.c, SNAPSHOT.c.seq, SNAPSHOT.c.head, SNAPSHOT.c.control).outerjoin_from(
    SESSION, SNAPSHOT, SNAPSHOT.c.session_id == SESSION.c.session_id
)
_thread = (
    SESSION.c.tenant == bindparam("tenant"),
    SESSION.c.owner == bindparam("owner"),
    SESSION.c.thread_id == bindparam("thread_id"),
)

LOAD = sql(_load.where(SESSION.c.session_id == bindparam("session_id")))
"""A session's columns, then `seq, head, control` of its snapshot (null without one)."""

LOAD_THREAD = sql(_load.where(*_thread, SESSION.c.agent_id == bindparam("agent_id")))

THREADS = sql(select(*SESSION.c).where(*_thread).order_by(SESSION.c.agent_id))

EVENTS = _first(
    select(*_EVENT_COLUMNS)
    .where(_of_session, EVENT.c.seq > bindparam("after_seq"))
    .order_by(EVENT.c.seq),
    _limit,
)

EVENTS_OF_TURN = _first(
    select(*_EVENT_COLUMNS)
    .where(
        _of_session, EVENT.c.seq > bindparam("after_seq"), EVENT.c.turn_id == bindparam("turn_id")
    )
    .order_by(EVENT.c.seq),
    _limit,
)

LAST_FINDABLE = _first(
    select(*_EVENT_COLUMNS)
    .where(_of_session, _of_type, EVENT.c.subject == bindparam("subject"))
    .order_by(EVENT.c.seq.desc()),
    literal_column("1"),
)

LAST_OF_TYPE = sql(
    select(*_EVENT_COLUMNS).where(_of_session, _of_type).order_by(EVENT.c.seq.desc())
)

_recording = (
    select(*_EVENT_COLUMNS)
    .join_from(
        MESSAGE,
        EVENT,
        (EVENT.c.session_id == MESSAGE.c.session_id) & (EVENT.c.seq == MESSAGE.c.seq),
    )
    .where(MESSAGE.c.session_id == bindparam("session_id"))
)

LAST_MESSAGE = sql(_recording.where(MESSAGE.c.id == bindparam("subject")))


@cache
def sessions(equals: tuple[str, ...]) -> str:
    """Return the query for a page of sessions in which some columns equal parameters.

    Raises:
        KeyError: it is not one of `SELECTABLE`.
    """
    for name in equals:
        if name not in SELECTABLE:
            raise KeyError(name)
    return _first(
        select(*SESSION.c)
        .where(
            tuple_(SESSION.c.updated_at, SESSION.c.session_id)
            < tuple_(bindparam("updated_at"), bindparam("session_id")),
            *(SESSION.c[name] == bindparam(name) for name in equals),
        )
        .order_by(SESSION.c.updated_at.desc(), SESSION.c.session_id.desc()),
        _limit,
    )


WAKEUPS = _first(
    select(SESSION.c.wake_at, SESSION.c.session_id)
    .where(SESSION.c.wake_at <= bindparam("until"))
    .order_by(SESSION.c.wake_at, SESSION.c.session_id),
    _limit,
)

# The very words of the partial index: another way to say it would not use it.
BUSY = sql(select(SESSION.c.session_id).where(text("busy")).order_by(SESSION.c.session_id))


_is_value = EVENT.c.type.in_([literal_column(f"'{kind}'") for kind in VALUES])
_marks = (
    select(EVENT.c.type, EVENT.c.subject, func.max(EVENT.c.seq))
    .where(_of_session, _is_value, EVENT.c.subject.is_not(None))
    .group_by(EVENT.c.type, EVENT.c.subject)
)


def _upward() -> CTE:
    """Return the messages named by the JSON list `message_ids`, and all above them."""
    recorded = select(MESSAGE.c.id, MESSAGE.c.parent_id, MESSAGE.c.seq).where(
        MESSAGE.c.session_id == bindparam("session_id")
    )
    path = recorded.where(MESSAGE.c.id.in_(each("message_ids"))).cte("path", recursive=True)
    # UNION, not UNION ALL: where two paths meet, the rest is walked once.
    return path.union(recorded.where(MESSAGE.c.id == path.c.parent_id))


_path = _upward()

# Not a join: SQLite would walk the whole log and look for each event in the path.
PATHS = sql(
    select(*_EVENT_COLUMNS)
    .where(_of_session, EVENT.c.seq.in_(select(_path.c.seq)))
    .order_by(EVENT.c.seq)
)
"""The events that recorded the messages named by the JSON list `message_ids`, and all above."""

MARKS = sql(
    _marks.where(
        EVENT.c.subject.in_(select(_path.c.id).union_all(select(literal_column(f"'{ABOVE_ALL}'"))))
    )
)
"""The newest events that wrote each value at those messages, or above every message."""

_is_behind = (
    MESSAGE.c.parent_id.in_(each("message_ids"))
    & MESSAGE.c.id.not_in(each("message_ids"))
    & (MESSAGE.c.role != literal_column("'user'"))
)

BEHIND = sql(_recording.where(_is_behind).order_by(EVENT.c.seq))
"""What stands right below the messages named by `message_ids`, but for user messages."""

MARKS_BEHIND = sql(
    _marks.where(
        EVENT.c.subject.in_(
            select(MESSAGE.c.id).where(MESSAGE.c.session_id == bindparam("session_id"), _is_behind)
        )
    )
)

ALL_MESSAGES = sql(_recording.order_by(EVENT.c.seq))

ALL_MARKS = sql(_marks)

# ------------------------------------------------------- other people's tables


@cache
def insert_into(table: Table, columns: tuple[str, ...]) -> str:
    """Return the statement that writes these columns of a companion's table."""
    return sql(insert(table).values({name: bindparam(name) for name in columns}))


@cache
def select_from(table: Table, equals: tuple[str, ...], nulls: tuple[str, ...]) -> str:
    """Return the query for a companion's rows in which some columns equal parameters."""
    conditions = [
        *(table.c[name] == bindparam(name) for name in equals),
        *(table.c[name].is_(None) for name in nulls),
    ]
    return sql(select(*table.c).where(*conditions).order_by(*table.primary_key))
