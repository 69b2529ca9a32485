"""Everything the engine raises, by whose fault it is.

    EngineError
    ├── Refused                     the caller's: nothing was recorded, nothing changed
    │   ├── UnknownAgent            404
    │   ├── UnknownSession          404
    │   ├── ThreadTaken             409
    │   ├── TurnAlreadyActive       409
    │   ├── SessionInterrupted      409
    │   ├── CallNotOpen             409
    │   ├── Forbidden               403
    │   ├── InvalidAnswer           422
    │   ├── InvalidInput            422
    │   └── InvalidView             422
    ├── InvalidResponse             the worker's: the decision is asked again
    ├── ToolError                   the tool's own word to the model
    ├── ModelError                  the provider's
    ├── EngineLocked                another engine holds the database file
    ├── SchemaOutdated              the database needs a migration
    └── StorageUnavailable          the database cannot be read or written

Each :class:`Refused` has a stable `code`; `agui_server.problems` maps it to HTTP.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class EngineError(Exception):
    """Something the engine could not do."""


class Refused(EngineError):
    """A command was refused. Nothing was recorded and nothing changed."""

    code: ClassVar[str]


@dataclass
class UnknownAgent(Refused):
    """No agent has this id."""

    agent_id: str
    code: ClassVar[str] = "unknown_agent"

    def __str__(self) -> str:
        return f"There is no agent {self.agent_id!r}."


@dataclass
class UnknownSession(Refused):
    """No session has this id, for this caller."""

    session_id: str
    code: ClassVar[str] = "unknown_session"

    def __str__(self) -> str:
        return f"There is no session {self.session_id!r}."


@dataclass
class ThreadTaken(Refused):
    """A session would be created for a thread that another session already is."""

    thread_id: str
    code: ClassVar[str] = "thread_taken"

    def __str__(self) -> str:
        return f"Thread {self.thread_id!r} is another session of this agent."


@dataclass
class TurnAlreadyActive(Refused):
    """Input would start a turn while another runs."""

    turn_id: str
    code: ClassVar[str] = "turn_already_active"

    def __str__(self) -> str:
        return f"Turn {self.turn_id} is still running; wait until it ends, or cancel it."


@dataclass
class SessionInterrupted(Refused):
    """New messages reached a paused branch. `interrupt_ids`: what must be answered first."""

    interrupt_ids: Sequence[str]
    code: ClassVar[str] = "session_interrupted"

    def __str__(self) -> str:
        open_ids = ", ".join(self.interrupt_ids)
        return f"The conversation waits for an answer to {open_ids}."


@dataclass
class CallNotOpen(Refused):
    """A result came for a call that is not open, or for an older attempt of it."""

    call_id: str
    code: ClassVar[str] = "call_not_open"

    def __str__(self) -> str:
        return f"Call {self.call_id} is not open, or this result belongs to an earlier attempt."


@dataclass
class Forbidden(Refused):
    """This caller may not do that: a higher one may."""

    what: str
    code: ClassVar[str] = "forbidden"

    def __str__(self) -> str:
        return self.what


@dataclass
class InvalidAnswer(Refused):
    """An answer does not fit its interrupt; the interrupt stays open."""

    interrupt_id: str
    reason: str
    code: ClassVar[str] = "invalid_answer"

    def __str__(self) -> str:
        return f"Interrupt {self.interrupt_id}: {self.reason}"


@dataclass
class InvalidInput(Refused):
    """A field of a command cannot be used."""

    field: str
    reason: str
    code: ClassVar[str] = "invalid_input"

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


@dataclass
class InvalidView(Refused):
    """A view shows a recorded message where it cannot stand."""

    message_id: str
    code: ClassVar[str] = "invalid_view"

    def __str__(self) -> str:
        return f"Message {self.message_id} is recorded elsewhere in this conversation."


@dataclass
class InvalidResponse(EngineError):
    """A worker's response breaks a rule. `field` is a path such as `actions[0].id`."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class ToolError(EngineError):
    """Raised by a tool: its text is the result the model reads.

    `retryable`: another attempt may succeed; it is made if the tool's policy has one left.
    Any other exception a tool raises is logged, and the model reads a plain sentence.
    """

    def __init__(self, *args: object, retryable: bool = False) -> None:
        super().__init__(*args)
        self.retryable = retryable


@dataclass
class ModelError(EngineError):
    """A provider failed.

    `code` is `provider_error`, `rate_limited`, `refused` or `deadline_exceeded`.
    `retryable` says whether another attempt may succeed; `message` may quote the
    provider and never reaches a client.
    """

    code: str
    message: str
    retryable: bool = False

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass
class EngineLocked(EngineError):
    """Another engine runs on this database file. `owner` names its process and address."""

    path: str
    owner: str

    def __str__(self) -> str:
        return (
            f"Another engine already runs on {self.path} ({self.owner}). "
            "One engine a file: stop that one, or use another file."
        )


@dataclass
class SchemaOutdated(EngineError):
    """The database has another schema revision than this version of the product."""

    found: str
    expected: str

    def __str__(self) -> str:
        return (
            f"The database has schema {self.found}, this version needs {self.expected}. "
            "Run `agui migrate` once, with no engine running on it."
        )


class StorageUnavailable(EngineError):
    """The database cannot be read or written: full, read-only, or gone."""
