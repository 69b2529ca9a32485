"""A durable agent engine: sessions that pause for a person and survive a restart."""

from engine.actions import (
    done,
    interrupt,
    llm_call,
    resolve,
    tool_call,
    tool_error,
    tool_result,
    tool_run,
)
from engine.agent import Agent, Tool
from engine.core.errors import EngineError, ToolError
from engine.core.worker import DecisionRequest, DecisionResponse, RetryOverride
from engine.engine import Engine, Thread
from engine.runtime.functions import FunctionTool

__all__ = [
    "Agent",
    "DecisionRequest",
    "DecisionResponse",
    "Engine",
    "EngineError",
    "FunctionTool",
    "RetryOverride",
    "Thread",
    "Tool",
    "ToolError",
    "done",
    "interrupt",
    "llm_call",
    "resolve",
    "tool_call",
    "tool_error",
    "tool_result",
    "tool_run",
]
