"""`agui sessions …`: look at the sessions of a database, and stop one."""

import json
import sys
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from agui_server.api.shapes import MachineListQuery
from agui_server.cli import shown
from agui_server.cli.sources import StoredSessions, source_of
from agui_server.cli.terminal import DEMO_DB, Database, errors, fail, output
from engine.core.ids import is_id
from engine.store.codec import to_json

app = typer.Typer(no_args_is_help=True, help="Look at the sessions of a database, or stop one.")


def _checked(address: str) -> str:
    if not is_id(address):
        fail(f"There is no session or thread {address!r}.")
    return address


Address = Annotated[
    str, typer.Argument(help="A session id, or a thread's name.", callback=_checked)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as the machine API has it.")]


@app.command("list")
def list_sessions(
    db: Database = DEMO_DB,
    agent: Annotated[str | None, typer.Option(help="Only this agent's.")] = None,
    status: Annotated[
        str | None, typer.Option(help="Only idle, running, waiting or interrupted ones.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    cursor: Annotated[str | None, typer.Option(help="Where a longer list goes on.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List sessions, the latest updated first."""
    try:
        query = MachineListQuery.model_validate(
            {"agent_id": agent, "status": status, "limit": limit, "cursor": cursor}
        )
    except ValidationError:
        fail(f"{status!r} is no status: idle, running, waiting or interrupted.")
    found = source_of(db).listed(query)
    if as_json:
        _print_json(found)
        return
    output().print(shown.table(found["sessions"]))
    if "cursor" in found:
        errors.print(f"There are more: --cursor {found['cursor']}")


@app.command()
def show(address: Address, db: Database = DEMO_DB, *, as_json: AsJson = False) -> None:
    """Show a session: what is open in it, who is asked what, and the conversation."""
    found = source_of(db).show(address)
    if as_json:
        _print_json(found)
        return
    for line in shown.summary(found):
        output().print(line, soft_wrap=True)


@app.command()
def events(address: Address, db: Database = DEMO_DB) -> None:
    """Print a session's stored events, one JSON object a line. A server may be running."""
    for event in StoredSessions(db).events(address):
        sys.stdout.write(json.dumps(to_json(event), ensure_ascii=False) + "\n")


@app.command()
def cancel(address: Address, db: Database = DEMO_DB, *, as_json: AsJson = False) -> None:
    """Stop everything that is open in a session; a running server does it, if there is one."""
    found = source_of(db).cancel(address)
    if as_json:
        _print_json(found)
    elif found["cancelled"]:
        output().print("cancelled " + (", ".join(found["turn_ids"]) or "what was open"))
    else:
        output().print("nothing was open")


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
