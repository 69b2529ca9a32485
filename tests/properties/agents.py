"""The agents that the machine lives through: their tools, and what their worker decides."""

from datetime import timedelta

from engine.core.env import AgentSpec, RetryPolicy, ToolSpec
from engine.core.events import ToolHandler
from engine.core.messages import Json

ONCE = RetryPolicy(run=timedelta(seconds=60), total=timedelta(seconds=300), attempts=1)
THRICE = RetryPolicy(run=timedelta(seconds=60), total=timedelta(seconds=300), attempts=3)
SOON = RetryPolicy(run=timedelta(seconds=20), total=timedelta(seconds=90), attempts=3)
"""How long a call may stay open that its worker has left open."""

NUMBER: Json = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}


def _tool(
    name: str,
    handler: ToolHandler,
    retry: RetryPolicy,
    *,
    approve: bool = False,
    left_open: RetryPolicy | None = None,
) -> ToolSpec:
    assert handler != "unknown"
    return ToolSpec(
        name=name,
        description="",
        parameters=NUMBER,
        handler=handler,
        retry=retry,
        approve=approve,
        left_open=left_open,
    )


TOOLS = {
    spec.name: spec
    for spec in (
        _tool("once", "function", ONCE),
        _tool("again", "function", THRICE),
        _tool("approved", "function", ONCE, approve=True),
        _tool("owned", "worker", ONCE),
        _tool("tried", "worker", THRICE, left_open=SOON),
        _tool("approved_owned", "worker", ONCE, approve=True, left_open=SOON),
        _tool("shown", "client", ONCE),
    )
}
"""What each agent declares: tools of the engine, of the worker and of the client."""

CLIENT_TOOL: Json = {"name": "page", "description": "", "parameters": {"type": "object"}}
"""What a frontend brings."""

WANTS: tuple[frozenset[str] | None, ...] = (
    frozenset(),
    frozenset({"tool.execute"}),
    frozenset({"tool.execute", "interrupt.resumed"}),
    frozenset({"interrupt.resumed", "client.action"}),
    frozenset({"session.start", "client.messages", "client.action"}),
    frozenset({"llm.finished", "tool.finished"}),
    frozenset({"tool.execute", "tool.finished", "client.action"}),
    None,
    None,
)
"""Agents: without a worker, with one that takes some triggers, with one that takes all."""


def agent(wants: frozenset[str] | None, *, send_tree: bool = False) -> AgentSpec:
    """Return an agent whose worker wants these triggers."""
    return AgentSpec(
        id="agent",
        model="model",
        system="be kind",
        tools=TOOLS,
        wants=wants,
        model_retry=THRICE,
        decision_retry=THRICE,
        send_tree=send_tree,
    )
