"""The client API: what a person's own frontend may do beside running the agent.

Source: `protocol.md` section 13.
"""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agui_server.api import callers, control
from agui_server.api.addresses import Names, find, place_of
from agui_server.api.bodies import read, read_query
from agui_server.api.inputs import CREATING, Options, command_of, reply
from agui_server.api.pages import page
from agui_server.api.runs import runs_of
from agui_server.api.shapes import InputBody, ListQuery
from agui_server.api.views import client_view, listed
from engine import Engine
from engine.core.errors import UnknownSession


async def list_sessions(request: Request) -> Response:
    """List the caller's sessions → `{sessions, cursor?}`."""
    engine: Engine = request.app.state.engine
    query = read_query(request, ListQuery)
    return JSONResponse(await page(engine.store, callers.client(request), query, listed))


async def send_input(request: Request) -> Response:
    """Take an input → 202 `{session_id, thread_id, turn_id, queued}`; see `inputs.reply`."""
    engine: Engine = request.app.state.engine
    caller = callers.client(request)
    body = await read(request, InputBody)
    options = Options(path="input", turn_id=body.turn_id, queue=body.queue)
    command = command_of(body.input, options, caller)
    names = Names(
        owner=caller.owner,
        agent_id=body.agent_id,
        thread_id=body.thread_id,
        session_id=body.session_id,
        creates=isinstance(body.input, CREATING),
    )
    place = await place_of(engine, caller, names)
    receipt = await engine.submit(place.session_id, command, birth=place.birth)
    return JSONResponse(reply(body.input, receipt, place.thread_id), status_code=202)


async def show(request: Request) -> Response:
    """Show a session: what is open in it, the conversation, and every branch."""
    engine: Engine = request.app.state.engine
    state = await find(engine, callers.client(request), request.path_params["address"])
    conversation = await engine.conversation(state.control.session_id)
    if conversation is None:
        raise UnknownSession(state.control.session_id)
    return JSONResponse(client_view(conversation))


async def list_runs(request: Request) -> Response:
    """List the AG-UI runs of a session, oldest first → `{runs}`."""
    engine: Engine = request.app.state.engine
    state = await find(engine, callers.client(request), request.path_params["address"])
    runs = await runs_of(engine.store, state.control.session_id)
    return JSONResponse({"runs": [run.to_json() for run in runs]})


async def raise_interrupt(request: Request) -> Response:
    """Pause a session at its head."""
    return await control.raise_interrupt(request, callers.client(request))


async def answer(request: Request) -> Response:
    """Answer an interrupt."""
    return await control.answer(request, callers.client(request))


async def cancel(request: Request) -> Response:
    """Stop everything that is open in a session."""
    return await control.cancel(request, callers.client(request))


_ONE = "/api/client/sessions/{address}"

ROUTES = [
    Route("/api/client/sessions", list_sessions, methods=["GET"]),
    Route("/api/client/sessions/input", send_input, methods=["POST"]),
    Route(_ONE, show, methods=["GET"]),
    Route(f"{_ONE}/runs", list_runs, methods=["GET"]),
    Route(f"{_ONE}/interrupt", raise_interrupt, methods=["POST"]),
    Route(f"{_ONE}/interrupts/{{interrupt_id}}/answer", answer, methods=["POST"]),
    Route(f"{_ONE}/cancel", cancel, methods=["POST"]),
]
