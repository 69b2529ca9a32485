"""Agents as the runtime sees them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.core.env import AgentSpec
from engine.core.ports import Model
from engine.core.worker import DecisionRequest
from engine.runtime.functions import FunctionTool


@dataclass(frozen=True, slots=True)
class RunnableAgent:
    """What an agent is made of: its rules, its model, its worker, its functions."""

    spec: AgentSpec
    model: Model
    worker: Callable[[DecisionRequest], Any] | None
    functions: Mapping[str, FunctionTool]
