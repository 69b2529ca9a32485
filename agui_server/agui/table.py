"""The runs: one row for each, written with the events of its input.

The engine knows no runs. A run's outcome and its last event follow from the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import BigInteger, PrimaryKeyConstraint
from sqlmodel import Field, SQLModel

from engine.store.protocol import Companion, Store


class Run(SQLModel, table=True):
    """A run: which turn it belongs to, and the digest of the input it was opened with.

    A run id may come again with an answer (some clients resend the interrupted run's),
    so the first event tells such runs apart. `created` is microseconds since 1970, UTC.
    """

    __table_args__ = (
        PrimaryKeyConstraint("session_id", "run_id", "first_seq"),
        {"sqlite_with_rowid": False},
    )

    session_id: str = Field(primary_key=True)
    run_id: str = Field(primary_key=True)
    first_seq: int = Field(primary_key=True, sa_type=BigInteger)
    turn_id: str | None = None
    agent_id: str
    digest: str
    created: int = Field(sa_type=BigInteger)


TABLE = SQLModel.metadata.tables["run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run, as stored."""

    session_id: str
    run_id: str
    turn_id: str | None
    agent_id: str
    digest: str
    first_seq: int
    created: int

    def companion(self) -> Companion:
        """Return the row for the transaction of the input's events."""
        return Companion(
            table=TABLE,
            values={
                "session_id": self.session_id,
                "run_id": self.run_id,
                "turn_id": self.turn_id,
                "agent_id": self.agent_id,
                "digest": self.digest,
                "first_seq": self.first_seq,
                "created": self.created,
            },
        )


async def runs_of(store: Store, session_id: str, run_id: str) -> Sequence[RunRow]:
    """Return the runs of a session with this id, oldest first: usually none or one."""
    rows = await store.rows(TABLE, session_id=session_id, run_id=run_id)
    return [
        RunRow(
            session_id=row["session_id"],
            run_id=row["run_id"],
            turn_id=row["turn_id"],
            agent_id=row["agent_id"],
            digest=row["digest"],
            first_seq=row["first_seq"],
            created=row["created"],
        )
        for row in rows
    ]
