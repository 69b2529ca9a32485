"""Values of the core as rows of the tables, and back.

Every store writes what :func:`rows_of` returns, so each refuses the same things and
none keeps a reference to what it was given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, cast

from engine.core.errors import StorageUnavailable
from engine.core.events import (
    AgentUpdated,
    Event,
    HeadMoved,
    MessageNew,
    SessionInterrupted,
    SessionInterruptResumed,
    SharedStateUpdated,
    StateUpdated,
    ToolCallRequested,
    TurnCompleted,
    TurnStarted,
)
from engine.core.state import Control
from engine.core.tree import Mark, Node, ValueKind
from engine.store import codec
from engine.store.protocol import Append, Branches, Companion, SessionRow, SessionStatus

Row: TypeAlias = dict[str, Any]

FINDABLE = frozenset(
    codec.type_of(body)
    for body in (
        TurnStarted,
        TurnCompleted,
        ToolCallRequested,
        SessionInterrupted,
        SessionInterruptResumed,
        StateUpdated,
        SharedStateUpdated,
        AgentUpdated,
    )
)
"""Types of which :meth:`Store.last_event` finds one through an index. Of `message.new`
it does through the tree; all others are read one by one from the end of the log.
Model calls are not here: one starts in every turn, and the state knows the open ones."""

VALUES: dict[str, ValueKind] = {
    codec.type_of(StateUpdated): "state",
    codec.type_of(SharedStateUpdated): "shared_state",
    codec.type_of(AgentUpdated): "agent",
}
"""Types that write a value which belongs to a branch."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Return whole microseconds since 1970 (UTC)."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment in UTC."""
    return _EPOCH + timedelta(microseconds=micros)


# ---------------------------------------------------------------- writing


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What one append writes, a list for each table. `session` also holds `expected_seq`."""

    session: Row
    creates: bool
    events: Sequence[Row]
    messages: Sequence[Row]
    snapshot: Row | None
    companions: Sequence[Companion]


def rows_of(append: Append) -> Rows:
    """Encode an append.

    Raises:
        ValueError: the append contradicts itself, or a value cannot be stored.
    """
    _check(append)
    session = session_to_row(append.session)
    session["expected_seq"] = append.expected_seq
    return Rows(
        session=session,
        creates=append.expected_seq == 0,
        events=[_event_to_row(event) for event in append.events],
        messages=[
            _message_to_row(event, event.body)
            for event in append.events
            if isinstance(event.body, MessageNew)
        ],
        snapshot=None if append.snapshot is None else _snapshot_to_row(append.snapshot),
        companions=tuple(append.companions),
    )


def _check(append: Append) -> None:
    row, expected = append.session, append.expected_seq
    if [event.seq for event in append.events] != list(range(expected + 1, row.head_seq + 1)):
        raise ValueError(f"events must be numbered {expected + 1} to {row.head_seq}")
    if not append.events and expected == 0:
        raise ValueError("a session begins with an event")
    if any(event.session_id != row.session_id for event in append.events):
        raise ValueError(f"an event belongs to another session than {row.session_id}")
    snapshot = append.snapshot
    if snapshot and (snapshot.session_id != row.session_id or snapshot.seq > row.head_seq):
        raise ValueError("the snapshot is of another session, or of later than this append")


def session_to_row(session: SessionRow) -> Row:
    """Return a session's row."""
    return {
        "session_id": session.session_id,
        "tenant": session.tenant,
        "owner": session.owner,
        "agent_id": session.agent_id,
        "thread_id": session.thread_id,
        "title": session.title,
        "status": session.status,
        "head_seq": session.head_seq,
        "created_at": to_micros(session.created_at),
        "updated_at": to_micros(session.updated_at),
        "wake_at": None if session.wake_at is None else to_micros(session.wake_at),
        "busy": session.busy,
    }


def _event_to_row(event: Event) -> Row:
    kind = event.body.type
    return {
        "session_id": event.session_id,
        "seq": event.seq,
        "type": kind,
        "turn_id": event.turn_id,
        "subject": codec.subject(event) if kind in FINDABLE else None,
        "occurred_at": to_micros(event.occurred_at),
        "payload": codec.encode_body(event.body),
    }


def _message_to_row(event: Event, body: MessageNew) -> Row:
    return {
        "session_id": event.session_id,
        "id": body.message.id,
        "parent_id": body.parent_id,
        "seq": event.seq,
        "role": body.message.role,
    }


def _snapshot_to_row(control: Control) -> Row:
    return {
        "session_id": control.session_id,
        "seq": control.seq,
        "head": control.head,
        "control": codec.encode_control(control),
    }


# ---------------------------------------------------------------- reading

SessionColumns: TypeAlias = tuple[
    str, str, str, str, str, str | None, str, int, int, int, int | None, bool
]
"""The columns of `session` in the order of the table."""

EventColumns: TypeAlias = tuple[int, str, str | None, int, str]
"""`seq, type, turn_id, occurred_at, payload`: an event without its session."""


def to_session(columns: SessionColumns) -> SessionRow:
    """Return a session from its row."""
    (
        session_id, tenant, owner, agent_id, thread_id, title, status,
        head_seq, created_at, updated_at, wake_at, busy,
    ) = columns  # fmt: skip
    return SessionRow(
        session_id=session_id,
        tenant=tenant,
        owner=owner,
        agent_id=agent_id,
        thread_id=thread_id,
        title=title,
        status=cast("SessionStatus", status),
        head_seq=head_seq,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        wake_at=None if wake_at is None else from_micros(wake_at),
        busy=bool(busy),
    )


def to_event(session_id: str, columns: EventColumns) -> Event:
    """Return an event from its row.

    Raises:
        StorageUnavailable: the payload cannot be read.
    """
    seq, kind, turn_id, occurred_at, payload = columns
    try:
        body = codec.decode_body(kind, payload)
    except ValueError as error:
        raise StorageUnavailable(
            f"Event {seq} of session {session_id} cannot be read: {error}"
        ) from error
    return Event(session_id, seq, from_micros(occurred_at), turn_id, body)


def to_control(session_id: str, text: str) -> Control:
    """Return the `Control` of a snapshot.

    Raises:
        StorageUnavailable: the text cannot be read.
    """
    try:
        return codec.decode_control(text)
    except ValueError as error:
        raise StorageUnavailable(
            f"The snapshot of session {session_id} cannot be read: {error}"
        ) from error


def to_nodes(session_id: str, lines: Iterable[EventColumns]) -> tuple[Node, ...]:
    """Return the tree's nodes from the events that recorded them, parents first."""
    nodes: dict[str, Node] = {}
    for columns in lines:
        event = to_event(session_id, columns)
        if not isinstance(event.body, MessageNew):
            raise StorageUnavailable(
                f"Event {event.seq} of session {session_id} recorded no message."
            )
        message, parent_id = event.body.message, event.body.parent_id
        parent = None if parent_id is None else nodes.get(parent_id)
        depth = 0 if parent is None else parent.depth + 1
        nodes[message.id] = Node(message, parent_id, event.seq, depth, event.turn_id)
    return tuple(nodes.values())


def to_marks(lines: Iterable[tuple[str, str, int]]) -> tuple[Mark, ...]:
    """Return where values were written, from `type, subject, seq` of their events."""
    return tuple(Mark(VALUES[kind], subject or None, seq) for kind, subject, seq in lines)


def ends_before(control: Control, events: Iterable[Event]) -> list[str]:
    """Return where the paths end that a fold needs: those of a snapshot, and what follows it.

    Something may be open on a branch that was left, and events behind a snapshot may go
    back to a branch on which nothing is.
    """
    tips = (turn.tip for turn in control.turns)
    anchors = (interrupt.anchor for interrupt in control.interrupts)
    ends, recorded = {control.head, *tips, *anchors}, set[str]()
    for event in events:
        match event.body:
            case MessageNew(message=message, parent_id=parent_id):
                ends.add(parent_id)
                recorded.add(message.id)
            case HeadMoved(message_id=message_id):
                ends.add(message_id)
            case _:
                continue
    return sorted(end for end in ends if end is not None and end not in recorded)


def recorded_until(seq: int, path: Branches) -> Branches:
    """Return a part of the tree without what the events behind a snapshot record themselves."""
    return Branches(tuple(node for node in path.nodes if node.seq <= seq), path.marks)
