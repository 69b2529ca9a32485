"""A session in a test: given agents, when commands, then events.

Every command is checked for what always holds: the log folds to the state that
`handle` returned, and a refused command changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.apply import apply
from engine.core.env import FUNCTION_TOOL, WORKER_TOOL, AgentSpec, Env, RetryPolicy, ToolSpec
from engine.core.errors import Refused
from engine.core.handle import Receipt, handle
from engine.core.messages import AssistantMessage, Message, ToolCall, UserMessage
from engine.core.state import Call, Decision, State, new_session
from engine.core.values import written
from engine.core.worker import Action, DecisionResponse, Interrupt, Trigger
from engine.runtime.schemas import conforms

START = datetime(2026, 1, 1, tzinfo=UTC)

_SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}},
    "required": ["to"],
}


def tool(name: str, *, retry: RetryPolicy | None = None, handler: str = "function") -> ToolSpec:
    """A tool that takes `{"to": …}`."""
    policy = retry or (FUNCTION_TOOL if handler == "function" else WORKER_TOOL)
    kind: Any = handler
    return ToolSpec(name=name, description="", parameters=_SCHEMA, handler=kind, retry=policy)


def agent(*tools: ToolSpec, wants: frozenset[str] | None = frozenset(), **more: Any) -> AgentSpec:
    """An agent; without `wants` it has no worker."""
    return AgentSpec(id="a", model="m", tools={t.name: t for t in tools}, wants=wants, **more)


def user(message_id: str, text: str = "hello") -> UserMessage:
    """What a person says."""
    return UserMessage(id=message_id, content=text)


def view(*messages: Message, **more: Any) -> cmd.ClientView:
    """A client's whole conversation."""
    return cmd.ClientView(messages=messages, **more)


def respond(*actions: Action, messages: Sequence[Message] = (), **more: Any) -> DecisionResponse:
    """A worker's response."""
    return DecisionResponse(actions=tuple(actions), messages=tuple(messages), **more)


@dataclass
class Session:
    """One session under test."""

    spec: AgentSpec = field(default_factory=agent)
    now: datetime = START
    log: list[ev.Event] = field(default_factory=list[ev.Event])
    state: State = field(default_factory=lambda: new_session("s"))
    used: set[str] = field(default_factory=set[str])
    minted: int = 0
    receipt: Receipt | None = None

    def do(self, command: cmd.Command) -> list[ev.Body]:
        """Run a command; return what happened."""
        birth = cmd.Birth(agent_id="a", owner="o", tenant="t", thread_id="th")
        control = self.state.control
        messages = len(self.state.tree)
        try:
            outcome = handle(self.state, command, self._env(), birth)
        except Refused:
            assert self.state.control is control
            assert len(self.state.tree) == messages
            raise
        self.receipt = outcome.receipt
        self.state = outcome.state
        self.log.extend(outcome.events)
        self.used |= {i.id for i in self.state.control.interrupts}
        self.used |= {turn.id for turn in self.state.control.turns}
        assert self.refolded().control == self.state.control
        assert [e.seq for e in self.log] == list(range(1, len(self.log) + 1))
        return [event.body for event in outcome.events]

    def refolded(self) -> State:
        """Fold the log anew."""
        state = new_session("s")
        for event in self.log:
            state = apply(state, event)
        return state

    def _env(self) -> Env:
        return Env(
            now=self.now,
            agent=self.spec,
            new_id=self._new_id,
            conforms=conforms,
            jitter=lambda: 0.5,
            was_used=self.used.__contains__,
            recorded=lambda seq: written(self.log[seq - 1].body),
        )

    def _new_id(self, prefix: str) -> str:
        self.minted += 1
        return f"{prefix}{self.minted}"

    # ------------------------------------------------------------ shortcuts

    def wait(self, **by: float) -> None:
        """Let time pass; nothing is told."""
        self.now += timedelta(**by)

    def say(self, message_id: str = "u1", **more: Any) -> list[ev.Body]:
        """A person says something, below everything that is recorded."""
        path = [node.message for node in self.state.tree.path(self.state.control.head)]
        return self.do(view(*path, user(message_id), **more))

    def reply(self, text: str | None = "hi", *calls: ToolCall) -> list[ev.Body]:
        """The model answers the call in flight."""
        call = self.model_call
        message = AssistantMessage(id=call.message_id, content=text, tool_calls=calls)
        return self.do(cmd.FinishModelCall(call_id=call.id, attempt=call.attempt, message=message))

    def answer(self, *actions: Action, **more: Any) -> list[ev.Body]:
        """The worker answers the decision that is out."""
        response = respond(*actions, **more)
        return self.do(
            cmd.AnswerDecision(decision_id=self.out.id, attempt=self.out.attempt, response=response)
        )

    def finish(self, call_id: str, result: Any = "done") -> list[ev.Body]:
        """A tool that the engine runs returns."""
        call = self.state.call(call_id)
        assert call is not None
        return self.do(cmd.FinishToolCall(call_id=call_id, attempt=call.attempt, result=result))

    def resume(self, payload: Any = None, interrupt_id: str = "", **more: Any) -> list[ev.Body]:
        """Somebody answers an interrupt: the oldest, unless one is named."""
        interrupt_id = interrupt_id or self.state.control.interrupts[0].id
        answer = cmd.Answer(interrupt_id=interrupt_id, payload=payload, **more)
        return self.do(cmd.ResumeInterrupt(answer=answer))

    @property
    def model_call(self) -> Call:
        """The model call in flight."""
        [call] = [call for call in self.state.control.calls if call.kind == "llm"]
        return call

    @property
    def out(self) -> Decision:
        """The decision the worker is asked about."""
        [decision] = [d for d in self.state.control.decisions if d.is_out]
        return decision

    @property
    def trigger(self) -> Trigger:
        """Why the worker is asked."""
        return self.out.trigger

    @property
    def path(self) -> list[Message]:
        """The active path."""
        return [node.message for node in self.state.tree.path(self.state.control.head)]


def names(bodies: Sequence[ev.Body]) -> list[str]:
    """The types of what happened, in order."""
    return [body.type for body in bodies]


def paused(**payload: Any) -> Session:
    """A session whose worker asked a person about a function tool's call `c1`."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="send", arguments='{"to": "ada"}'))
    session.answer(Interrupt(reason="confirm", payload=payload or None))
    return session
