"""What a user declares: an agent, its tools, and the worker that decides for it.

    operator = Agent("operator", llm="demo", tools=[send_email])

    @operator.decide(on=("tool.execute",))
    def ask_first(request):
        return interrupt("confirm") if request.trigger.name == "send_email" else request.proposed

A mistake in a declaration raises where it is made, not when the first session runs.
"""

import difflib
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeAlias, TypeVar, cast, get_args, overload

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from engine.core.env import (
    DECISION,
    FUNCTION_TOOL,
    MODEL_CALL,
    WORKER_TOOL,
    AgentSpec,
    RetryPolicy,
    ToolSpec,
)
from engine.core.errors import EngineError
from engine.core.ids import is_id
from engine.core.messages import Json
from engine.core.retries import problem_of
from engine.core.worker import (
    Action,
    DecisionRequest,
    DecisionResponse,
    RetryOverride,
    Trigger,
)
from engine.runtime.functions import FunctionTool

Answer: TypeAlias = DecisionResponse | Action | Collection[Action] | dict[str, Json]
"""What a worker may return: a response (`request.proposed` is one), one action or
several, or the response as JSON (`{"actions": [...]}`). Nothing at all is an error:
it is a forgotten `return` more often than a wish to do nothing, which is `{}`."""

Decide: TypeAlias = Callable[[DecisionRequest], Answer | Awaitable[Answer]]
"""A worker in this process, sync or async."""

_Worker = TypeVar("_Worker", bound=Callable[..., object])

TRIGGERS = frozenset(
    cast("str", field.default)
    for trigger in get_args(Trigger)
    for field in fields(trigger)
    if field.name == "type"
)
"""Every trigger type a worker can be asked about."""

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every model provider accepts as the name of a tool."""

_NO_ARGUMENTS: Json = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass
class InvalidAgent(EngineError):
    """A declaration cannot be used. Raised where it is made."""

    agent_id: str
    reason: str

    def __str__(self) -> str:
        return f"Agent {self.agent_id!r}: {self.reason}"


Work: TypeAlias = Literal["default", "llm", "function", "worker", "decision"]
"""What a retry policy is for: model calls, function tools, a worker's tools, its decisions."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the engine has no function for: the worker runs it, or the client.

    `parameters` is a JSON Schema whose `type` is `object`; `None` takes no arguments.
    `approve`: a person is asked before a call runs. A worker may leave a call open and
    settle it later (an async tool); with `retry` such a call has its `total` time, without
    it waits for ever.
    """

    name: str
    description: str = ""
    parameters: dict[str, Json] | None = None
    retry: RetryOverride | None = None
    handler: Literal["worker", "client"] = "worker"
    approve: bool = False

    def spec(self) -> ToolSpec:
        """Return what the core knows of this tool."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=_NO_ARGUMENTS if self.parameters is None else self.parameters,
            handler=self.handler,
            retry=WORKER_TOOL.but(self.retry),
            approve=self.approve,
            left_open=_bound(self.retry),
        )


def _bound(retry: RetryOverride | None) -> RetryPolicy | None:
    """Return how long a call may be left open: only when that was said."""
    time = None if retry is None else retry.total or retry.run
    if time is None:
        return None
    return WORKER_TOOL.but(retry).but(RetryOverride(run=time, total=time))


class Agent:
    """An agent: which model it talks to, which tools it has, who decides for it.

    `llm` names a model the engine was given, `model` one of that provider's models.
    `tools` holds functions (run by the engine) and :class:`Tool` (run by the worker).
    `name` and `description` are for people. `worker` is the same as `decide` without
    `on`; an agent without a worker takes the engine's own proposals. `retry` says how long
    work may take and how often it is tried, for all of it (`default`) or a kind; a tool's
    own `retry` goes before it. `send_tree`: the worker is shown every branch.

    Raises:
        InvalidAgent: the id cannot be one, or a tool's name or schema.
        InvalidTool: a function has no signature a model could fill.
    """

    def __init__(
        self,
        id: str,
        *,
        llm: str = "demo",
        model: str | None = None,
        system: str | None = None,
        tools: Iterable[Callable[..., object] | FunctionTool | Tool] = (),
        name: str | None = None,
        description: str | None = None,
        worker: Decide | None = None,
        retry: Mapping[Work, RetryOverride] | None = None,
        send_tree: bool = False,
    ) -> None:
        if not is_id(id) or "/" in id:
            raise InvalidAgent(id, "an id is 1 to 256 characters, none of them '/' or a control")
        self.id = id
        self.llm = llm
        self.model = model
        self.system = system
        self.name = name or id
        self.description = description
        self.retry = dict(retry or {})
        self.send_tree = send_tree
        for kind, override in self.retry.items():
            if kind not in get_args(Work):
                raise InvalidAgent(
                    id, f"retry is for {', '.join(get_args(Work))}; not for {kind!r}"
                )
            if problem := problem_of(override):
                raise InvalidAgent(id, f"retry[{kind!r}].{problem[0]}: {problem[1]}")
        self.worker: Decide | None = worker
        self.on: frozenset[str] | None = None
        self.functions: dict[str, FunctionTool] = {}
        self._tools: dict[str, ToolSpec] = {}
        for tool in tools:
            self._add(tool)

    def __repr__(self) -> str:
        """Show the id and the tools' names."""
        return f"Agent({self.id!r}, tools={list(self._tools)})"

    @overload
    def decide(self, function: _Worker, /) -> _Worker: ...

    @overload
    def decide(self, /, *, on: str | Iterable[str]) -> Callable[[_Worker], _Worker]: ...

    def decide(
        self, function: _Worker | None = None, /, *, on: str | Iterable[str] | None = None
    ) -> _Worker | Callable[[_Worker], _Worker]:
        """Make a function the agent's worker; it is returned unchanged.

        `on` names the trigger types it is asked about, all of them when left out. For
        the others the engine takes its own proposal.

        Raises:
            InvalidAgent: there is a worker already, or `on` names no known trigger.
        """
        wanted = None if on is None else self._triggers(on)
        if function is not None:
            return self._decided_by(function, wanted)
        return lambda worker: self._decided_by(worker, wanted)

    def spec(self) -> AgentSpec:
        """Return what the core knows of this agent. Without a `model` it is the `llm`'s id."""
        return AgentSpec(
            id=self.id,
            model=self.model or self.llm,
            system=self.system,
            tools=dict(self._tools),
            wants=frozenset() if self.worker is None else self.on,
            model_retry=self._policy(MODEL_CALL, "llm"),
            decision_retry=self._policy(DECISION, "decision"),
            send_tree=self.send_tree,
        )

    def _policy(self, usual: RetryPolicy, kind: Work) -> RetryPolicy:
        return usual.but(self.retry.get("default")).but(self.retry.get(kind))

    def _add(self, declared: Callable[..., object] | FunctionTool | Tool) -> None:
        is_whole = isinstance(declared, Tool | FunctionTool)
        tool = declared if is_whole else FunctionTool(declared)
        spec = tool.spec()
        if isinstance(tool, FunctionTool):
            spec = replace(spec, retry=self._policy(FUNCTION_TOOL, "function").but(tool.retry))
        else:
            spec = replace(spec, retry=self._policy(WORKER_TOOL, "worker").but(tool.retry))
        problem = _problem_of(spec)
        if wrong := problem_of(tool.retry):
            problem = f"retry.{wrong[0]}: {wrong[1]}"
        if spec.name in self._tools:
            problem = "an agent has one tool of a name"
        if problem is not None:
            raise InvalidAgent(self.id, f"tool {spec.name!r}: {problem}")
        self._tools[spec.name] = spec
        if isinstance(tool, FunctionTool):
            self.functions[spec.name] = tool

    def _triggers(self, on: str | Iterable[str]) -> frozenset[str]:
        names = frozenset((on,) if isinstance(on, str) else on)
        if not names:
            raise InvalidAgent(self.id, "on=() leaves nothing to decide; name a trigger")
        for name in sorted(names - TRIGGERS):
            nearest = difflib.get_close_matches(name, sorted(TRIGGERS), n=1, cutoff=0)[0]
            raise InvalidAgent(self.id, f"there is no trigger {name!r}; did you mean {nearest!r}?")
        return names

    def _decided_by(self, function: _Worker, wanted: frozenset[str] | None) -> _Worker:
        if not callable(function):
            raise InvalidAgent(self.id, f"a worker is a function, not {function!r}")
        if self.worker is not None:
            raise InvalidAgent(self.id, "it has a worker already; one function decides")
        self.worker, self.on = cast("Decide", function), wanted
        return function


def _problem_of(spec: ToolSpec) -> str | None:
    if _TOOL_NAME.fullmatch(spec.name) is None:
        return "a name is 1 to 64 letters, digits, '_' or '-'"
    if spec.approve and spec.handler == "client":
        return "nobody can approve it: the client runs what it sees"
    schema: Json = spec.parameters
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"its parameters are not a JSON Schema: {error.message}"
    if not isinstance(schema, dict) or cast("dict[str, Json]", schema).get("type") != "object":
        return "its parameters need the type 'object'"
    return None
