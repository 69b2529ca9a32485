"""What a rule may know about the world: data, and functions without surprises."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from engine.core.messages import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long a call may run, and how often.

    `run` bounds one attempt, `total` all of them. Backoff before attempt n is
    `min(base**(n-1), max_backoff_s)` seconds with full jitter.
    """

    run: timedelta
    total: timedelta
    attempts: int
    base: float = 2.0
    max_backoff_s: float = 60.0


MODEL_CALL = RetryPolicy(run=timedelta(seconds=180), total=timedelta(seconds=1800), attempts=5)
FUNCTION_TOOL = RetryPolicy(run=timedelta(seconds=120), total=timedelta(seconds=600), attempts=1)
WORKER_TOOL = RetryPolicy(run=timedelta(seconds=120), total=timedelta(seconds=600), attempts=1)
DECISION = RetryPolicy(run=timedelta(seconds=20), total=timedelta(seconds=300), attempts=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool an agent declares. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: Json
    handler: Literal["function", "worker"]
    retry: RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """An agent as configured.

    `wants` are the trigger types its worker is asked about: `None` is all of them,
    an empty set means that the agent has no worker.
    """

    id: str
    model: str
    system: str | None = None
    tools: dict[str, ToolSpec] = field(default_factory=dict[str, ToolSpec])
    wants: frozenset[str] | None = frozenset()
    model_retry: RetryPolicy = MODEL_CALL
    decision_retry: RetryPolicy = DECISION

    def wants_trigger(self, trigger_type: str) -> bool:
        """Whether the worker decides on such triggers."""
        return self.wants is None or trigger_type in self.wants


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """The world of one command.

    `now` is UTC. `new_id(prefix)` returns a fresh id. `conforms(schema, value)`
    returns what is wrong, or `None`. `jitter()` is uniform in [0, 1).
    `was_used(id)` says whether an interrupt or call of this session ever had this id;
    it needs to be right for the ids the command names only.
    """

    now: datetime
    agent: AgentSpec
    new_id: Callable[[str], str]
    conforms: Callable[[Json, Json], str | None]
    jitter: Callable[[], float]
    was_used: Callable[[str], bool]
