"""The client API: what a person's own frontend may do beside running the agent.

Source: `protocol.md` section 13.
"""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agui_server.problems import problem
from agui_server.settings import Settings
from engine import Engine
from engine.core import commands as cmd
from engine.core.errors import UnknownSession


async def cancel(request: Request) -> Response:
    """Stop everything that is open in a session → `{cancelled, turn_ids}`.

    The address is a session id, or a thread's name when only one agent has it.
    """
    engine: Engine = request.app.state.engine
    settings: Settings = request.app.state.settings
    address = request.path_params["session_id"]
    threads = await engine.store.threads(
        tenant=settings.tenant, owner=settings.owner, thread_id=address
    )
    if len(threads) > 1:
        detail = f"Several agents have a thread {address!r}: use the session id."
        return problem(
            409, "ambiguous_thread", detail, session_ids=[row.session_id for row in threads]
        )
    session_id = threads[0].session_id if threads else address
    state = await engine.state(session_id)
    if state is None or state.control.owner != settings.owner:
        raise UnknownSession(address)
    receipt = await engine.submit(session_id, cmd.CancelSession())
    return JSONResponse({"cancelled": receipt.recorded, "turn_ids": list(receipt.ended)})
