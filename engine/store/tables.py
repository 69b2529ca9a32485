"""The tables, and why each column is there.

Times are whole microseconds since 1970 in UTC: small, sorted, the same in every
database. JSON is text. A session's row holds only what its log cannot tell cheaply.

In SQLite small rows lie in the order of their primary key (`sqlite_with_rowid`
false), which saves an index. Events do not: the lines of all sessions in a commit
then fill the same last page instead of one page each (a third less time for a group).

Another package may add tables to the same metadata (`agui_server` adds `run`); they
are created with ours. See `migrations/__init__.py`.
"""

from sqlalchemy import BigInteger, Index, PrimaryKeyConstraint, Table, Text, UniqueConstraint, text
from sqlmodel import Field, SQLModel


def _index(name: str, *columns: str, where: str | None = None) -> Index:
    condition = None if where is None else text(where)
    return Index(name, *columns, sqlite_where=condition, postgresql_where=condition)


class Session(SQLModel, table=True):
    """One conversation: who it belongs to, how it is found, and what it waits for.

    `head_seq` is the guard of every append: it moves only from what the writer saw.
    """

    __table_args__ = (
        PrimaryKeyConstraint("session_id"),
        # The agent comes last so that the thread alone can be looked up, too.
        UniqueConstraint("tenant", "owner", "thread_id", "agent_id", name="session_thread"),
        _index("session_updated", "tenant", "owner", "updated_at", "session_id"),
        _index("session_wake", "wake_at", "session_id", where="wake_at IS NOT NULL"),
        _index("session_busy", "session_id", where="busy"),
        {"sqlite_with_rowid": False},
    )

    session_id: str = Field(primary_key=True)
    tenant: str
    owner: str
    agent_id: str
    thread_id: str
    title: str | None = None
    status: str
    head_seq: int = Field(sa_type=BigInteger)
    created_at: int = Field(sa_type=BigInteger)
    updated_at: int = Field(sa_type=BigInteger)
    wake_at: int | None = Field(default=None, sa_type=BigInteger)
    busy: bool = False


class Event(SQLModel, table=True):
    """One line of a session's log. `payload` is the body, see `codec.encode_body`.

    `subject` is set for the types in `rows.FINDABLE` only: each indexed line costs a
    page of every commit.
    """

    __table_args__ = (
        PrimaryKeyConstraint("session_id", "seq"),
        _index(
            "event_subject", "session_id", "type", "subject", "seq", where="subject IS NOT NULL"
        ),
    )

    session_id: str = Field(primary_key=True)
    seq: int = Field(primary_key=True, sa_type=BigInteger)
    type: str
    turn_id: str | None = None
    subject: str | None = None
    occurred_at: int = Field(sa_type=BigInteger)
    payload: str = Field(sa_type=Text)


class Message(SQLModel, table=True):
    """Where a message hangs in its session's tree; its text is in the event `seq`."""

    __table_args__ = (
        PrimaryKeyConstraint("session_id", "id"),
        # For what a client's view may leave out. It holds all that is asked for: SQLite
        # would rather walk the session's rows than look each one up.
        _index("message_behind", "session_id", "parent_id", "role", "seq"),
        {"sqlite_with_rowid": False},
    )

    session_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    parent_id: str | None = None
    seq: int = Field(sa_type=BigInteger)
    role: str


class Snapshot(SQLModel, table=True):
    """The newest `Control` of a session, as of `seq`; `head` ends its active path."""

    __table_args__ = (
        PrimaryKeyConstraint("session_id"),
        {"sqlite_with_rowid": False},
    )

    session_id: str = Field(primary_key=True)
    seq: int = Field(sa_type=BigInteger)
    head: str | None = None
    control: str = Field(sa_type=Text)


def _table(name: str) -> Table:
    return SQLModel.metadata.tables[name]


SESSION = _table("session")
EVENT = _table("event")
MESSAGE = _table("message")
SNAPSHOT = _table("snapshot")
ALL = (SESSION, EVENT, MESSAGE, SNAPSHOT)
"""Our own tables, without those of other packages."""
