"""Pydantic AI: its AG-UI adapter over an agent with a `FunctionModel`."""

from collections.abc import AsyncIterator
from typing import Any

from common import DELTAS, arguments, serve
from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def stream(_messages: Any, _info: Any) -> AsyncIterator[str]:
    """Be the model."""
    for delta in DELTAS:
        yield delta


agent = Agent(FunctionModel(stream_function=stream), instructions="You are a helpful assistant.")


async def run(request: Request) -> Response:
    """Hand the request to the adapter."""
    return await AGUIAdapter.dispatch_request(request, agent=agent)


serve(Starlette(routes=[Route("/", run, methods=["POST"])]), arguments().port)
