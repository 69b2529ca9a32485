"""What is read: functions on a connection, run in a reader's thread.

Decoding happens there too, so a long log does not hold up the event loop.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Table

from engine.core.events import Event, MessageNew
from engine.store import codec, dialect, statements
from engine.store.dialect import Connection, Parameters
from engine.store.protocol import Branches, Loaded, SessionRow
from engine.store.rows import (
    FINDABLE,
    EventColumns,
    SessionColumns,
    ends_before,
    recorded_until,
    to_control,
    to_event,
    to_marks,
    to_nodes,
    to_session,
)

MESSAGE_NEW = codec.type_of(MessageNew)


def load(connection: Connection, statement: str, parameters: Parameters) -> Loaded | None:
    """Return the session that `LOAD` or `LOAD_THREAD` finds: one query when there is none."""
    with dialect.one_view(connection):
        found = connection.execute(statement, parameters).fetchone()
        if found is None:
            return None
        session = to_session(cast("SessionColumns", found[:-3]))
        session_id = session.session_id
        seq, _head, control = cast("tuple[int | None, str | None, str | None]", found[-3:])
        lines = _events(connection, session_id, seq or 0)
        events = tuple(to_event(session_id, line) for line in lines)
        snapshot = None if control is None else to_control(session_id, control)
        path = Branches()
        if snapshot is not None:
            path = _paths(connection, session_id, ends_before(snapshot, events))
    return Loaded(
        session=session,
        snapshot=snapshot,
        path=recorded_until(seq or 0, path),
        events=events,
    )


def _events(connection: Connection, session_id: str, after_seq: int) -> list[EventColumns]:
    return connection.execute(
        statements.EVENTS,
        {"session_id": session_id, "after_seq": after_seq, "limit": dialect.WITHOUT_LIMIT},
    ).fetchall()


def _paths(connection: Connection, session_id: str, message_ids: Sequence[str]) -> Branches:
    named = {"session_id": session_id, "message_ids": json.dumps(message_ids)}
    return Branches(
        nodes=to_nodes(session_id, connection.execute(statements.PATHS, named).fetchall()),
        marks=to_marks(connection.execute(statements.MARKS, named).fetchall()),
    )


def paths(connection: Connection, session_id: str, message_ids: Sequence[str]) -> Branches:
    """Return these messages and all above them."""
    with dialect.one_view(connection):
        return _paths(connection, session_id, message_ids)


def behind(connection: Connection, session_id: str, message_ids: Sequence[str]) -> Branches:
    """Return what is recorded right below these messages, but for what people said."""
    named = {"session_id": session_id, "message_ids": json.dumps(message_ids)}
    with dialect.one_view(connection):
        return Branches(
            nodes=to_nodes(session_id, connection.execute(statements.BEHIND, named)),
            marks=to_marks(connection.execute(statements.MARKS_BEHIND, named)),
        )


def tree(connection: Connection, session_id: str) -> Branches:
    """Return every branch of a session."""
    named = {"session_id": session_id}
    with dialect.one_view(connection):
        return Branches(
            nodes=to_nodes(session_id, connection.execute(statements.ALL_MESSAGES, named)),
            marks=to_marks(connection.execute(statements.ALL_MARKS, named)),
        )


def events(connection: Connection, parameters: Parameters) -> Sequence[Event]:
    """Return events in order; of one turn when `turn_id` is not `None`."""
    of_turn = parameters["turn_id"] is not None
    statement = statements.EVENTS_OF_TURN if of_turn else statements.EVENTS
    session_id = parameters["session_id"]
    lines = connection.execute(statement, parameters).fetchall()
    return tuple(to_event(session_id, line) for line in lines)


def last_event(connection: Connection, parameters: Parameters) -> Event | None:
    """Return the newest event of a type about a subject."""
    kind, session_id = parameters["type"], parameters["session_id"]
    if kind in FINDABLE or kind == MESSAGE_NEW:
        statement = statements.LAST_FINDABLE if kind in FINDABLE else statements.LAST_MESSAGE
        line = connection.execute(statement, parameters).fetchone()
        return None if line is None else to_event(session_id, line)
    for line in connection.execute(statements.LAST_OF_TYPE, parameters):
        event = to_event(session_id, line)
        if codec.subject(event) == parameters["subject"]:
            return event
    return None


def sessions(
    connection: Connection, statement: str, parameters: Parameters
) -> Sequence[SessionRow]:
    """Return the sessions a statement finds."""
    return tuple(to_session(row) for row in connection.execute(statement, parameters))


def rows(
    connection: Connection, table: Table, equals: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]]:
    """Return a companion's rows, with the values its column types give."""
    given = {
        name: dialect.to_database(table.c[name], value)
        for name, value in equals.items()
        if value is not None
    }
    nulls = tuple(name for name, value in equals.items() if value is None)
    statement = statements.select_from(table, tuple(given), nulls)
    return tuple(
        {
            column.name: dialect.from_database(column, value)
            for column, value in zip(table.c, row, strict=True)
        }
        for row in connection.execute(statement, given)
    )
