"""One session of the pure core, and everything it needs to be asked things.

A world keeps the session's state, its log, and a shadow: the fold of the log as it
would be read back from a database. Every command goes through :meth:`World.do`,
which hands what happened to the laws (`laws.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.apply import apply
from engine.core.due import wake_at
from engine.core.env import AgentSpec, Env, RetryPolicy, ToolSpec
from engine.core.errors import Refused
from engine.core.handle import Outcome, handle
from engine.core.messages import Json, Message
from engine.core.state import Call, Decision, State, new_session
from engine.core.values import written
from engine.runtime.schemas import conforms
from engine.store import codec

BIRTH = cmd.Birth(agent_id="agent", owner="owner", tenant="tenant", thread_id="thread")

ONCE = RetryPolicy(run=timedelta(seconds=60), total=timedelta(seconds=300), attempts=1)
THRICE = RetryPolicy(run=timedelta(seconds=60), total=timedelta(seconds=300), attempts=3)

NUMBER: Json = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}


def _tool(name: str, handler: str, retry: RetryPolicy) -> ToolSpec:
    return ToolSpec(
        name=name,
        description="",
        parameters=NUMBER,
        handler="function" if handler == "function" else "worker",
        retry=retry,
    )


TOOLS = {
    "once": _tool("once", "function", ONCE),
    "again": _tool("again", "function", THRICE),
    "owned": _tool("owned", "worker", ONCE),
}
"""What the agent declares: two function tools, and one that its worker runs."""

CLIENT_TOOL: Json = {"name": "page", "description": "", "parameters": {"type": "object"}}
"""What a frontend brings."""

WANTS: tuple[frozenset[str] | None, ...] = (
    frozenset(),
    frozenset({"tool.execute"}),
    frozenset({"tool.execute", "interrupt.resumed"}),
    frozenset({"session.start", "client.messages"}),
    frozenset({"llm.finished", "tool.finished"}),
    None,
)
"""Agents: without a worker, with one that takes some triggers, with one that takes all."""


def agent(wants: frozenset[str] | None) -> AgentSpec:
    """Return an agent whose worker wants these triggers."""
    return AgentSpec(
        id="agent",
        model="model",
        tools=TOOLS,
        wants=wants,
        model_retry=THRICE,
        decision_retry=THRICE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command that went through: the state it met, what it did, and the log before it."""

    before: State
    command: cmd.Command
    outcome: Outcome
    log: list[ev.Event]


@dataclass(slots=True)
class World:
    """A session. `judge` is called with every step."""

    spec: AgentSpec
    judge: Callable[["World", Step], None]
    state: State = field(default_factory=lambda: new_session("session"))
    log: list[ev.Event] = field(default_factory=list[ev.Event])
    shadow: State = field(default_factory=lambda: new_session("session"))
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    done: list[cmd.Command] = field(default_factory=list[cmd.Command])
    jitter: float = 0.5
    _ids: "count[int]" = field(default_factory=count)

    def do(self, command: cmd.Command) -> Outcome | None:
        """Run a command; `None` when it was refused, which must have changed nothing."""
        state = self.state
        control, nodes = state.control, list(state.tree.upward(state.control.head))
        length = len(state.tree)
        try:
            outcome = handle(state, command, self.env(), BIRTH)
        except Refused:
            assert self.state.control == control
            assert len(state.tree) == length
            assert list(state.tree.upward(control.head)) == nodes
            return None
        step = Step(before=state, command=command, outcome=outcome, log=list(self.log))
        self.state = outcome.state
        self.log.extend(outcome.events)
        for event in outcome.events:
            self.shadow = apply(self.shadow, through_the_codec(event))
        self.done.append(command)
        self.judge(self, step)
        return outcome

    def restart(self, split: int = 0) -> None:
        """Lose the memory: fold the log as stored, from a snapshot that chance placed."""
        at = split % (len(self.log) + 1)
        first = new_session("session")
        for event in self.log[:at]:
            first = apply(first, through_the_codec(event))
        snapshot = codec.decode_control(codec.encode_control(first.control))
        state = State(snapshot, first.tree)
        for event in self.log[at:]:
            state = apply(state, through_the_codec(event))
        assert state.control == self.state.control
        self.state = state

    def pass_time(self, seconds: int) -> None:
        """Move the clock; whatever is due happens."""
        self.now += timedelta(seconds=seconds)
        self.do(cmd.PassTime())
        due = wake_at(self.state)
        assert due is None or due > self.now

    def new_id(self, prefix: str) -> str:
        """Return an id nobody had."""
        return f"{prefix}-{next(self._ids)}"

    # -------------------------------------------------------------- queries

    @property
    def head(self) -> str | None:
        """The end of the active path."""
        return self.state.control.head

    def path(self, head: str | None) -> tuple[Message, ...]:
        """Return the messages from the root to one."""
        return tuple(node.message for node in self.state.tree.path(head))

    def message_ids(self) -> list[str]:
        """Return every recorded message, in the order they came."""
        return [e.body.message.id for e in self.log if isinstance(e.body, ev.MessageNew)]

    def calls(self, *kinds: str) -> list[Call]:
        """Return the open calls of these kinds."""
        return [call for call in self.state.control.calls if call.kind in kinds]

    def decision_out(self) -> Decision | None:
        """Return the decision a worker was asked for."""
        return next((d for d in self.state.control.decisions if d.is_out), None)

    def interrupt_ids(self) -> list[str]:
        """Return every interrupt there ever was."""
        return [e.body.interrupt_id for e in self.log if isinstance(e.body, ev.SessionInterrupted)]

    def env(self) -> Env:
        """Return the world of one command."""
        used = {
            e.body.interrupt_id for e in self.log if isinstance(e.body, ev.SessionInterrupted)
        } | {e.body.call_id for e in self.log if isinstance(e.body, ev.ToolCallRequested)}
        return Env(
            now=self.now,
            agent=self.spec,
            new_id=self.new_id,
            conforms=conforms,
            jitter=lambda: self.jitter,
            was_used=used.__contains__,
            recorded=lambda seq: written(self.log[seq - 1].body),
        )


def through_the_codec(event: ev.Event) -> ev.Event:
    """Return the event as it is read back from a store."""
    text = codec.encode_body(event.body)
    body = codec.decode_body(event.body.type, text)
    assert body == event.body
    assert codec.encode_body(body) == text
    return ev.Event(event.session_id, event.seq, event.occurred_at, event.turn_id, body)
