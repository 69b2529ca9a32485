"""What is asked of a session, in the imperative.

A command is data: who asks, and what for. `handle.py` says what each one does.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from engine.core.messages import (
    AssistantMessage,
    ClientContext,
    Json,
    Message,
    ReasoningMessage,
    Usage,
)
from engine.core.worker import DecisionResponse, Error

Caller: TypeAlias = Literal["client", "machine", "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """What a session is created with, when a command is the first of its session."""

    agent_id: str
    owner: str
    tenant: str
    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer to an interrupt.

    `cancelled` gives the question up. `is_option`: the payload is the value of an option that
    was named by its index. `responder` is stamped by the channel, never
    taken from a payload: `{"channel": …, "user": …}`.
    """

    interrupt_id: str
    payload: Json = None
    cancelled: bool = False
    is_option: bool = False
    responder: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientView:
    """A client's whole conversation as it shows it, and answers to open interrupts.

    The view lands, the answers are applied, then the new messages are recorded:
    one command, whole or not at all. With `lenient` an answer that cannot be taken
    and messages on a paused path are left out and named in the receipt; without it
    they refuse the command.

    Source: `protocol.md` section 3; `agui.md` sections 2.2 and 3.
    """

    messages: tuple[Message, ...]
    answers: tuple[Answer, ...] = ()
    client: ClientContext = ClientContext()
    lenient: bool = False
    caller: Caller = "client"
    turn_id: str | None = None
    """Names the turn it starts; the same one again starts nothing and changes nothing."""
    regenerate: bool = True
    """Whether a view that adds nothing and ends on a user or tool message asks for a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendMessages:
    """Messages at the head (`client.message`, `client.append`). They never branch.

    Those already recorded are dropped. While a turn runs they are refused, or with `queue`
    wait until it completes. `turn_id` names the turn they start; the same one again
    starts nothing.

    Source: `protocol.md` sections 2, 3 and 4.
    """

    messages: tuple[Message, ...]
    client: ClientContext = ClientContext()
    queue: bool = False
    turn_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeAction:
    """A client calls an action by its name (`client.action`)."""

    name: str
    args: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleCall:
    """End a tool call that runs outside the engine: a client's, or a worker's left open.

    Either `result` or `error`. A client may end client calls only. `attempt`, when given,
    must be the one that is open.

    Source: `protocol.md` sections 8 and 12.
    """

    call_id: str
    result: Json = None
    error: str | None = None
    attempt: int | None = None
    caller: Caller = "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeInterrupt:
    """Clear one interrupt (`interrupt.resume`). An old or unknown id does nothing."""

    answer: Answer
    caller: Caller = "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseInterrupt:
    """Pause the active branch from outside: a client, a backend, or the engine itself."""

    reason: str
    interrupt_id: str | None = None
    payload: Json = None
    answer_by: Literal["client", "machine"] = "client"
    caller: Caller = "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelSession:
    """Stop everything that is open. A session with nothing open is not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDecision:
    """A worker's response to one attempt of a decision."""

    decision_id: str
    attempt: int
    response: DecisionResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class FailDecision:
    """A worker failed to answer one attempt of a decision."""

    decision_id: str
    attempt: int
    error: Error


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishModelCall:
    """A model answered one attempt of a call."""

    call_id: str
    attempt: int
    message: AssistantMessage
    reasoning: tuple[ReasoningMessage, ...] = ()
    usage: tuple[Usage, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FailCall:
    """One attempt of a model or tool call failed."""

    call_id: str
    attempt: int
    error: Error


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishToolCall:
    """A tool answered one attempt of a call. `result` is the MCP shape, or a bare string."""

    call_id: str
    attempt: int
    result: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Recover:
    """The process that ran this session's effects is gone: continue from the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTime:
    """Let everything happen whose time has come."""


Command: TypeAlias = (
    ClientView
    | AppendMessages
    | TakeAction
    | SettleCall
    | ResumeInterrupt
    | RaiseInterrupt
    | CancelSession
    | AnswerDecision
    | FailDecision
    | FinishModelCall
    | FailCall
    | FinishToolCall
    | Recover
    | PassTime
)
