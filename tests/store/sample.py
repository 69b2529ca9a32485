"""Small logs to store."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from engine.core.events import Body, Event, MessageNew, SessionCreated
from engine.core.messages import AssistantMessage, UserMessage
from engine.core.state import Control
from engine.store.protocol import Append, Appended, Companion, SessionRow, Store

NOW = datetime(2026, 1, 31, 12, 0, 0, 250, tzinfo=UTC)
ELSEWHERE = timezone(timedelta(hours=5, minutes=45))


def at(seconds: float) -> datetime:
    """Return the moment so many seconds after `NOW`."""
    return NOW + timedelta(seconds=seconds)


def row(session_id: str = "s1", head_seq: int = 1, **changes: Any) -> SessionRow:
    """Return a session's row; its thread is named after it."""
    values: dict[str, Any] = {
        "tenant": "t",
        "owner": "ada",
        "agent_id": "helper",
        "thread_id": f"thread-{session_id}",
        "title": None,
        "status": "idle",
        "created_at": NOW,
        "updated_at": NOW,
    }
    return SessionRow(session_id=session_id, head_seq=head_seq, **(values | changes))


def events(
    *bodies: Body, session_id: str = "s1", after: int = 0, turn_id: str | None = "turn-1"
) -> list[Event]:
    """Return these bodies as events numbered from `after + 1`, a second apart."""
    return [
        Event(session_id, seq, at(seq), turn_id, body)
        for seq, body in enumerate(bodies, start=after + 1)
    ]


def append(
    *bodies: Body,
    session_id: str = "s1",
    after: int = 0,
    turn_id: str | None = "turn-1",
    snapshot: Control | None = None,
    companions: Sequence[Companion] = (),
    **changes: Any,
) -> Append:
    """Return the append of these bodies behind `after`; `changes` are of the session's row."""
    return Append(
        session=row(session_id, after + len(bodies), **changes),
        expected_seq=after,
        events=events(*bodies, session_id=session_id, after=after, turn_id=turn_id),
        snapshot=snapshot,
        companions=companions,
    )


def created(session_id: str = "s1") -> SessionCreated:
    """Return the first body of a log."""
    return SessionCreated(
        agent_id="helper", owner="ada", tenant="t", thread_id=f"thread-{session_id}"
    )


def said(message_id: str, parent_id: str | None = None, text: str = "Hello") -> MessageNew:
    """Return a recorded user message."""
    return MessageNew(message=UserMessage(id=message_id, content=text), parent_id=parent_id)


def replied(message_id: str, parent_id: str | None = None, text: str = "Hi") -> MessageNew:
    """Return a recorded reply."""
    return MessageNew(message=AssistantMessage(id=message_id, content=text), parent_id=parent_id)


def content(path: Path) -> bytes:
    """Return a file's bytes, to see whether it was changed."""
    return path.read_bytes()


async def commit(store: Store, *appends: Append) -> None:
    """Append each; all must succeed."""
    for one in appends:
        assert await store.append(one) == Appended()
