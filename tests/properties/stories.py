"""Stories: what a page does on one thread, and the streams it gets for it.

The page talks to the real route, in the process. It shows what is recorded, as the
official client does after a run.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx
from hypothesis import strategies as st

from agui_server.agui import outbound
from agui_server.app import create_app
from engine import (
    Agent,
    DecisionRequest,
    DecisionResponse,
    Engine,
    Thread,
    Tool,
    ToolError,
    interrupt,
    tool_result,
)
from engine.core import events as ev
from engine.core.messages import members
from engine.core.worker import RetryOverride
from engine.runtime import feed
from engine.store.memory import MemoryStore
from tests.properties.judges import Event, Stream

AT_ONCE = RetryOverride(run=60, total=600, attempts=3, max=0)
ANYTHING: dict[str, Any] = {"type": "object"}
PAGE_TOOLS = [{"name": "page", "description": "", "parameters": ANYTHING}]

# ------------------------------------------------------------------ agents


def add(a: int, b: int = 1) -> str:
    """Add two numbers."""
    return str(a + b)


async def fails() -> str:
    """Fail."""
    raise ToolError("it failed")


def _gate(request: DecisionRequest) -> Any:
    if request.trigger.type == "tool.execute" and request.trigger.name == "add":
        return interrupt("confirm", payload={"message": "Add?"})
    return request.proposed


def _decide(request: DecisionRequest) -> Any:
    trigger = request.trigger
    if trigger.type == "tool.execute" and trigger.name == "owned":
        yes_or_no = [{"label": "Yes", "value": "yes"}, {"label": "No", "value": "no"}]
        return interrupt("choose", payload={"metadata": {"options": yes_or_no}})
    if trigger.type == "interrupt.resumed" and trigger.tool_call_id:
        if trigger.answer == "yes" or members(trigger.payload).get("approved"):
            sent = tool_result("done by the worker")
            return DecisionResponse(shared_state={"answer": trigger.payload}, actions=(sent,))
        return {"actions": [{"type": "tool.error", "error": "declined"}]}
    return request.proposed


def agents() -> list[Agent]:
    """Return agents without a worker, with one that gates, and with one that decides all."""
    gating = Agent("gating", tools=[add, fails], retry={"llm": AT_ONCE})
    gating.decide(on=("tool.execute",))(_gate)
    tools = [add, fails, Tool("owned", "Owned.", ANYTHING)]
    return [
        Agent("alone", tools=[add, fails], retry={"llm": AT_ONCE}),
        gating,
        Agent("deciding", tools=tools, worker=_decide, retry={"llm": AT_ONCE}),
    ]


# ------------------------------------------------------------------ scripts

LINES = st.sampled_from(
    (
        "/say hello there",
        "/split \U0001f600 ok",
        '/say "\\ud83d half an emoji"',
        "/tokens 5",
        "/think first this\u2028and that",
        '/tool add {"a": 1}',
        '/tool add {"a": "x"}',
        '/tool add {"a": ',
        "/tool fails",
        "/tool owned {}",
        "/tool page {}",
        "/tool nobody {}",
        "/fail 429 times 1",
        "/fail 503 times 2",
        "/fail 400",
        "/then /say and then",
        '/then /tool add {"a": 2, "b": 3}',
        "/then /tool page {}",
        "/then /then /think again",
    )
)
SCRIPTS = st.lists(LINES, max_size=5).map("\n".join)


@dataclass(frozen=True, slots=True)
class Say:
    """Send a message; `again`: and the same request once more, side by side."""

    script: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer what is asked, and perhaps add a message."""

    payload: Any
    cancelled: bool = False
    script: str | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Solve:
    """Give the results of the page's tools, and perhaps add a message."""

    script: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """Send an empty view, or one that ends `back` messages before the end."""

    back: int | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Send a message, and cancel while the model is at it."""

    script: str


Act: TypeAlias = Say | Answer | Solve | Look | Stop

PAYLOADS = st.sampled_from((True, False, "yes", "no", "maybe", {"approved": True}, None, 0))
ACTS: st.SearchStrategy[Act] = st.one_of(
    st.builds(Say, SCRIPTS, again=st.booleans()),
    st.builds(
        Answer,
        PAYLOADS,
        cancelled=st.sampled_from((False, False, True)),
        script=st.none() | SCRIPTS,
        again=st.booleans(),
    ),
    st.builds(Solve, script=st.none() | SCRIPTS),
    st.builds(Look, back=st.none() | st.integers(0, 3)),
    st.builds(Stop, st.sampled_from(("/hang", "/say some\n/hang", "/think hm\n/hang"))),
)


@dataclass(frozen=True, slots=True)
class Story:
    """An agent, and what a page does with it. `modern`: the page speaks AG-UI 1.0."""

    agent: str
    acts: Sequence[Act]
    modern: bool = True


STORIES = st.builds(
    Story,
    st.sampled_from(("alone", "gating", "deciding")),
    st.lists(ACTS, min_size=1, max_size=6),
    modern=st.sampled_from((True, True, True, False)),
)


@dataclass(frozen=True, slots=True)
class Told:
    """A stream the page got. `resumed`: its turn had an earlier run."""

    stream: Stream
    resumed: bool


def is_story(acts: Sequence[Act]) -> bool:
    """Whether something is said at all."""
    return any(isinstance(act, Say | Stop) for act in acts)


# ----------------------------------------------------------------- the page


@dataclass(slots=True)
class Page:
    """A page on one thread."""

    story: Story
    engine: Engine
    client: httpx.AsyncClient
    told: list[Told] = field(default_factory=list[Told])
    refused: list[Any] = field(default_factory=list[Any])
    runs: int = 0
    said: int = 0
    asked: list[str] = field(default_factory=list[str])
    turns: set[str] = field(default_factory=set[str])

    async def act(self, act: Act) -> None:
        """Do one thing of the story."""
        messages = await self._messages()
        match act:
            case Say(script, again):
                await self._run([*messages, self._new(script)], again=again)
            case Answer():
                resume = [
                    {"interruptId": asked, "status": "cancelled"}
                    if act.cancelled
                    else {"interruptId": asked, "status": "resolved", "payload": act.payload}
                    for asked in self.asked
                ]
                new = [] if act.script is None else [self._new(act.script)]
                await self._run([*messages, *new], resume=resume, again=act.again)
            case Solve(script):
                new = [] if script is None else [self._new(script)]
                await self._run([*messages, *await self._results(), *new])
            case Look(back):
                shown = [] if back is None else messages[: len(messages) - back]
                await self._run(shown)
            case Stop(script):
                await self._run([*messages, self._new(script)], stop=True)

    def _new(self, script: str) -> Event:
        self.said += 1
        return {"id": f"u{self.said}", "role": "user", "content": script}

    async def session(self) -> str:
        """Return the thread's session."""
        thread = Thread(tenant="local", owner="local", agent_id=self.story.agent, thread_id="t")
        return await self.engine.session_of(thread)

    async def _messages(self) -> list[Event]:
        state = await self.engine.state(await self.session())
        if state is None:
            return []
        path = [node.message for node in state.tree.path(state.control.head)]
        return [
            m.model_dump(mode="json", by_alias=True, exclude_none=True)
            for m in outbound.messages(path)
        ]

    async def _results(self) -> list[Event]:
        state = await self.engine.state(await self.session())
        calls = state.control.calls if state is not None else ()
        return [
            {
                "id": f"r-{call.id}",
                "role": "tool",
                "toolCallId": call.id,
                "content": "from the page",
            }
            for call in calls
            if call.kind == "client"
        ]

    async def _run(
        self,
        messages: list[Event],
        *,
        resume: list[Event] | None = None,
        again: bool = False,
        stop: bool = False,
    ) -> None:
        self.runs += 1
        body: Event = {
            "threadId": "t",
            "runId": f"run{self.runs}",
            "messages": messages,
            "tools": PAGE_TOOLS,
            "context": [],
            "state": {},
            "forwardedProps": {},
        }
        if self.story.modern:
            body["protocolVersion"] = "1.0"
        if resume:
            body["resume"] = resume
        sent = [asyncio.create_task(self._post(body)) for _ in range(2 if again else 1)]
        if stop or (messages and "/hang" in str(messages[-1].get("content"))):
            await self._cancel(sent[0])
        for response in await asyncio.gather(*sent):
            self._take(response)

    async def _post(self, body: Event) -> httpx.Response:
        path = f"/api/channels/ag-ui/agents/{self.story.agent}/run"
        return await self.client.post(path, json=body)

    async def _cancel(self, run: "asyncio.Task[httpx.Response]") -> None:
        """Wait until the model is at it, then stop it; a run that ended by itself is left."""
        watch = asyncio.create_task(self._model_called())
        await asyncio.wait({watch, run}, return_when=asyncio.FIRST_COMPLETED)
        watch.cancel()
        if not run.done():
            await self.client.post("/api/client/sessions/t/cancel")

    async def _model_called(self) -> None:
        session_id = await self.session()
        state = await self.engine.state(session_id)
        seq = state.control.seq if state is not None else 0
        async for batch in self.engine.reader(session_id, seq).batches():
            told = [item.event.body for item in batch if isinstance(item, feed.Told)]
            if any(isinstance(body, ev.LlmCallRequested) for body in told):
                return

    def _take(self, response: httpx.Response) -> None:
        if response.headers["content-type"] == "application/problem+json":
            self.refused.append((response.status_code, response.json()["code"]))
            return
        stream: Stream = [
            json.loads(line.removeprefix("data: "))
            for line in response.content.decode().split("\n")
            if line.startswith("data: ")
        ]
        turn_id = stream[0].get("metadata", {}).get("agui-server/turnId")
        self.told.append(Told(stream, resumed=turn_id in self.turns))
        self.turns.add(turn_id)
        outcome = stream[-1].get("outcome") or {}
        self.asked = [i["id"] for i in outcome.get("interrupts", [])] or self.asked


async def tell(story: Story) -> Page:
    """Live through a story; return the page with every stream it got."""
    async with AsyncExitStack() as stack:
        engine = Engine(db=MemoryStore(), agents=agents())
        await stack.enter_async_context(engine)
        transport = httpx.ASGITransport(app=create_app(engine))
        client = await stack.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=20)
        )
        page = Page(story, engine, client)
        for act in story.acts:
            async with asyncio.timeout(20):
                await page.act(act)
        return page
