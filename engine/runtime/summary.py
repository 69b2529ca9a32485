"""What the `session` row says of a state, and when a snapshot is worth writing."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from engine.core import events as ev
from engine.core.due import wake_at
from engine.core.interrupts import is_paused
from engine.core.messages import UserMessage
from engine.core.pending import pending
from engine.core.state import State
from engine.core.status import active_turn, status
from engine.store.protocol import SessionRow, SessionStatus

SNAPSHOT_EVERY = 200
"""Events that a load may have to fold: about a millisecond's worth."""

TITLE_LENGTH = 80


def new_row(state: State, now: datetime, events: Sequence[ev.Event]) -> SessionRow:
    """Return the row of a session that is created by these events."""
    control = state.control
    return SessionRow(
        session_id=control.session_id,
        tenant=control.tenant,
        owner=control.owner,
        agent_id=control.agent_id,
        thread_id=control.thread_id,
        title=_title(events),
        status=session_status(state),
        head_seq=control.seq,
        created_at=now,
        updated_at=now,
        wake_at=wake_at(state),
        busy=bool(pending(state)),
    )


def updated_row(
    row: SessionRow, state: State, now: datetime, events: Sequence[ev.Event]
) -> SessionRow:
    """Return a session's row after these events."""
    return replace(
        row,
        title=row.title or _title(events),
        status=session_status(state),
        head_seq=state.control.seq,
        updated_at=now,
        wake_at=wake_at(state),
        busy=bool(pending(state)),
    )


def session_status(state: State) -> SessionStatus:
    """Say what a session is doing, in one word."""
    if is_paused(state):
        return "interrupted"
    turn = active_turn(state)
    if turn is None:
        return "idle"
    return "waiting" if status(state, turn) == "waiting" else "running"


def wants_snapshot(snapshot_seq: int, events: Sequence[ev.Event]) -> bool:
    """Whether to write a snapshot: at a turn's end or pause, after enough events."""
    if not events or events[-1].seq - snapshot_seq < SNAPSHOT_EVERY:
        return False
    return any(isinstance(e.body, ev.TurnCompleted | ev.SessionInterrupted) for e in events)


def _title(events: Sequence[ev.Event]) -> str | None:
    """Name a session after the first thing a person said in it."""
    for event in events:
        if isinstance(event.body, ev.MessageNew) and isinstance(event.body.message, UserMessage):
            content = event.body.message.content
            text = content if isinstance(content, str) else ""
            return " ".join(text.split())[:TITLE_LENGTH] or None
    return None
