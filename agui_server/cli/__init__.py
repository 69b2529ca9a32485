"""The command line: `agui demo`, `agui sessions …`, `agui migrate`."""

import asyncio
import gc
import socket
from pathlib import Path
from typing import Annotated

import typer
import uvicorn

from agui_server.app import create_app
from agui_server.cli import sessions
from agui_server.cli.terminal import DEMO_DB, Database, errors, fail
from agui_server.demo import agents
from agui_server.settings import Settings
from engine import Engine
from engine.core.errors import EngineError
from engine.store import migrations

app = typer.Typer(no_args_is_help=True, add_completion=False, help="An AG-UI streaming server.")
app.add_typer(sessions.app, name="sessions")


@app.command()
def demo(
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    db: Database = DEMO_DB,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="A page that may call from a browser; repeatable.")
    ] = None,
    outbox: Annotated[
        Path | None, typer.Option(help="A file that gets a line for each email sent.")
    ] = None,
) -> None:
    """Serve the demo agents on 127.0.0.1, offline, with a scripted model."""
    url = f"http://127.0.0.1:{port}"
    engine = Engine(db=db, agents=agents(outbox), url=url)
    application = create_app(engine, Settings(allow_origins=tuple(allow_origin or ())))
    config = uvicorn.Config(
        application,
        host="127.0.0.1",
        port=port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    banner = f"agui demo on {url} · database {db} · agents {', '.join(engine.agents)}"
    serve(engine, Server(config, banner))


class Server(uvicorn.Server):
    """A server that says so once it answers."""

    def __init__(self, config: uvicorn.Config, banner: str) -> None:
        super().__init__(config)
        self._banner = banner

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say it."""
        await super().startup(sockets)
        if self.started:
            _collect_rarely()
            errors.print(self._banner)


def _collect_rarely() -> None:
    """Look for garbage less often, and never among what was there at the start.

    A stream makes many small objects and next to no cycles. This is the process's own
    matter, so the command does it and not `create_app`.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def serve(engine: Engine, server: uvicorn.Server) -> None:
    """Run a server until it is told to stop. A start that fails says why, in one sentence.

    The engine is opened before the server, not by it: a database that cannot be used is
    then an error of this command's own.
    """

    async def run() -> None:
        async with engine:
            await server.serve()

    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(run())
    except EngineError as error:
        fail(str(error))
    if not server.started:
        raise typer.Exit(1)


@app.command()
def migrate(db: Database = DEMO_DB) -> None:
    """Bring a database to the schema of this version. No engine may run on it."""
    try:
        migrations.migrate(db)
    except EngineError as error:
        fail(str(error))
    errors.print(f"{db} has schema {migrations.HEAD}")
