"""Function tools: a typed Python function that a model can call.

The schema comes from the signature, the description from the docstring, and
what the function returns becomes a result of the MCP shape. A sync function runs
in a thread of its own, an async one in the task that calls it.

Source: `protocol.md` section 8, "Function tools".
"""

import asyncio
import contextlib
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from engine.core.env import FUNCTION_TOOL, ToolSpec
from engine.core.errors import EngineError, ToolError
from engine.core.messages import Json
from engine.core.results import as_result
from engine.core.text import repair, repair_json
from engine.core.worker import RetryOverride

FAILED = "the tool failed"
"""What a model reads when a tool broke: the reason is in the log, and nowhere else."""

MAX_THREADS = 64
"""Threads one tool may have at a time; further calls wait. A tool that hangs can so
neither starve the other tools nor fill the process with threads."""

_MESSAGES = {
    "missing_argument": "required",
    "missing_keyword_only_argument": "required",
    "unexpected_keyword_argument": "unknown",
}

_BAD_ANNOTATION = (NameError, AttributeError, SyntaxError, TypeError, PydanticUserError)
"""What evaluating a signature's annotations may raise: the names in them are the user's."""

_logger = logging.getLogger(__name__)


@dataclass
class InvalidTool(EngineError):
    """A function cannot be a tool. Raised where the tool is declared."""

    tool: str
    reason: str

    def __str__(self) -> str:
        return f"{self.tool} cannot be a tool: {self.reason}"


class FunctionTool:
    """A function as a tool, checked when it is declared.

    Every parameter needs a type annotation and is passed by name. `name` is the
    function's own unless given. `parameters` is a JSON Schema object. `approve`: a person
    is asked before a call runs. `retry` changes how long a call may take and how often it
    is tried.

    Raises:
        InvalidTool: the function has no signature a model could fill.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        retry: RetryOverride | None = None,
        approve: bool = False,
    ) -> None:
        self.name = name or str(getattr(function, "__name__", function))
        self.function = function
        self.retry = retry
        self.approve = approve
        self._arguments = _arguments_of(function, self.name)
        self.description = _first_paragraph(function)
        self.parameters: Json = _schema_of(self._arguments, self.name)
        self._threads = _Threads(MAX_THREADS)

    def __repr__(self) -> str:
        """Name the tool."""
        return f"FunctionTool({self.name!r})"

    def spec(self) -> ToolSpec:
        """Return what the core knows of this tool."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            handler="function",
            retry=FUNCTION_TOOL.but(self.retry),
            approve=self.approve,
        )

    async def run(self, arguments: Json) -> dict[str, Json]:
        """Call the function and return its result, of the MCP shape.

        `arguments` is a JSON object; `None` counts as an empty one. Cancelling stops
        an async function; of a sync one only the waiting ends, the thread is left to
        end and what it returns is dropped.

        Raises:
            ToolError: its text is for the model: the tool's own word, which argument
                is wrong, or :data:`FAILED`.
        """
        try:
            args, kwargs = self._validated({} if arguments is None else arguments)
            return as_result(_to_json(await self._call(args, kwargs)))
        except ToolError as error:
            text = repair(str(error))
            if text and text == str(error):
                raise
            raise ToolError(text or FAILED, retryable=error.retryable) from error
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            # The tool cancelled something of its own and let it escape.
            raise self._failed(error) from error
        except (Exception, SystemExit) as error:
            raise self._failed(error) from error

    def _validated(self, arguments: Json) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not isinstance(arguments, dict):
            raise ToolError("invalid arguments: an object is required")
        # JSON text without a lone surrogate may still spell one: "\\ud83d".
        members = repair_json(cast("dict[str, Any]", arguments))
        try:
            return self._arguments.validate_python(members)
        except ValidationError as error:
            raise ToolError(_describe(error)) from error

    async def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self.function):
            return await self.function(*args, **kwargs)
        outcome = await self._threads.run(lambda: self.function(*args, **kwargs))
        if isinstance(outcome.error, Exception):
            raise outcome.error
        if outcome.error is not None:
            # SystemExit, KeyboardInterrupt and their like would end the event loop.
            raise self._failed(outcome.error) from outcome.error
        # A sync wrapper of an async function returns what is still to be awaited.
        return await outcome.value if inspect.isawaitable(outcome.value) else outcome.value

    def _failed(self, error: BaseException) -> ToolError:
        _logger.error("tool %s failed", self.name, exc_info=error)
        return ToolError(FAILED)


# ------------------------------------------------------------------ threads


@dataclass(frozen=True, slots=True)
class _Outcome:
    value: Any = None
    error: BaseException | None = None


class _Threads:
    """Threads for calls that block, at most `limit` at a time.

    They are daemons, unlike those of `asyncio.to_thread`: a call that never returns
    must not keep the process from ending. A thread nobody waits for any more counts
    until it ends.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free = asyncio.Semaphore(limit)

    async def run(self, call: Callable[[], Any]) -> _Outcome:
        """Run `call` in a thread, with this task's context variables."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # Tools are declared once and outlive a loop; a semaphore does not.
            self._loop, self._free = loop, asyncio.Semaphore(self._limit)
        free, context = self._free, contextvars.copy_context()
        ended: asyncio.Future[_Outcome] = loop.create_future()

        def settle(outcome: _Outcome) -> None:
            free.release()
            if not ended.done():
                ended.set_result(outcome)

        def main() -> None:
            outcome = context.run(_outcome_of, call)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(settle, outcome)

        await free.acquire()
        try:
            threading.Thread(target=main, name="function tool", daemon=True).start()
        except RuntimeError:  # the system has no thread left
            free.release()
            raise
        return await ended


def _outcome_of(call: Callable[[], Any]) -> _Outcome:
    try:
        return _Outcome(value=call())
    except BaseException as error:  # noqa: BLE001 - the task that waits decides
        return _Outcome(error=error)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


# --------------------------------------------------------- from the signature


class _Schema(GenerateJsonSchema):
    """Pydantic's JSON Schema without the titles it makes up from parameter names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def _arguments_of(function: Any, name: str) -> TypeAdapter[Any]:
    """Return a validator that turns a dict into the function's `(args, kwargs)`."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise InvalidTool(name, "it is not a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTool(name, "it yields; return one value")
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        problem = _problem_of(parameter)
        if problem is not None:
            raise InvalidTool(name, f"parameter {parameter.name!r} {problem}")

    # Pydantic can validate a call only by making it. The double has the function's
    # signature and hands back what it is called with, so that an error of the
    # function itself is never taken for one of its arguments.
    def double(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    annotations = {p.name: p.annotation for p in signature.parameters.values()}
    double.__annotations__ = annotations
    origin = inspect.unwrap(function)
    try:
        hints = get_type_hints(double, globalns=origin.__globals__, include_extras=True)
        parameters = [p.replace(annotation=hints[p.name]) for p in signature.parameters.values()]
        double.__annotations__ = hints
        double.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
        return TypeAdapter[Any](cast("Any", double))
    except _BAD_ANNOTATION as error:
        raise InvalidTool(name, f"its annotations cannot be used: {_line(error)}") from error


def _problem_of(parameter: inspect.Parameter) -> str | None:
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.VAR_KEYWORD:
            return "takes any number of arguments; name each one"
        case inspect.Parameter.POSITIONAL_ONLY:
            return "is positional only; a model passes arguments by name"
        case _:
            missing = parameter.annotation is inspect.Parameter.empty
            return "has no type annotation" if missing else None


def _schema_of(arguments: TypeAdapter[Any], name: str) -> Json:
    try:
        return arguments.json_schema(schema_generator=_Schema)
    except PydanticUserError as error:
        raise InvalidTool(name, f"its annotations have no JSON Schema: {_line(error)}") from error


def _line(error: Exception) -> str:
    """Return what went wrong, without the addresses that pydantic puts below it."""
    return str(error).partition("\n")[0]


def _first_paragraph(function: Callable[..., Any]) -> str:
    lines = (inspect.getdoc(function) or "").strip().partition("\n\n")[0].split("\n")
    return " ".join(line.strip() for line in lines)


# -------------------------------------------------------- in and out of JSON


def _describe(error: ValidationError) -> str:
    """Name each wrong argument and what is wrong with it, and nothing of its value."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    parts = [
        f"{'.'.join(str(step) for step in problem['loc'])}: "
        f"{_MESSAGES.get(problem['type'], problem['msg'])}"
        for problem in problems
    ]
    return "invalid arguments: " + "; ".join(parts)


def _to_json(value: Any) -> Json:
    """Turn models, dates, enums and the like into JSON values.

    Raises:
        ValueError: the value holds something that has no JSON form.
    """
    try:
        return to_jsonable_python(value, bytes_mode="base64")
    except UnicodeEncodeError:  # a lone surrogate in a key
        return to_jsonable_python(repair_json(value), bytes_mode="base64")
