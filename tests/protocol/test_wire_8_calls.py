"""Calls, deadlines and retries through the real route.

Source: `protocol.md` section 8.
"""

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from engine import Agent, DecisionRequest, FunctionTool, RetryOverride, Tool, ToolError
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.messages import ToolMessage
from engine.core.worker import ToolExecute
from engine.runtime.clock import FakeClock
from tests.agui.given import Server, until, user
from tests.protocol.calls import Remembering, log_of, results, serving, shown

AT_ONCE = RetryOverride(max=0)
"""Tries again without a wait."""

OWN = Tool("own", "Do it.", {"type": "object"})
DO = "/tool own {}\n/then /say ok"


class Weather(BaseModel):
    """What a tool may return."""

    city: str
    degrees: int


def leaving_open(**more: Any) -> tuple[Agent, asyncio.Queue[str]]:
    """An agent whose worker leaves each call of its tool open; the ids come in a queue."""
    agent = Agent("a", tools=[replace(OWN, **more)])
    left: asyncio.Queue[str] = asyncio.Queue()

    @agent.decide(on="tool.execute")
    async def decide(request: DecisionRequest) -> Any:
        assert isinstance(request.trigger, ToolExecute)
        left.put_nowait(request.trigger.id)
        return {}

    return agent, left


async def settle(server: Server, call_id: str, **how: Any) -> None:
    """A backend ends a call of the only session there is, once its worker has left it open."""

    async def is_left() -> bool:
        [row] = await server.engine.store.sessions(limit=1)
        state = await server.engine.state(row.session_id)
        return state is not None and all(
            getattr(d.trigger, "id", None) != call_id for d in state.control.decisions
        )

    await until(is_left)
    [row] = await server.engine.store.sessions(limit=1)
    how = how or {"result": "did it"}
    command = cmd.SettleCall(call_id=call_id, caller="machine", **how)
    await server.engine.submit(row.session_id, command)


# ----------------------------------------------------------------- function tools


async def test_8_function_tools_schema_and_description_over_http() -> None:
    """The model is told the signature and the first paragraph of the docstring."""

    def get_weather(city: str, days: int = 1) -> str:
        """Say what the weather is like.

        Not for the model.
        """
        return city * days

    model = Remembering()
    async with serving(Agent("a", tools=[get_weather]), models={"demo": model}) as server:
        await server.run(user("u1", "/say hi"))
        [told] = model.requests[0].tools
        assert (told["name"], told["description"]) == (
            "get_weather",
            "Say what the weather is like.",
        )
        assert told["parameters"]["required"] == ["city"]
        assert told["parameters"]["properties"]["days"]["type"] == "integer"


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(
    ("returned", "said"),
    [("sunny", "sunny"), (Weather(city="Oslo", degrees=3), '{"city":"Oslo","degrees":3}')],
    ids=["string", "model"],
)
async def test_8_function_tools_result_over_http(returned: Any, said: str, kind: str) -> None:
    """What the function returns is what the page and the model get."""

    def plain() -> Any:
        """Do it."""
        return returned

    async def waiting() -> Any:
        """Do it."""
        return returned

    function = {"sync": plain, "async": waiting}[kind]
    agent = Agent("a", tools=[FunctionTool(function, name="get")])
    async with serving(agent) as server:
        stream = await server.run(user("u1", "/tool get {}\n/then /say ok"))
        assert list(results(stream).values()) == [said]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ToolError("no such city"), '{"error":"no such city"}'),
        (KeyError("secret"), '{"error":"the tool failed"}'),
    ],
    ids=["ToolError", "another"],
)
async def test_8_function_tools_error_over_http(
    error: Exception, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The tool's own word is for the model; what else went wrong is for the log."""

    def get() -> str:
        """Do it."""
        raise error

    async with serving(Agent("a", tools=[get])) as server:
        stream = await server.run(user("u1", "/tool get {}\n/then /say ok"))
        assert list(results(stream).values()) == [said]
        assert (stream.text, stream.outcome) == ("ok", "success")
        assert ("secret" in caplog.text) is isinstance(error, KeyError)


@pytest.mark.parametrize("retryable", [True, False], ids=["marked", "not marked"])
async def test_8_function_tools_error_that_is_retryable_over_http(
    retryable: bool,  # noqa: FBT001
) -> None:
    """Another attempt follows when the tool says so, and its policy allows one."""
    tries: list[int] = []

    def get() -> str:
        """Do it."""
        tries.append(1)
        raise ToolError("busy", retryable=retryable)

    patient = FunctionTool(get, retry=RetryOverride(attempts=3, max=0))
    async with serving(Agent("a", tools=[patient])) as server:
        stream = await server.run(user("u1", "/tool get {}\n/then /say ok"))
        assert list(results(stream).values()) == ['{"error":"busy"}']
        assert len(tries) == (3 if retryable else 1)


async def test_8_function_tools_of_one_reply_run_in_parallel_over_http() -> None:
    """Each of three waits until all have begun: threads and tasks alike."""
    begun = threading.Barrier(2, timeout=30)
    both = asyncio.Barrier(2)

    def blocking() -> str:
        """Block."""
        begun.wait()
        return "b"

    async def waiting() -> str:
        """Wait."""
        await both.wait()
        return "w"

    said = (
        "\n".join(f"/tool {name} {{}}" for name in ("blocking", "waiting") * 2) + "\n/then /say ok"
    )
    async with serving(Agent("a", tools=[blocking, waiting])) as server:
        stream = await server.run(user("u1", said))
        assert list(results(stream).values()).count("b") == 2
        assert list(results(stream).values()).count("w") == 2
        assert stream.text == "ok"


async def test_8_function_tools_cancel_stops_an_async_one_over_http() -> None:
    """It is stopped for real."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def hang() -> str:
        """Never return."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async with serving(Agent("a", tools=[hang])) as server:
        running = asyncio.create_task(server.run(user("u1", "/tool hang {}")))
        await begun.wait()
        await server.cancel()
        assert (await running).outcome == "cancelled"
        await stopped.wait()


async def test_8_function_tools_cancel_refuses_a_threads_result_over_http() -> None:
    """The thread is left to end, and what it returns is not recorded."""
    begun, go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def block() -> str:
        """Block."""
        loop.call_soon_threadsafe(begun.set)
        go.wait(30)
        loop.call_soon_threadsafe(ended.set)
        return "late"

    async with serving(Agent("a", tools=[block])) as server:
        running = asyncio.create_task(server.run(user("u1", "/tool block {}")))
        await begun.wait()
        await server.cancel()
        stream = await running
        go.set()
        await ended.wait()
        assert list(results(stream).values()) == ['{"error":"cancelled: the turn ended"}']
        assert await log_of(server, stream, ev.ToolCallCompleted) == []


async def test_8_timeouts_of_a_function_tool_over_http() -> None:
    """Its attempt lapses, another one follows when the policy allows it."""
    attempts: list[int] = []

    async def slow() -> str:
        """Hang once."""
        attempts.append(len(attempts) + 1)
        if len(attempts) == 1:
            await asyncio.Event().wait()
        return "at last"

    patient = FunctionTool(slow, retry=RetryOverride(run=0.1, attempts=2, max=0))
    async with serving(Agent("a", tools=[patient])) as server:
        stream = await server.run(user("u1", "/tool slow {}\n/then /say ok"))
        assert (attempts, list(results(stream).values())) == ([1, 2], ["at last"])


# -------------------------------------------------------------------- model calls


async def test_8_row_model_call_over_http() -> None:
    """A provider that fails four times is asked a fifth."""
    model = Remembering()
    agent = Agent("a", retry={"llm": AT_ONCE})
    async with serving(agent, models={"demo": model}) as server:
        stream = await server.run(user("u1", "/fail 503 times 4\n/say fine"))
        assert (stream.text, stream.outcome) == ("fine", "success")
        assert [request.attempt for request in model.requests] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("status", "code", "attempts"),
    [(429, "rate_limited", 5), (500, "provider_error", 5), (400, "provider_error", 1)],
)
async def test_8_only_errors_marked_retryable_are_tried_again_over_http(
    status: int, code: str, attempts: int
) -> None:
    """The run ends with the error of the last attempt."""
    model = Remembering()
    agent = Agent("a", retry={"llm": AT_ONCE})
    async with serving(agent, models={"demo": model}) as server:
        stream = await server.run(user("u1", f"/fail {status}"))
        assert stream.outcome == f"error {code}"
        assert len(model.requests) == attempts


# -------------------------------------------------------------------- async tools


@pytest.mark.parametrize(
    ("how", "said"),
    [({"result": "did it"}, "did it"), ({"error": "broken"}, '{"error":"broken"}')],
    ids=["result", "error"],
)
async def test_8_async_tool_ends_when_it_is_settled_over_http(how: Any, said: str) -> None:
    """The run waits, and goes on with the result."""
    agent, left = leaving_open()
    async with serving(agent) as server:
        running = asyncio.create_task(server.run(user("u1", DO)))
        await settle(server, await left.get(), **how)
        stream = await running
        assert (list(results(stream).values()), stream.text) == ([said], "ok")


async def test_8_async_tool_the_model_is_called_when_no_call_is_open_over_http() -> None:
    """Two are left open: one model call after the second result."""
    agent, left = leaving_open()
    model = Remembering()
    async with serving(agent, models={"demo": model}) as server:
        running = asyncio.create_task(
            server.run(user("u1", "/tool own {}\n/tool own {}\n/then /say ok"))
        )
        first, second = await left.get(), await left.get()
        await settle(server, second, result="2")
        assert len(model.requests) == 1
        await settle(server, first, result="1")
        stream = await running
        assert (results(stream), len(model.requests)) == ({first: "1", second: "2"}, 2)


async def test_8_async_tool_past_its_deadline_over_http() -> None:
    """The time that its `retry` sets runs from when it is left open."""
    agent, left = leaving_open(retry=RetryOverride(total=60))
    clock = FakeClock()
    async with serving(agent, clock=clock) as server:
        running = asyncio.create_task(server.run(user("u1", DO)))
        call_id = await left.get()
        await until(lambda: _has_deadline(server, call_id))
        clock.advance(timedelta(seconds=61))
        stream = await running
        assert list(results(stream)) == [call_id]
        assert stream.text == "ok"


async def _has_deadline(server: Server, call_id: str) -> bool:
    [row] = await server.engine.store.sessions(limit=1)
    state = await server.engine.state(row.session_id)
    found = state.call(call_id) if state is not None else None
    return found is not None and found.deadline is not None


@pytest.mark.parametrize("late", [True, False], ids=["overdue", "in time"])
async def test_8_async_tool_after_a_restart_over_http(late: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """It is open as before; a deadline that passed meanwhile fires on start."""
    agent, left = leaving_open(retry=RetryOverride(total=60))
    clock = FakeClock()
    db = str(tmp_path / "agents.db")
    async with serving(agent, clock=clock, db=db) as server:
        running = asyncio.create_task(server.run(user("u1", DO)))
        call_id = await left.get()
        await until(lambda: _has_deadline(server, call_id))
        running.cancel()
    if late:
        clock.advance(timedelta(hours=1))
    async with serving(agent, clock=clock, db=db) as server:
        if not late:
            await settle(server, call_id)
        [row] = await server.engine.store.sessions(limit=1)

        async def over() -> bool:
            events = await server.engine.store.events(row.session_id)
            return any(isinstance(event.body, ev.TurnCompleted) for event in events)

        await until(over)
        state = await server.engine.state(row.session_id)
        assert state is not None
        path = [node.message for node in state.tree.path(state.control.head)]
        [result] = [m for m in path if isinstance(m, ToolMessage)]
        assert (result.error is not None) is late
        assert left.empty()


# ------------------------------------------------------------------- client tools


async def test_8_client_tool_over_http() -> None:
    """The run ends with the call pending; its answer goes on in the same turn."""
    agent = Agent("a", tools=[Tool("pick", "", {"type": "object"}, handler="client")])
    said = "/tool pick {}\n/then /say done"
    async with serving(agent) as server:
        asked = await server.run(user("u1", said))
        [call_id] = asked.last["outcome"]["pendingToolCallIds"]
        answer = {"id": "t1", "role": "tool", "toolCallId": call_id, "content": "blue"}
        stream = await server.run(*shown(said, asked), answer)
        assert (stream.text, stream.turn_id) == ("done", asked.turn_id)


async def test_8_a_client_may_end_client_calls_only_over_http() -> None:
    """A page that invents the result of a worker's call is not believed."""
    agent, left = leaving_open()
    async with serving(agent) as server:
        running = asyncio.create_task(server.run(user("u1", DO)))
        call_id = await left.get()
        forged = {"id": "t1", "role": "tool", "toolCallId": call_id, "content": "forged"}
        again = asyncio.create_task(server.run(user("u1", DO), forged))
        await until(lambda: _has_two_readers(server))
        await settle(server, call_id)
        assert results(await running) == results(await again) == {call_id: "did it"}


async def _has_two_readers(server: Server) -> bool:
    [row] = await server.engine.store.sessions(limit=1)
    return server.engine.reader(row.session_id, 0).feed.readers == 2
