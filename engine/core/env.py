"""What a rule may know about the world: data, and functions without surprises."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from engine.core.messages import Json
from engine.core.worker import RetryOverride


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long a call may run, and how often.

    `run` bounds one attempt, `total` all of them. Backoff before attempt n is
    `min(base**n, max_backoff_s)` seconds with full jitter.
    """

    run: timedelta
    total: timedelta
    attempts: int
    base: float = 2.0
    max_backoff_s: float = 60.0

    def but(self, override: RetryOverride | None) -> Self:
        """Return the policy with what `override` says in its place."""
        if override is None:
            return self
        said: dict[str, Any] = {
            "run": _seconds(override.run),
            "total": _seconds(override.total),
            "attempts": override.attempts,
            "base": override.base,
            "max_backoff_s": override.max,
        }
        return replace(self, **{name: value for name, value in said.items() if value is not None})


def _seconds(number: float | None) -> timedelta | None:
    return None if number is None else timedelta(seconds=number)


MODEL_CALL = RetryPolicy(run=timedelta(seconds=180), total=timedelta(seconds=1800), attempts=5)
FUNCTION_TOOL = RetryPolicy(run=timedelta(seconds=120), total=timedelta(seconds=600), attempts=1)
WORKER_TOOL = RetryPolicy(run=timedelta(seconds=120), total=timedelta(seconds=600), attempts=1)
DECISION = RetryPolicy(run=timedelta(seconds=20), total=timedelta(seconds=300), attempts=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool an agent declares. `parameters` is a JSON Schema object.

    `approve`: a person is asked before a call of it runs. `left_open` bounds a call that
    its worker leaves open (an async tool): `None` is no bound.
    """

    name: str
    description: str
    parameters: Json
    handler: Literal["function", "worker", "client"]
    retry: RetryPolicy
    approve: bool = False
    left_open: RetryPolicy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """An agent as configured.

    `wants` are the trigger types its worker is asked about: `None` is all of them,
    an empty set means that the agent has no worker. `send_tree`: the worker is shown every
    branch of the conversation.
    """

    id: str
    model: str
    system: str | None = None
    tools: dict[str, ToolSpec] = field(default_factory=dict[str, ToolSpec])
    wants: frozenset[str] | None = frozenset()
    model_retry: RetryPolicy = MODEL_CALL
    decision_retry: RetryPolicy = DECISION
    send_tree: bool = False

    def wants_trigger(self, trigger_type: str) -> bool:
        """Whether the worker decides on such triggers."""
        return self.wants is None or trigger_type in self.wants


@dataclass
class NotInMemory(Exception):
    """A rule needs the value that an event wrote. Bring it, and run the command again."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """The world of one command.

    `now` is UTC. `new_id(prefix)` returns a fresh id. `conforms(schema, value)`
    returns what is wrong, or `None`. `jitter()` is uniform in [0, 1).
    `was_used(id)` says whether an interrupt, a call or a turn of this session ever had this
    id; it needs to be right for the ids the command names only. `recorded(seq)` returns the
    value that an event wrote (see `values.py`), or raises :class:`NotInMemory`.
    """

    now: datetime
    agent: AgentSpec
    new_id: Callable[[str], str]
    conforms: Callable[[Json, Json], str | None]
    jitter: Callable[[], float]
    was_used: Callable[[str], bool]
    recorded: Callable[[int], Json]

    def knowing(self, seq: int, value: Json) -> Self:
        """Return a world that also knows the value an event wrote."""
        others = self.recorded

        def recorded(asked: int) -> Json:
            return value if asked == seq else others(asked)

        return replace(self, recorded=recorded)
