"""What a session is right now: the fold of its log.

`Control` is small and frozen and holds only what is open; it is what a snapshot
stores. `Tree` holds the messages. Queries live here, rules elsewhere.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from engine.core.events import Origin
from engine.core.messages import ClientContext, Json, Message, Usage
from engine.core.tree import Tree
from engine.core.worker import Action, Error, RetryOverride, Trigger

CallKind: TypeAlias = Literal["llm", "function", "worker", "client", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An open turn.

    `error` is that of the last model call, if it failed: what the turn ends with
    unless the agent goes on. `usage` has one entry per provider and model. `parked`: the
    client has left its branch, whose end is `tip`.
    """

    id: str
    parked: bool = False
    tip: str | None = None
    client: ClientContext = ClientContext()
    error: Error | None = None
    usage: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedTurn:
    """Input that waits until the turn `behind` completes."""

    id: str
    behind: str
    messages: tuple[Message, ...]
    client: ClientContext = ClientContext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call in flight.

    `attempt` is 0 until the call runs. `not_before` delays the start of an attempt
    (backoff). `deadline` ends this attempt, `expires` the call. `anchor` is the end
    of the path the call belongs to. A model call streams its reply as `message_id`;
    a tool call has `name` and `arguments`; `asked` counts how often its worker was told to
    run it, and `refused` is what a person said who was asked to let it run and did not.
    """

    id: str
    kind: CallKind
    turn_id: str
    anchor: str | None
    attempt: int = 0
    not_before: datetime | None = None
    deadline: datetime | None = None
    expires: datetime | None = None
    name: str = ""
    arguments: str = ""
    message_id: str = ""
    model: str | None = None
    system: str | None = None
    client: ClientContext | None = None
    retry: RetryOverride | None = None
    asked: int = 0
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A trigger without a decision. `attempt` is 0 while it waits in line.

    `held` are a worker's actions on it that wait for the branch to be free. `used` attempts
    were made before it went back in line.
    """

    id: str
    turn_id: str | None
    trigger: Trigger
    attempt: int = 0
    not_before: datetime | None = None
    deadline: datetime | None = None
    expires: datetime | None = None
    held: tuple[Action, ...] = ()
    used: int = 0

    @property
    def is_out(self) -> bool:
        """Whether the worker has been asked."""
        return self.attempt > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenInterrupt:
    """A question nobody has answered. `seq` is that of its event."""

    id: str
    seq: int
    turn_id: str | None
    origin: Origin
    reason: str
    payload: Json = None
    anchor: str | None = None
    tool_call_id: str | None = None
    answer_by: Literal["client", "machine"] = "client"
    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Everything open in a session, and the values in force on its active path.

    `turns` are the open ones, oldest first, `queue` those that wait for one to complete,
    in the order they came. `decisions` stand in the order they go out. `state`,
    `shared_state` and `agent` are as of the head.
    """

    session_id: str
    agent_id: str = ""
    owner: str = ""
    tenant: str = ""
    thread_id: str = ""
    seq: int = 0
    head: str | None = None
    turns: tuple[Turn, ...] = ()
    queue: tuple[QueuedTurn, ...] = ()
    calls: tuple[Call, ...] = ()
    decisions: tuple[Decision, ...] = ()
    interrupts: tuple[OpenInterrupt, ...] = ()
    state: Json = None
    shared_state: Json = None
    agent: Json = None


@dataclass(frozen=True, slots=True)
class State:
    """A session as of one point of its log."""

    control: Control
    tree: Tree

    def call(self, call_id: str) -> Call | None:
        """Return an open call."""
        return next((call for call in self.control.calls if call.id == call_id), None)

    def turn(self, turn_id: str | None) -> Turn | None:
        """Return an open turn."""
        return next((turn for turn in self.control.turns if turn.id == turn_id), None)

    def decision(self, decision_id: str) -> Decision | None:
        """Return a decision that is out or waits."""
        return next((d for d in self.control.decisions if d.id == decision_id), None)

    def interrupt(self, interrupt_id: str) -> OpenInterrupt | None:
        """Return an open interrupt."""
        return next((i for i in self.control.interrupts if i.id == interrupt_id), None)

    def is_held(self, call_id: str) -> bool:
        """Whether an open interrupt holds a call."""
        return any(interrupt.tool_call_id == call_id for interrupt in self.control.interrupts)

    def is_parked(self, turn_id: str | None) -> bool:
        """Whether a turn's branch is not the active one."""
        turn = self.turn(turn_id)
        return turn is not None and turn.parked

    def end_of(self, turn_id: str | None) -> str | None:
        """Return the end of a turn's branch: the head, unless the turn is parked."""
        turn = self.turn(turn_id)
        return turn.tip if turn is not None and turn.parked else self.control.head

    def calls_of(self, turn_id: str | None) -> list[Call]:
        """Return the open calls of a turn, in the order they were requested."""
        return [call for call in self.control.calls if call.turn_id == turn_id]


def new_session(session_id: str) -> State:
    """Return the state of a session before its first event."""
    return State(Control(session_id=session_id), Tree())
