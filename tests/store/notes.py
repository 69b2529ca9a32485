"""A table of another package, as a server would add it to the engine's."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, MetaData, String, Table

import engine.store.tables
from engine.store.protocol import Companion

METADATA = MetaData()
for _table in engine.store.tables.ALL:
    _table.to_metadata(METADATA)

NOTE = Table(
    "note",
    METADATA,
    Column("session_id", String, primary_key=True),
    Column("note_id", String, primary_key=True),
    Column("text", String),
    Column("seq", BigInteger, nullable=False),
    Column("made", DateTime, nullable=False),
)

MADE = datetime(2026, 1, 31, 12, 0, tzinfo=UTC).replace(tzinfo=None)


def note(note_id: str, text: str | None = "remember", **changes: Any) -> Companion:
    """Return a row that goes with an append."""
    values = {"session_id": "s1", "note_id": note_id, "text": text, "seq": 1, "made": MADE}
    return Companion(table=NOTE, values=values | changes)
