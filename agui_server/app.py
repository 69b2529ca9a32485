"""The ASGI application: routes, and the engine's life inside the server's."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agui_server.agui.runs import run
from agui_server.api import client, machine
from agui_server.api.health import live
from agui_server.page import page
from agui_server.problems import HANDLERS
from agui_server.settings import Settings
from engine import Engine


class BrowserRoutes(CORSMiddleware):
    """Tell browsers which pages may call; the machine API is never a browser's."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass machine routes on as they are."""
        if scope["type"] == "http" and scope["path"].startswith("/api/machine/"):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(engine: Engine, settings: Settings | None = None) -> Starlette:
    """Return an application that serves an engine's agents.

    The engine starts and stops with the application, unless it runs already. Serve it on
    a loopback address: it has no callers of its own yet.
    """
    chosen = settings or Settings()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with nullcontext() if engine.is_running else engine:
            yield

    app = Starlette(
        routes=[
            Route("/", _page, methods=["GET"]),
            Route("/api/channels/ag-ui/agents/{agent_id}/run", run, methods=["POST"]),
            *client.ROUTES,
            *machine.ROUTES,
            Route("/health/live", live, methods=["GET"]),
        ],
        middleware=[
            Middleware(
                BrowserRoutes,
                allow_origins=list(chosen.allow_origins),
                allow_methods=["GET", "POST"],
                allow_headers=["Content-Type", "Last-Event-ID"],
            )
        ]
        if chosen.allow_origins
        else [],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )
    app.state.engine = engine
    app.state.settings = chosen
    return app


async def _page(request: Request) -> Response:
    return HTMLResponse(page(str(request.base_url).rstrip("/")))
