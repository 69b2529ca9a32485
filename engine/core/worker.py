"""The worker protocol: what the engine asks, and what a worker may answer.

A *trigger* says why the engine asks. Where it is about a call its `id` is the
call's: unique in the session and the same over every attempt, so a worker with
side effects can key them by it.
A *response* is `{messages?, state?, agent?, shared_state?, actions?}` and is
applied whole or not at all.

Source: `protocol.md` section 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from engine.core.messages import (
    AssistantMessage,
    ClientContext,
    Json,
    Message,
    ReasoningMessage,
    Usage,
)

# ------------------------------------------------------------------ parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """What went wrong. `code` is stable; `message` is for people, not for programs."""

    code: str
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInput:
    """A tool call's arguments, judged against the tool's schema.

    `malformed`: not JSON. `invalid`: JSON that breaks the schema. Both have `error`.
    """

    status: Literal["valid", "invalid", "malformed"]
    value: Json = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOverride:
    """What to change of how long work may take and how often it is tried.

    `run` bounds one attempt and `total` all of them, in seconds; the wait before attempt n
    is `min(base**n, max)` seconds with full jitter. What is left out stays as it was.

    Source: `protocol.md` section 8.
    """

    run: float | None = None
    total: float | None = None
    attempts: int | None = None
    base: float | None = None
    max: float | None = None


InterruptStatus: TypeAlias = Literal["resolved", "cancelled", "expired"]

# --------------------------------------------------------------- triggers


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart:
    """The session was created."""

    type: Literal["session.start"] = "session.start"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMessages:
    """Input arrived. `messages` are the new ones; `new_from` of the path stand before them."""

    messages: tuple[Message, ...]
    new_from: int
    client: ClientContext
    type: Literal["client.messages"] = "client.messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAction:
    """A client called an action by its name, such as a button of the page."""

    name: str
    args: Json = None
    type: Literal["client.action"] = "client.action"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecute:
    """The model called a tool that the worker runs or may gate.

    `attempt` and `deadline` are those of the question: the same call may be asked about again.
    """

    id: str
    name: str
    arguments: str
    input: ToolInput
    attempt: int = 1
    deadline: datetime | None = None
    type: Literal["tool.execute"] = "tool.execute"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished:
    """A tool call ended for good. `result` is set when `ok`, else `error`.

    `message_id` is the id a client already shows the result under, when it ran the tool.
    """

    id: str
    name: str
    ok: bool
    result: Json = None
    error: str | None = None
    message_id: str | None = None
    type: Literal["tool.finished"] = "tool.finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmFinished:
    """A model call ended for good. `message` and `reasoning` are set when `ok`, else `error`."""

    id: str
    ok: bool
    message: AssistantMessage | None = None
    reasoning: tuple[ReasoningMessage, ...] = ()
    truncated: bool = False
    usage: tuple[Usage, ...] = ()
    error: Error | None = None
    type: Literal["llm.finished"] = "llm.finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptResumed:
    """An interrupt that paused the active path was cleared.

    `answer` is the chosen value of a resolved choice, else the payload; `None`
    unless `status` is `resolved`. `tool_call_id` is the call the interrupt held.
    `prompt_type` is the `metadata.type` of what was asked, such as `tool.approval`.
    """

    interrupt_id: str
    reason: str
    status: InterruptStatus
    answer: Json = None
    payload: Json = None
    responder: Json = None
    tool_call_id: str | None = None
    prompt_type: str | None = None
    type: Literal["interrupt.resumed"] = "interrupt.resumed"


Trigger: TypeAlias = (
    SessionStart
    | ClientMessages
    | ClientAction
    | ToolExecute
    | ToolFinished
    | LlmFinished
    | InterruptResumed
)

# ---------------------------------------------------------------- actions


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModel:
    """`llm.call`: call a model. What is left out comes from the agent's config."""

    model: str | None = None
    system: str | None = None
    client: ClientContext | None = None
    retry: RetryOverride | None = None
    type: Literal["llm.call"] = "llm.call"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """`tool.call`: start a tool call. The name decides where it runs.

    `waits`: beside an interrupt, it starts when the branch is free again and not at once.
    """

    name: str
    id: str | None = None
    arguments: str = "{}"
    waits: bool = False
    retry: RetryOverride | None = None
    type: Literal["tool.call"] = "tool.call"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTool:
    """`tool.run`: run a function tool now, in the engine.

    `id` defaults to the call of the trigger being answered.
    """

    id: str | None = None
    type: Literal["tool.run"] = "tool.run"


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveResult:
    """`tool.result`: end a tool call well. `result` is the MCP shape, or a bare string."""

    result: Json
    id: str | None = None
    attempt: int | None = None
    type: Literal["tool.result"] = "tool.result"


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveError:
    """`tool.error`: end a tool call with an error the model reads."""

    error: str
    id: str | None = None
    attempt: int | None = None
    retryable: bool = False
    type: Literal["tool.error"] = "tool.error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """`interrupt`: pause the active branch until a person answers."""

    reason: str
    interrupt_id: str | None = None
    payload: Json = None
    answer_by: Literal["client", "machine"] = "client"
    type: Literal["interrupt"] = "interrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveInterrupt:
    """`interrupt.resolve`: clear an interrupt, as a resume would."""

    interrupt_id: str
    payload: Json = None
    type: Literal["interrupt.resolve"] = "interrupt.resolve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """`done`: end the turn. `data` becomes the turn's result."""

    data: Json = None
    type: Literal["done"] = "done"


Action: TypeAlias = (
    CallModel | CallTool | RunTool | GiveResult | GiveError | Interrupt | ResolveInterrupt | Done
)

# --------------------------------------------------- request and response


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResponse:
    """What to do about a trigger. An empty one writes nothing.

    `state` and `shared_state`: a value replaces, `{}` clears, `None` keeps.
    """

    messages: tuple[Message, ...] = ()
    state: Json = None
    agent: Json = None
    shared_state: Json = None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose session it is; the engine vouches for it."""

    id: str
    metadata: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInFlight:
    """A call as a worker sees it."""

    id: str
    kind: str
    status: str
    attempt: int
    name: str | None = None
    arguments: str | None = None
    anchor: str | None = None
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """An open interrupt as a worker sees it."""

    interrupt_id: str
    reason: str
    payload: Json = None
    tool_call_id: str | None = None
    anchor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branching:
    """A message and where it hangs (`None`: at the root)."""

    message: Message
    parent_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTree:
    """Every message of a session, parents first. The active path ends at `head_id`."""

    messages: Sequence[Branching]
    head_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """One question to a worker. Returning `proposed` unchanged is always valid.

    `messages` is the active path, root to head: what the model sees. `message_tree` holds
    every branch, for an agent that asks for it. `agent` is the config in force, `ancestry`
    the parent sessions of a subagent. `deadline` is when this attempt lapses.
    """

    session_id: str
    agent_id: str
    turn_id: str | None
    decision_id: str
    attempt: int
    identity: Identity
    trigger: Trigger
    proposed: DecisionResponse
    state: Json
    agent: Json
    messages: Sequence[Message]
    calls: Sequence[CallInFlight]
    interrupts: Sequence[OpenQuestion]
    deadline: datetime | None
    message_tree: MessageTree | None = None
    ancestry: Sequence[str] = ()
