"""What the numbered cases share: a page, a model that remembers, an agent that asks first."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from engine import Agent, DecisionRequest, Thread, interrupt
from engine.adapters.scripted import ScriptedModel
from engine.core import events as ev
from engine.core.errors import ModelError
from engine.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from engine.core.ports import ModelDelta, ModelRequest
from engine.runtime.clock import FakeClock
from tests.agui.given import Event, Server, Stream, serving, user

ASK = '/tool send {"to": "ada"}\n/then /say done'
"""A person's words that lead to one gated call, and to `done` after it."""

ASK_THREE = (
    '/tool send {"to": "ada"}\n/tool send {"to": "bob"}\n/tool send {"to": "cyd"}\n/then /say done'
)
"""The same with three calls in one reply."""

PATIENCE_S = 60.0
"""Longer than any of these takes on a busy machine."""

_RUNS = itertools.count(1)
"""Run ids are used once, also by a page that outlives its server."""

_Body = TypeVar("_Body", bound=ev.Body)


class Heard:
    """The scripted model, which also remembers what it was sent.

    `failures` is how many of the next calls fail for good. `says` replaces, for the next
    call, what the person said. While `go` is not set no reply begins.
    """

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.failures = 0
        self.says: str | None = None
        self.go = asyncio.Event()
        self.go.set()
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta]:
        """Answer as the script says, and count the stream's end, however it comes."""
        self.requests.append(request)
        if self.failures:
            self.failures -= 1
            raise ModelError("provider_error", "no such model")
        if self.says is not None:
            request, self.says = _saying(request, self.says), None
        try:
            await self.go.wait()
            async with aclosing(ScriptedModel().stream(request)) as deltas:
                async for delta in deltas:
                    yield delta
        finally:
            self.closed += 1

    @property
    def last(self) -> list[str]:
        """What the newest call was sent, a line each."""
        return [line(message) for message in self.requests[-1].messages]


def _saying(request: ModelRequest, text: str) -> ModelRequest:
    return ModelRequest(
        session_id=request.session_id,
        call_id=request.call_id,
        attempt=request.attempt,
        model=request.model,
        system=request.system,
        messages=[UserMessage(id="said", content=text)],
        tools=request.tools,
        context=request.context,
    )


def line(message: Message) -> str:
    """Return a message in short: `user: hello`, `assistant: send()`, `tool: sent`."""
    match message:
        case AssistantMessage(tool_calls=calls) if calls:
            said = [message.content or "", *(f"{call.name}()" for call in calls)]
            return f"assistant: {' '.join(filter(None, said))}"
        case AssistantMessage() | UserMessage() | ToolMessage():
            return f"{message.role}: {message.content}"
        case _:
            return message.role


@dataclass(frozen=True, slots=True)
class Log:
    """Everything that is recorded of a session."""

    events: Sequence[ev.Event]

    def of(self, kind: type[_Body]) -> list[_Body]:
        """The bodies of one type, in order."""
        return [event.body for event in self.events if isinstance(event.body, kind)]

    def count(self, *kinds: type[ev.Body]) -> int:
        """How many events there are of these types."""
        return sum(isinstance(event.body, kinds) for event in self.events)

    @property
    def turns(self) -> tuple[int, int]:
        """How many turns started, and how many of them are over."""
        return self.count(ev.TurnStarted), self.count(ev.TurnCompleted)

    @property
    def lines(self) -> list[str]:
        """The recorded messages in short, as they came."""
        return [line(recorded.message) for recorded in self.of(ev.MessageNew)]

    @property
    def branches(self) -> int:
        """How many ends the tree of messages has."""
        recorded = self.of(ev.MessageNew)
        parents = {each.parent_id for each in recorded}
        return sum(each.message.id not in parents for each in recorded)


@dataclass
class Page:
    """A stock page: it applies the events it gets, and sends back everything it shows."""

    server: Server
    thread: str = "t"
    messages: list[Event] = field(default_factory=list[Event])
    typed: int = 0

    async def say(self, text: str, *, resume: Iterable[Event] | None = None, **more: Any) -> Stream:
        """A person types: one more message below everything shown."""
        self.typed += 1
        self.messages.append(user(f"{self.thread}-{self.typed}", text))
        return await self.send(resume=resume, **more)

    async def send(self, *, resume: Iterable[Event] | None = None, **more: Any) -> Stream:
        """Send what is shown, and apply what comes."""
        more.setdefault("runId", f"run-{next(_RUNS)}")
        stream = await self.server.run(*self.messages, resume=resume, thread=self.thread, **more)
        self.apply(stream)
        return stream

    def apply(self, stream: Stream) -> None:
        """Do what the official client does with each event."""
        for event in stream.events:
            match event["type"]:
                case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START":
                    self._message(event["messageId"], event["role"])
                case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                    message = self._message(event["messageId"])
                    message["content"] = message.get("content", "") + event["delta"]
                case "TOOL_CALL_START":
                    function = {"name": event["toolCallName"], "arguments": ""}
                    call = {"id": event["toolCallId"], "type": "function", "function": function}
                    self._message(event["parentMessageId"]).setdefault("toolCalls", []).append(call)
                case "TOOL_CALL_ARGS":
                    self._call(event["toolCallId"])["function"]["arguments"] += event["delta"]
                case "TOOL_CALL_RESULT":
                    message = self._message(event["messageId"], "tool")
                    message |= {"toolCallId": event["toolCallId"], "content": event["content"]}
                case "MESSAGES_SNAPSHOT":
                    self.messages[:] = event["messages"]
                case _:
                    pass

    @property
    def roles(self) -> list[str]:
        """Who said what is shown."""
        return [message["role"] for message in self.messages]

    @property
    def ids(self) -> list[str]:
        """What is shown, by id."""
        return [message["id"] for message in self.messages]

    async def log(self) -> Log:
        """Everything that is recorded of this conversation."""
        engine = self.server.engine
        thread = Thread(tenant="local", owner="local", agent_id="a", thread_id=self.thread)
        return Log(await engine.store.events(await engine.session_of(thread)))

    def _message(self, message_id: str, role: str = "assistant") -> Event:
        for message in self.messages:
            if message["id"] == message_id:
                return message
        self.messages.append({"id": message_id, "role": role})
        return self.messages[-1]

    def _call(self, call_id: str) -> Event:
        calls = (call for message in self.messages for call in message.get("toolCalls", ()))
        return next(call for call in calls if call["id"] == call_id)


class Mailer:
    """An agent that asks a person before it sends, and what really came of it.

    `asks` says for which recipients. While `go` is not set no tool ends.
    """

    def __init__(self, asks: Callable[[str], bool] = lambda _to: True) -> None:
        self.asks = asks
        self.sent: list[str] = []
        self.model = Heard()
        self.go = asyncio.Event()
        self.go.set()

    def agent(self, **payload: Any) -> Agent:
        """Declare the agent anew, as every process does. Its questions carry the payload."""

        async def send(to: str) -> str:
            """Send an email."""
            self.sent.append(to)
            await self.go.wait()
            return f"sent to {to}"

        agent = Agent("a", tools=[send])

        @agent.decide(on="tool.execute")
        def ask_first(request: DecisionRequest) -> Any:
            assert request.trigger.type == "tool.execute"
            if not self.asks(json.loads(request.trigger.arguments)["to"]):
                return request.proposed
            return interrupt("confirm", payload={"message": "Send?", **payload})

        return agent

    @asynccontextmanager
    async def served(
        self, agent: Agent | None = None, page: Page | None = None, **more: Any
    ) -> AsyncGenerator[Page]:
        """Serve the agent, or another one over the same model, to a page or a fresh one.

        A run that never ends fails the test, instead of holding it.
        """
        models = {"demo": self.model}
        async with (
            asyncio.timeout(PATIENCE_S),
            serving(agent or self.agent(), models=models, **more) as server,
        ):
            seen = page or Page(server)
            seen.server = server
            yield seen


async def pass_time(clock: FakeClock, time: timedelta) -> None:
    """Let time pass in a hundred steps, with room between them for whoever wakes."""
    for _ in range(100):
        clock.advance(time / 100)
        for _ in range(10):
            await asyncio.sleep(0)


async def asked(page: Page, text: str = ASK) -> tuple[Stream, str]:
    """Say something that leads to one question; return the run, and the question's id."""
    stream = await page.say(text)
    [question] = stream.interrupts
    return stream, question["id"]


async def has_readers(page: Page, count: int) -> bool:
    """Whether so many streams of the only session wait for more."""
    [row] = await page.server.engine.store.sessions(limit=2)
    return page.server.engine.reader(row.session_id, 0).feed.readers == count
