"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "session",
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("thread_id", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("head_seq", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("wake_at", sa.BigInteger(), nullable=True),
        sa.Column("busy", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("session_id"),
        sa.UniqueConstraint("tenant", "owner", "thread_id", "agent_id", name="session_thread"),
        sqlite_with_rowid=False,
    )
    op.create_index("session_updated", "session", ["tenant", "owner", "updated_at", "session_id"])
    op.create_index(
        "session_wake", "session", ["wake_at", "session_id"], **_where("wake_at IS NOT NULL")
    )
    op.create_index("session_busy", "session", ["session_id"], **_where("busy"))
    op.create_table(
        "event",
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=True),
        sa.Column("subject", sa.String(), nullable=True),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "seq"),
    )
    op.create_index(
        "event_subject",
        "event",
        ["session_id", "type", "subject", "seq"],
        **_where("subject IS NOT NULL"),
    )
    op.create_table(
        "message",
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("parent_id", sa.String(), nullable=True),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "id"),
        sqlite_with_rowid=False,
    )
    op.create_index("message_behind", "message", ["session_id", "parent_id", "role", "seq"])
    op.create_table(
        "snapshot",
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.String(), nullable=True),
        sa.Column("control", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("session_id"),
        sqlite_with_rowid=False,
    )
    _create_run()


def _create_run() -> None:
    """The table of `agui_server` (`agui_server/agui/table.py`)."""
    op.create_table(
        "run",
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=True),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "run_id", "first_seq"),
        sqlite_with_rowid=False,
    )


def _where(condition: str) -> dict[str, sa.TextClause]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}
