"""What the tests of the protocol's rules share: small conversations, and what came of them."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from agui_server.agui.outbound import messages as wire_messages
from engine import Agent, Thread
from engine.adapters.scripted import ScriptedModel
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.apply import apply
from engine.core.errors import Refused
from engine.core.messages import (
    AssistantMessage,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from engine.core.ports import ModelDelta, ModelRequest
from engine.core.state import State, Turn, new_session
from engine.core.status import active_turn
from engine.core.worker import DecisionResponse
from engine.runtime.agents import RunnableAgent
from engine.runtime.effects import model_request
from engine.store import codec
from tests.agui.given import Event, Server, serving
from tests.core.given import Session, agent, tool, user, view

SEND = ToolCall(id="c1", name="send", arguments='{"to": "ada"}')
"""A call of a function tool."""

PICK = cmd.ClientContext(tools=({"name": "pick", "description": ""},))
"""A frontend that has a tool of its own."""

CHOOSE = ToolCall(id="c1", name="pick")
"""A call of the frontend's tool."""


YES = True
"""What a person mostly answers."""


# ---------------------------------------------------------- conversations


def talked(*, wants: frozenset[str] | None = frozenset()) -> Session:
    """Four messages are recorded: u1, a reply that is one call, its result, a reply with text."""
    session = Session(agent(tool("send"), wants=wants))
    session.say("u1")
    session.reply(None, SEND)
    session.finish("c1")
    session.reply("sent")
    return session


def said(*, wants: frozenset[str] | None = frozenset()) -> Session:
    """Two messages are recorded: u1 and its reply. No turn is open."""
    session = Session(agent(tool("send"), wants=wants))
    session.say("u1")
    session.reply("hi")
    return session


def branched() -> tuple[Session, list[Message], list[Message]]:
    """u1 has two replies: return the session, the old branch, and the new one, which is active."""
    session = said()
    old = session.path
    session.do(view(user("u1")))
    session.reply("another")
    return session, old, session.path


def picking(*more: ToolCall, wants: frozenset[str] | None = frozenset()) -> Session:
    """The turn waits for the frontend's call c1, and for `more` calls."""
    session = Session(agent(tool("send"), wants=wants))
    session.do(view(user("u1"), client=PICK))
    session.reply(None, CHOOSE, *more)
    return session


def picked(message_id: str = "t1", call_id: str = "c1") -> ToolMessage:
    """The frontend's result."""
    return ToolMessage(id=message_id, tool_call_id=call_id, content="blue")


def thought(message_id: str) -> ReasoningMessage:
    """A model's thought."""
    return ReasoningMessage(id=message_id, content="hm")


def system(message_id: str, role: Any = "system") -> SystemMessage:
    """Instructions."""
    return SystemMessage(id=message_id, content="be brief", role=role)


def answer(interrupt_id: str, payload: Any = YES, **more: Any) -> cmd.Answer:
    """An answer that stands beside a view."""
    return cmd.Answer(interrupt_id=interrupt_id, payload=payload, **more)


def append(*messages: Message, **more: Any) -> cmd.AppendMessages:
    """Messages at the head."""
    return cmd.AppendMessages(messages=messages, **more)


# ------------------------------------------------------- what came of them


def recorded(happened: Sequence[ev.Body]) -> list[tuple[str, str | None]]:
    """Return what was recorded: message id, and its parent."""
    return [(b.message.id, b.parent_id) for b in happened if isinstance(b, ev.MessageNew)]


def new_ids(happened: Sequence[ev.Body]) -> list[str]:
    """Return the ids of what was recorded."""
    return [message_id for message_id, _ in recorded(happened)]


def ids(messages: Sequence[Message]) -> list[str]:
    """Return the ids of messages."""
    return [message.id for message in messages]


def roles(messages: Sequence[Message]) -> list[str]:
    """Return who said what."""
    return [message.role for message in messages]


def results(messages: Sequence[Message]) -> list[tuple[str, Any]]:
    """Return the tool results: call id, and what the model reads."""
    return [(m.tool_call_id, m.content) for m in messages if isinstance(m, ToolMessage)]


def replies(messages: Sequence[Message]) -> list[AssistantMessage]:
    """Return what the assistant said."""
    return [message for message in messages if isinstance(message, AssistantMessage)]


def notices(session: Session) -> list[str]:
    """Return what the last command's caller was told."""
    assert session.receipt is not None
    return [notice.code for notice in session.receipt.notices]


def turn_of(session: Session) -> str | None:
    """Return the turn that the last command started, resumed, joined or queued."""
    assert session.receipt is not None
    return session.receipt.turn_id


def is_queued(session: Session) -> bool:
    """Return whether the last command's turn waits for another one."""
    assert session.receipt is not None
    return session.receipt.queued


def the_turn(session: Session) -> Turn:
    """Return the open turn of the active branch."""
    turn = active_turn(session.state)
    assert turn is not None
    return turn


def branch(session: Session, turn_id: str) -> list[Message]:
    """Return the messages of the branch that a turn is on."""
    return [n.message for n in session.state.tree.path(session.state.end_of(turn_id))]


def by_turn(session: Session, *kinds: type[ev.Body]) -> list[tuple[str, str | None]]:
    """Return all that was ever recorded of some types: the type, and its turn."""
    return [(e.body.type, e.turn_id) for e in session.log if isinstance(e.body, kinds)]


def error_of(session: Session, turn_id: str) -> str | None:
    """Return the code of the error a turn ended with."""
    [completed] = [
        event.body
        for event in session.log
        if isinstance(event.body, ev.TurnCompleted) and event.turn_id == turn_id
    ]
    return completed.error.code if completed.error is not None else None


def sent(session: Session) -> list[Message]:
    """Return the messages that the model call in flight is sent."""
    nobody = cast("Any", None)
    runnable = RunnableAgent(session.spec, nobody, None, {})
    return list(model_request(session.state, runnable, session.model_call).messages)


def refuse(session: Session, command: cmd.Command, by: type[Refused]) -> Any:
    """Run a command that is refused; return the refusal. Nothing has changed."""
    with pytest.raises(by) as refused:
        session.do(command)  # asserts by itself that a refusal changed nothing
    return refused.value


def restart(session: Session) -> list[ev.Body]:
    """Continue from the log as it is stored, with nothing else; return what that does."""
    read = [
        replace(event, body=codec.decode_body(event.body.type, codec.encode_body(event.body)))
        for event in session.log
    ]
    state = new_session("s")
    for event in read:
        state = apply(state, event)
    snapshot = codec.decode_control(codec.encode_control(state.control))
    session.log[:] = read
    session.state = State(snapshot, state.tree)
    return session.do(cmd.Recover())


def late(session: Session, decision_id: str, attempt: int = 1, *actions: Any) -> list[ev.Body]:
    """Answer an attempt of a decision that may be over."""
    response = DecisionResponse(actions=actions)
    return session.do(
        cmd.AnswerDecision(decision_id=decision_id, attempt=attempt, response=response)
    )


# -------------------------------------------------------------- over HTTP


class Heard:
    """The scripted model. It remembers what it was sent, and how many streams were closed."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta]:
        """Answer as the script in the last user message says."""
        self.requests.append(request)
        try:
            async with aclosing(ScriptedModel().stream(request)) as deltas:
                async for delta in deltas:
                    yield delta
        finally:
            self.closed += 1

    @property
    def last(self) -> Sequence[Message]:
        """The messages of the newest request."""
        return self.requests[-1].messages


@asynccontextmanager
async def served(*agents: Agent, **more: Any) -> AsyncGenerator[tuple[Server, Heard]]:
    """Serve agents that talk to one model; without any, a plain one."""
    heard = Heard()
    declared = agents or (Agent("a"),)
    async with serving(*declared, models={"demo": heard}, **more) as server:
        yield server, heard


async def session_of(server: Server) -> str:
    """Return the id of the conversation."""
    thread = Thread(tenant="local", owner="local", agent_id="a", thread_id="t")
    return await server.engine.session_of(thread)


async def state_of(server: Server) -> State:
    """Return the conversation as it is."""
    state = await server.engine.state(await session_of(server))
    assert state is not None
    return state


async def path_of(server: Server) -> list[Message]:
    """Return the active path."""
    state = await state_of(server)
    return [node.message for node in state.tree.path(state.control.head)]


async def history(server: Server) -> list[Event]:
    """Return the active path as a page shows it, and sends it back."""
    return [
        m.model_dump(by_alias=True, exclude_none=True) for m in wire_messages(await path_of(server))
    ]


async def log_of(server: Server) -> Sequence[ev.Event]:
    """Return everything that is recorded."""
    return await server.engine.store.events(await session_of(server))
