"""What happened: the events of a session's log, in the past tense.

An event is an envelope (`Event`) around a body. Each body's `type` is its name
on the wire. Folding the bodies in order of `seq` gives the session's state; see
`apply.py`.

Source: `protocol.md` sections 2 and 13. Two types are ours beside those listed
there: `decision.waiting` and `call.started` (`docs/decisions/0002`).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from engine.core.messages import ClientContext, Json, Message, SystemMessage, Usage
from engine.core.worker import Action, Error, InterruptStatus, RetryOverride, Trigger

# ------------------------------------------------------ session and tree


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCreated:
    """A session began. `owner` never changes; `thread_id` is the client's own name for it."""

    agent_id: str
    owner: str
    tenant: str
    thread_id: str
    type: Literal["session.created"] = "session.created"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageNew:
    """A message was recorded below `parent_id` (`None`: at the root)."""

    message: Message
    parent_id: str | None = None
    type: Literal["message.new"] = "message.new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What is in force at a place in the tree: the worker's memory, shared state, config."""

    state: Json = None
    shared_state: Json = None
    agent: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadMoved:
    """The active path now ends at `message_id` (`None`: before any message).

    The event's turn is the parked one that comes back with its branch, if there is one.
    `values` are those in force there, when they are others than before.
    """

    message_id: str | None
    values: Values | None = None
    type: Literal["head.moved"] = "head.moved"


# ------------------------------------------------------------------ turns


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A turn began. `client` holds what the frontend sent beside its messages."""

    client: ClientContext | None = None
    type: Literal["turn.started"] = "turn.started"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnQueued:
    """Input waits until turn `behind` completes; then the event's turn starts with it."""

    behind: str
    messages: tuple[Message, ...]
    client: ClientContext | None = None
    type: Literal["turn.queued"] = "turn.queued"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDropped:
    """A queued turn will not start: the one it waited behind was cancelled or abandoned."""

    type: Literal["turn.dropped"] = "turn.dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnParked:
    """The client left the branch of a turn that is paused or waits for it."""

    type: Literal["turn.parked"] = "turn.parked"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted:
    """A turn ended, well (`data`) or with `error`. `cost` is US dollars, when known."""

    data: Json = None
    error: Error | None = None
    usage: tuple[Usage, ...] = ()
    cost: float | None = None
    type: Literal["turn.completed"] = "turn.completed"


# -------------------------------------------------------------- decisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Another attempt follows. `message_id`: the id the next reply streams under."""

    attempt: int
    at: datetime
    deadline: datetime | None = None
    message_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionWaiting:
    """A trigger cannot be decided yet: another decision is out, or the branch is paused."""

    decision_id: str
    trigger: Trigger
    type: Literal["decision.waiting"] = "decision.waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequested:
    """The worker is asked. `expires` ends the decision's total time, `deadline` this attempt's."""

    decision_id: str
    trigger: Trigger
    attempt: int
    deadline: datetime
    expires: datetime
    type: Literal["decision.requested"] = "decision.requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCompleted:
    """A decision was made. `replaced_ids`: interrupt ids asked for → ids given.

    `held` are the actions that would start something while the branch is paused: the
    decision stays in line, and they are applied when the branch is free.
    """

    decision_id: str
    by: Literal["worker", "engine"]
    replaced_ids: dict[str, str] | None = None
    held: tuple[Action, ...] = ()
    type: Literal["decision.completed"] = "decision.completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionErrored:
    """An attempt of a decision failed.

    With `retry` another follows. `waits`: the branch is paused, and the decision is asked
    again when it is free; `used` attempts count then. With neither it was the last.
    """

    decision_id: str
    attempt: int
    error: Error
    retry: Retry | None = None
    waits: bool = False
    used: int = 0
    type: Literal["decision.errored"] = "decision.errored"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDropped:
    """A decision will not be made: its turn ended."""

    decision_id: str
    type: Literal["decision.dropped"] = "decision.dropped"


# ------------------------------------------------------------------ calls


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmCallRequested:
    """A model call starts over the path that ends at `anchor`.

    The reply streams, and is recorded, under `message_id`. `expires` ends the
    call's total time, `deadline` this attempt's. `client` replaces the turn's.
    """

    call_id: str
    message_id: str
    anchor: str | None
    attempt: int
    deadline: datetime
    expires: datetime
    model: str | None = None
    system: str | None = None
    client: ClientContext | None = None
    retry: RetryOverride | None = None
    type: Literal["llm.call.requested"] = "llm.call.requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmCallCompleted:
    """A model answered. Its reply is recorded by what the decision on it says."""

    call_id: str
    attempt: int
    usage: tuple[Usage, ...] = ()
    truncated: bool = False
    type: Literal["llm.call.completed"] = "llm.call.completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmCallErrored:
    """An attempt of a model call failed. Without `retry` it was the last."""

    call_id: str
    attempt: int
    error: Error
    retry: Retry | None = None
    type: Literal["llm.call.errored"] = "llm.call.errored"


ToolHandler: TypeAlias = Literal["function", "worker", "client", "unknown"]
"""Where a tool runs. `unknown`: nobody declared the name; such a call only ends in an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRequested:
    """A tool call is open. It belongs to the path that ends at `anchor`."""

    call_id: str
    name: str
    arguments: str
    handler: ToolHandler
    anchor: str | None
    retry: RetryOverride | None = None
    type: Literal["tool.call.requested"] = "tool.call.requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """The engine runs an open tool call now, at most once per `attempt`.

    Of a worker's tool: the worker has left it open, and settles it before the deadline.
    The same attempt again: its clock starts anew, for a person was asked meanwhile. A call
    that is left open need not have a deadline.
    """

    call_id: str
    attempt: int
    deadline: datetime | None = None
    expires: datetime | None = None
    type: Literal["call.started"] = "call.started"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallCompleted:
    """A tool call ended well. `result` is the MCP shape.

    `instructions` came with a client's answer, when they are others than before: they reach
    the model, and are not recorded.
    """

    call_id: str
    attempt: int
    result: Json
    instructions: tuple[SystemMessage, ...] | None = None
    type: Literal["tool.call.completed"] = "tool.call.completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallErrored:
    """A tool call failed. Without `retry` it ended; its message tells the model why."""

    call_id: str
    attempt: int
    error: Error
    retry: Retry | None = None
    instructions: tuple[SystemMessage, ...] | None = None
    type: Literal["tool.call.errored"] = "tool.call.errored"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallVoided:
    """A call was stopped and its result will be refused. Partial text is dropped."""

    call_id: str
    reason: str
    type: Literal["call.voided"] = "call.voided"


# ------------------------------------------------------------- interrupts


Origin: TypeAlias = Literal["worker", "engine", "client", "machine", "system"]
"""Who asks. `engine`: its own proposal, such as an approval. `system`: no branch is free of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInterrupted:
    """A person is asked.

    `anchor` is the message the pause hangs on (`None`: every path). At `expires` the
    engine takes the question back.
    """

    interrupt_id: str
    origin: Origin
    reason: str
    payload: Json = None
    anchor: str | None = None
    tool_call_id: str | None = None
    answer_by: Literal["client", "machine"] = "client"
    expires: datetime | None = None
    type: Literal["session.interrupted"] = "session.interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInterruptResumed:
    """An interrupt was cleared. `status` and `responder` are the engine's word.

    `approved` is set when it asked to let a tool run: whether it may. `refusal` is
    what the model reads then. `instructions` came with the answer, as in `tool.call.completed`.
    """

    interrupt_id: str
    status: InterruptStatus
    payload: Json = None
    responder: Json = None
    approved: bool | None = None
    refusal: str | None = None
    instructions: tuple[SystemMessage, ...] | None = None
    type: Literal["session.interrupt_resumed"] = "session.interrupt_resumed"


# ------------------------------------------------------------------ state


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUpdated:
    """The worker's own memory, as of `anchor`: the message that was the head."""

    state: Json
    anchor: str | None = None
    type: Literal["state.updated"] = "state.updated"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStateUpdated:
    """The state that clients see, as of `anchor`: the message that was the head."""

    state: Json
    anchor: str | None = None
    type: Literal["shared_state.updated"] = "shared_state.updated"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentUpdated:
    """The agent's config, as of `anchor`: the message that was the head."""

    agent: Json
    anchor: str | None = None
    type: Literal["agent.updated"] = "agent.updated"


Body: TypeAlias = (
    SessionCreated
    | MessageNew
    | HeadMoved
    | TurnStarted
    | TurnQueued
    | TurnDropped
    | TurnParked
    | TurnCompleted
    | DecisionWaiting
    | DecisionRequested
    | DecisionCompleted
    | DecisionErrored
    | DecisionDropped
    | LlmCallRequested
    | LlmCallCompleted
    | LlmCallErrored
    | ToolCallRequested
    | CallStarted
    | ToolCallCompleted
    | ToolCallErrored
    | CallVoided
    | SessionInterrupted
    | SessionInterruptResumed
    | StateUpdated
    | SharedStateUpdated
    | AgentUpdated
)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a session's log. `seq` starts at 1 and rises by 1 with no gap."""

    session_id: str
    seq: int
    occurred_at: datetime
    turn_id: str | None
    body: Body
