"""Function tools: the call, the result, and everything that goes wrong."""

import asyncio
import contextvars
import functools
import logging
import math
import threading
from datetime import date
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel

from engine.core.errors import ToolError
from engine.core.messages import Json
from engine.runtime.functions import FAILED, MAX_THREADS, FunctionTool


class Guest(BaseModel):
    """Somebody invited."""

    name: str
    age: int = 0


class Colour(StrEnum):
    """A colour."""

    RED = "red"


def text(value: str) -> dict[str, Json]:
    """Return a result of one text block."""
    return {"content": [{"type": "text", "text": value}]}


def log_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged as an error."""
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


def plain(to: str, subject: str = "hello") -> str:
    """Send an email.

    The second paragraph is for programmers.
    """
    return f"{to}: {subject}"


# ---------------------------------------------------------------- arguments


async def describe(guest: Guest, day: date, colour: Colour = Colour.RED) -> str:
    """Describe what arrived."""
    return f"{type(guest).__name__} {guest.age + 1} {day.year} {colour!r}"


async def test_arguments_arrive_as_the_declared_types() -> None:
    """Models, dates and enums are built from JSON, numbers are read from text."""
    result = await FunctionTool(describe).run(
        {"guest": {"name": "Ada", "age": "36"}, "day": "2025-01-02"}
    )

    assert result == text("Guest 37 2025 <Colour.RED: 'red'>")


async def test_no_arguments_are_an_empty_object() -> None:
    """A model that sends nothing calls a function that needs nothing."""
    assert await FunctionTool(lambda: "ok").run(None) == text("ok")


async def test_a_default_is_not_shared_between_calls() -> None:
    """A mutable default is built anew for each call."""

    def collect(names: list[str] = []) -> int:  # noqa: B006 - what is tested
        names.append("a")
        return len(names)

    tool = FunctionTool(collect)

    assert [await tool.run({}), await tool.run({})] == [text("1"), text("1")]


async def test_a_bound_method_is_a_tool() -> None:
    """`self` is no argument of the model's."""

    class Mailer:
        def send(self, to: str) -> str:
            return f"sent to {to}"

    tool = FunctionTool(Mailer().send)

    assert await tool.run({"to": "ada"}) == text("sent to ada")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"day": "2025-01-02"}, "guest: required", id="missing"),
        pytest.param(
            {"guest": {"name": "a", "age": "x"}, "day": "2025-01-02"},
            "guest.age: Input should be a valid integer, unable to parse string as an integer",
            id="nested",
        ),
        pytest.param(
            {"guest": {"name": "a"}, "day": "2025-01-02", "to": "b", "\ud83d": 1},
            "to: unknown; \ufffd: unknown",
            id="unknown",
        ),
        pytest.param([], "an object is required", id="list"),
        pytest.param("{}", "an object is required", id="text"),
    ],
)
async def test_wrong_arguments_are_named_for_the_model(arguments: Json, message: str) -> None:
    """The function is not called, and the error says which argument to mend."""
    with pytest.raises(ToolError) as raised:
        await FunctionTool(describe).run(arguments)

    assert str(raised.value) == f"invalid arguments: {message}"


# ------------------------------------------------------------------ results


@pytest.mark.parametrize(
    ("value", "result"),
    [
        pytest.param("sent", text("sent"), id="text"),
        pytest.param(None, text(""), id="nothing"),
        pytest.param(3, text("3"), id="number"),
        pytest.param(math.nan, text(""), id="NaN"),
        pytest.param([Guest(name="Ada")], text('[{"name":"Ada","age":0}]'), id="list of models"),
        pytest.param(
            Guest(name="Ada"),
            {
                **text('{"name":"Ada","age":0}'),
                "structuredContent": {"name": "Ada", "age": 0},
            },
            id="model",
        ),
        pytest.param(
            {"at": date(2025, 1, 2), 1: math.inf},
            {
                **text('{"at":"2025-01-02","1":null}'),
                "structuredContent": {"at": "2025-01-02", "1": None},
            },
            id="dict",
        ),
        pytest.param(
            {"content": [{"type": "image", "data": b"hi", "mimeType": "image/png"}]},
            {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]},
            id="MCP shape",
        ),
        pytest.param("\ud83d\ude00\ud83d", text("\U0001f600\ufffd"), id="surrogates"),
        pytest.param(
            {"\ud83d": 1},
            {**text('{"\ufffd":1}'), "structuredContent": {"\ufffd": 1}},
            id="surrogate in a key",
        ),
    ],
)
async def test_what_a_function_returns_becomes_a_result(value: Any, result: Json) -> None:
    """Every value with a JSON form becomes the MCP shape."""

    def tool() -> Any:
        return value

    assert await FunctionTool(tool).run({}) == result


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="object"),
        pytest.param({"f": print}, id="nested function"),
        pytest.param({"\ud83d": 1, 2: 3}, id="half an emoji beside a number, as keys"),
    ],
)
async def test_a_value_without_a_json_form_is_a_failure(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its `repr` never reaches a model; the log says what it was."""

    def tool() -> Any:
        return value

    with pytest.raises(ToolError) as raised:
        await FunctionTool(tool).run({})

    assert str(raised.value) == FAILED
    assert log_of(caplog) == ["tool tool failed"]


# ------------------------------------------------------------------- errors


def tools_that_raise(error: BaseException) -> list[FunctionTool]:
    """Return a sync and an async tool that raise the error."""

    def sync_tool() -> None:
        raise error

    async def async_tool() -> None:
        raise error

    return [FunctionTool(sync_tool), FunctionTool(async_tool)]


@pytest.mark.parametrize(
    ("raised_text", "read"),
    [
        pytest.param("no such guest", "no such guest", id="text"),
        pytest.param("half \ud83d", "half \ufffd", id="surrogate"),
        pytest.param("", FAILED, id="empty"),
    ],
)
async def test_a_tool_error_is_the_tools_own_word(
    raised_text: str, read: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The model reads its text, and nothing is logged: it is an answer."""
    for tool in tools_that_raise(ToolError(raised_text)):
        with pytest.raises(ToolError) as raised:
            await tool.run({})
        assert str(raised.value) == read

    assert log_of(caplog) == []


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(RuntimeError("secret"), id="error"),
        pytest.param(StopIteration("secret"), id="StopIteration"),
        pytest.param(SystemExit("secret"), id="SystemExit"),
        pytest.param(asyncio.CancelledError("secret"), id="CancelledError of its own"),
        pytest.param(ExceptionGroup("secret", [ToolError("secret")]), id="group"),
    ],
)
async def test_any_other_exception_is_logged_and_read_as_a_plain_sentence(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """The server lives on, the log has the traceback, the model learns nothing of it."""
    for tool in tools_that_raise(error):
        with pytest.raises(ToolError) as raised:
            await tool.run({})
        assert str(raised.value) == FAILED

    assert log_of(caplog) == ["tool sync_tool failed", "tool async_tool failed"]
    assert all(record.exc_info for record in caplog.records)


async def test_a_keyboard_interrupt_in_a_thread_ends_only_the_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In a thread it is the tool's doing: the event loop never sees it."""
    sync_tool, _ = tools_that_raise(KeyboardInterrupt())

    with pytest.raises(ToolError, match=FAILED):
        await sync_tool.run({})

    assert log_of(caplog) == ["tool sync_tool failed"]


async def test_a_validation_error_inside_a_tool_is_not_the_models_fault() -> None:
    """Only the arguments are reported as such; what breaks inside is a failure."""

    def tool() -> None:
        Guest.model_validate({})

    with pytest.raises(ToolError, match=FAILED):
        await FunctionTool(tool).run({})


# ------------------------------------------------------- threads and cancel

place: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="nowhere")


async def test_a_sync_function_runs_beside_the_loop_with_the_callers_context() -> None:
    """It has a thread of its own, and reads the caller's context variables."""
    place.set("here")

    def tool() -> str:
        return f"{place.get()} {threading.current_thread() is threading.main_thread()}"

    assert await FunctionTool(tool).run({}) == text("here False")


async def test_a_sync_wrapper_of_an_async_function_is_awaited() -> None:
    """A decorator that hides the coroutine function does not break the tool."""

    async def inner(n: int) -> int:
        return n + 1

    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    assert await FunctionTool(outer).run({"n": 1}) == text("2")


async def test_cancelling_stops_an_async_function_for_real() -> None:
    """The function itself sees the cancellation, and it is not taken for a failure."""
    started = asyncio.Event()
    seen: list[str] = []

    async def tool() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = asyncio.create_task(FunctionTool(tool).run({}))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_cancelling_a_sync_function_ends_the_waiting_at_once() -> None:
    """The thread is left to end by itself, and what it returns is dropped."""
    started, let_go, ended = asyncio.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def tool() -> str:
        loop.call_soon_threadsafe(started.set)
        let_go.wait()
        loop.call_soon_threadsafe(ended.set)
        return "too late"

    task = asyncio.create_task(FunctionTool(tool).run({}))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ended.is_set()
    let_go.set()
    await ended.wait()


async def test_a_thread_that_is_still_running_counts_until_it_ends() -> None:
    """Calls over the limit wait, also for threads whose call was cancelled."""
    let_go = threading.Event()
    running = threading.Semaphore(0)

    def tool(block: bool) -> str:  # noqa: FBT001 - a tool's parameter
        if block:
            running.release()
            let_go.wait()
        return "ran"

    blocking = FunctionTool(tool)
    tasks = [asyncio.create_task(blocking.run({"block": True})) for _ in range(MAX_THREADS)]
    for _ in tasks:
        await asyncio.to_thread(running.acquire)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    late = asyncio.create_task(blocking.run({"block": False}))
    other = FunctionTool(plain)
    assert await other.run({"to": "a"}) == text("a: hello")
    assert not late.done()

    let_go.set()
    assert await late == text("ran")


def test_a_tool_outlives_an_event_loop() -> None:
    """One declaration serves loops that come one after another, also after a hung call."""
    let_go = threading.Event()

    def tool(block: bool) -> str:  # noqa: FBT001 - a tool's parameter
        return str(block and let_go.wait())

    hanging = FunctionTool(tool)

    async def give_up() -> None:
        await asyncio.wait([asyncio.create_task(hanging.run({"block": True}))], timeout=0)

    asyncio.run(give_up())
    assert asyncio.run(hanging.run({"block": False})) == text("False")
    let_go.set()
