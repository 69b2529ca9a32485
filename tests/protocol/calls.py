"""Decisions, calls and questions in a test: shortcuts on top of a `Session`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from engine import Agent
from engine.adapters.scripted import ScriptedModel
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.env import ToolSpec
from engine.core.messages import Message, ToolCall, ToolMessage
from engine.core.ports import ModelDelta, ModelRequest
from engine.core.request import decision_request
from engine.core.state import Call, Decision
from engine.core.worker import DecisionRequest
from tests.agui.given import Event, Server, Stream, user
from tests.agui.given import serving as serve
from tests.core.given import Session, agent, tool, view
from tests.core.given import user as person

PICK = cmd.ClientContext(tools=({"name": "pick", "description": ""},))
"""A frontend that brings a tool of its own."""

YES = {"approved": True}
NO = {"approved": False}

_Body = TypeVar("_Body", bound=ev.Body)


# --------------------------------------------------------------- declarations


def call(call_id: str = "c1", name: str = "send", to: str = "ada") -> ToolCall:
    """A model's wish to call a tool, with arguments that fit."""
    return ToolCall(id=call_id, name=name, arguments=f'{{"to": "{to}"}}')


def sensitive(name: str = "send", *, handler: str = "function") -> ToolSpec:
    """A tool of which a person approves each call."""
    return replace(tool(name, handler=handler), approve=True)


def worker_tool(*, attempts: int = 1, **more: Any) -> ToolSpec:
    """A tool `own` that its worker runs."""
    own = tool("own", handler="worker")
    return replace(own, retry=replace(own.retry, attempts=attempts), **more)


# ------------------------------------------------------------------- sessions


def gating(
    *calls: ToolCall, wants: frozenset[str] = frozenset({"tool.execute"}), **more: Any
) -> Session:
    """A worker that is asked about each call of a function tool; the first one is out."""
    session = Session(agent(tool("send"), wants=wants, **more))
    session.say()
    session.reply(None, *(calls or (call(),)))
    return session


def running_own(own: ToolSpec | None = None) -> Session:
    """A worker that is busy with call `c1` of its own tool."""
    session = Session(agent(own or worker_tool(), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, call(name="own"))
    return session


def left_open(own: ToolSpec | None = None) -> Session:
    """A worker that has left call `c1` of its own tool open, to settle it later."""
    session = running_own(own)
    session.answer()
    return session


def approving(*calls: ToolCall, client: cmd.ClientContext | None = None, **more: Any) -> Session:
    """A reply with calls, at least one of which a person has to approve.

    `send` needs a person, `plain` and the worker's `own` do not, `pick` is the frontend's.
    """
    session = Session(agent(sensitive(), tool("plain"), worker_tool(), **more))
    session.say(client=client or PICK)
    session.reply(None, *(calls or (call(),)))
    return session


# --------------------------------------------------------------------- moving


def told(session: Session) -> DecisionRequest:
    """What the worker is told about the decision that is out."""
    return decision_request(session.state, session._env(), session.out)


def take(session: Session) -> list[ev.Body]:
    """The worker returns the proposal unchanged."""
    decision = session.out
    response = told(session).proposed
    return session.do(
        cmd.AnswerDecision(decision_id=decision.id, attempt=decision.attempt, response=response)
    )


def take_all(session: Session) -> None:
    """The worker returns every proposal unchanged, until it is asked nothing more here."""
    while any(d.is_out and not session.state.is_parked(d.turn_id) for d in _decisions(session)):
        take(session)


def _decisions(session: Session) -> Sequence[Decision]:
    return session.state.control.decisions


def hold(session: Session, interrupt_id: str = "hold", **more: Any) -> list[ev.Body]:
    """Somebody outside pauses the active branch."""
    return session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id=interrupt_id, **more))


def settle(session: Session, call_id: str = "c1", **how: Any) -> list[ev.Body]:
    """A backend ends a call that was left open."""
    how = how or {"result": "done"}
    return session.do(cmd.SettleCall(call_id=call_id, caller="machine", **how))


def answered(interrupt_id: str, payload: Any = None, **more: Any) -> cmd.Answer:
    """An answer that comes with a view."""
    return cmd.Answer(interrupt_id=interrupt_id, payload=payload, **more)


def as_machine(session: Session, payload: Any, interrupt_id: str = "") -> list[ev.Body]:
    """A backend answers a question: the oldest, unless one is named."""
    interrupt_id = interrupt_id or session.state.control.interrupts[0].id
    answer = answered(interrupt_id, payload)
    return session.do(cmd.ResumeInterrupt(answer=answer, caller="machine"))


def leave(session: Session) -> Sequence[Message]:
    """The client edits its first message and hears a reply; return the path that was left."""
    path = session.path
    session.do(view(person("edit")))
    take_all(session)
    session.reply("instead")
    take_all(session)
    return path


def come_back(session: Session, path: Iterable[Message]) -> list[ev.Body]:
    """The client shows the branch again that it had left."""
    return session.do(view(*path))


# -------------------------------------------------------------------- looking


def only(happened: Iterable[ev.Body], kind: type[_Body]) -> _Body:
    """The one thing of a type that happened."""
    [found] = [body for body in happened if isinstance(body, kind)]
    return found


def recorded(session: Session, kind: type[_Body]) -> list[_Body]:
    """Everything of a type in the log."""
    return [event.body for event in session.log if isinstance(event.body, kind)]


def read(session: Session) -> dict[str, Any]:
    """What the model reads of each tool call on the active path."""
    return {m.tool_call_id: m.content for m in session.path if isinstance(m, ToolMessage)}


def opened(session: Session, call_id: str = "c1") -> Call:
    """An open call."""
    found = session.state.call(call_id)
    assert found is not None
    return found


def attempts(session: Session) -> dict[str, int]:
    """The open tool calls, and which attempt of each runs (0: none yet)."""
    return {c.id: c.attempt for c in session.state.control.calls if c.kind != "llm"}


def questions(session: Session) -> list[str]:
    """The ids of what is asked, oldest first."""
    return [interrupt.id for interrupt in session.state.control.interrupts]


def started(happened: Iterable[ev.Body]) -> list[str]:
    """The calls that began to run, in order."""
    return [body.call_id for body in happened if isinstance(body, ev.CallStarted)]


# ----------------------------------------------------------------- on the wire

PATIENCE_S = 60.0
"""Longer than any of these tests takes on a busy machine."""


@asynccontextmanager
async def serving(*agents: Agent, **more: Any) -> AsyncGenerator[Server]:
    """Serve agents. What never comes fails the test, instead of holding it."""
    async with asyncio.timeout(PATIENCE_S), serve(*agents, **more) as server:
        yield server


class Remembering:
    """The scripted model, which remembers what it was sent."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """Remember, and answer."""
        self.requests.append(request)
        async for delta in ScriptedModel().stream(request):
            yield delta


def session_of(stream: Stream) -> str:
    """The session a run belongs to."""
    return stream.last["metadata"]["agui-server/sessionId"]


async def log_of(server: Server, stream: Stream, kind: type[_Body]) -> list[_Body]:
    """Everything of a type that is stored of a run's session."""
    events = await server.engine.store.events(session_of(stream))
    return [event.body for event in events if isinstance(event.body, kind)]


def shown(said: str, *streams: Stream) -> list[Event]:
    """What a page shows that sent one message and followed these runs."""
    messages: dict[str, Event] = {"u1": user("u1", said)}
    for event in (event for stream in streams for event in stream.events):
        match event["type"]:
            case "TEXT_MESSAGE_START":
                messages.setdefault(event["messageId"], _assistant(event["messageId"]))
            case "TEXT_MESSAGE_CONTENT":
                message = messages[event["messageId"]]
                message["content"] = message.get("content", "") + event["delta"]
            case "TOOL_CALL_START":
                parent = event["parentMessageId"]
                function = {"name": event["toolCallName"], "arguments": ""}
                made = {"id": event["toolCallId"], "type": "function", "function": function}
                message = messages.setdefault(parent, _assistant(parent))
                message.setdefault("toolCalls", []).append(made)
            case "TOOL_CALL_ARGS":
                for message in messages.values():
                    for made in message.get("toolCalls", ()):
                        if made["id"] == event["toolCallId"]:
                            made["function"]["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                result = {key: event[key] for key in ("toolCallId", "content")}
                messages[event["messageId"]] = {
                    "id": event["messageId"],
                    "role": "tool",
                    **result,
                }
            case _:
                pass
    return list(messages.values())


def _assistant(message_id: str) -> Event:
    return {"id": message_id, "role": "assistant"}


def results(stream: Stream) -> dict[str, str]:
    """The result of each tool call that a run told."""
    ids, contents = (stream.all("TOOL_CALL_RESULT", key) for key in ("toolCallId", "content"))
    return dict(zip(ids, contents, strict=True))
