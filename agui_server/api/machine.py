"""The machine API: what a backend may do. Never a browser's.

Source: `protocol.md` section 13.
"""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agui_server.api import callers, control
from agui_server.api.addresses import Names, find, machine_place_of
from agui_server.api.bodies import read, read_query
from agui_server.api.inputs import CREATING, Options, command_of, reply
from agui_server.api.pages import page
from agui_server.api.shapes import EventsQuery, MachineListQuery, SettleBody, SubmitBody
from agui_server.api.views import machine_listed, machine_view
from engine import Engine
from engine.core import commands as cmd
from engine.core.errors import UnknownSession
from engine.core.messages import Json
from engine.store.codec import to_json


async def list_sessions(request: Request) -> Response:
    """List the sessions of the tenant, or of an owner → `{sessions, cursor?}`."""
    engine: Engine = request.app.state.engine
    query = read_query(request, MachineListQuery)
    caller = callers.machine(request)
    return JSONResponse(await page(engine.store, caller, query, machine_listed))


async def submit(request: Request) -> Response:
    """Take an input for a person → 202 `{session_id, thread_id, turn_id, queued}`."""
    engine: Engine = request.app.state.engine
    body = await read(request, SubmitBody)
    caller = replace(callers.machine(request), user=body.identity.id)
    options = Options(path="payload", turn_id=body.turn_id, queue=body.queue)
    command = command_of(body.payload, options, caller)
    names = Names(
        owner=body.identity.id,
        agent_id=body.agent_id,
        thread_id=body.thread_id,
        session_id=body.session_id,
        creates=isinstance(body.payload, CREATING),
    )
    place = await machine_place_of(engine, caller, names)
    receipt = await engine.submit(
        place.session_id, command, birth=place.birth, companions=place.guard
    )
    return JSONResponse(reply(body.payload, receipt, place.thread_id), status_code=202)


async def show(request: Request) -> Response:
    """Show a session: what its client sees, and its owner, memory, config, calls, decisions."""
    engine: Engine = request.app.state.engine
    state = await find(engine, callers.machine(request), request.path_params["address"])
    conversation = await engine.conversation(state.control.session_id)
    if conversation is None:
        raise UnknownSession(state.control.session_id)
    return JSONResponse(machine_view(conversation, engine.agents.get(state.control.agent_id)))


async def list_events(request: Request) -> Response:
    """List stored events in order → `{events, next_after_seq?}`; the latter when there are more."""
    engine: Engine = request.app.state.engine
    query = read_query(request, EventsQuery)
    state = await find(engine, callers.machine(request), request.path_params["address"])
    found = await engine.store.events(
        state.control.session_id,
        after_seq=query.after_seq,
        limit=query.limit + 1,
        turn_id=query.turn_id,
    )
    shown = found[: query.limit]
    answer: dict[str, Json] = {"events": [to_json(event) for event in shown]}
    if len(found) > query.limit:
        answer["next_after_seq"] = shown[-1].seq
    return JSONResponse(answer)


async def settle(request: Request) -> Response:
    """End a tool call that runs outside the engine → `{turn_id}`."""
    engine: Engine = request.app.state.engine
    caller = callers.machine(request)
    body = await read(request, SettleBody)
    state = await find(engine, caller, request.path_params["address"])
    command = cmd.SettleCall(
        call_id=body.call_id,
        result=body.result,
        error=body.error,
        attempt=body.attempt,
        caller=caller.kind,
    )
    receipt = await engine.submit(state.control.session_id, command)
    return JSONResponse({"turn_id": receipt.turn_id})


async def raise_interrupt(request: Request) -> Response:
    """Pause a session at its head."""
    return await control.raise_interrupt(request, callers.machine(request))


async def answer(request: Request) -> Response:
    """Answer an interrupt."""
    return await control.answer(request, callers.machine(request))


async def cancel(request: Request) -> Response:
    """Stop everything that is open in a session."""
    return await control.cancel(request, callers.machine(request))


_ONE = "/api/machine/sessions/{address}"

ROUTES = [
    Route("/api/machine/sessions", list_sessions, methods=["GET"]),
    Route("/api/machine/sessions/submit", submit, methods=["POST"]),
    Route(_ONE, show, methods=["GET"]),
    Route(f"{_ONE}/events", list_events, methods=["GET"]),
    Route(f"{_ONE}/calls/settle", settle, methods=["POST"]),
    Route(f"{_ONE}/interrupt", raise_interrupt, methods=["POST"]),
    Route(f"{_ONE}/interrupts/{{interrupt_id}}/answer", answer, methods=["POST"]),
    Route(f"{_ONE}/cancel", cancel, methods=["POST"]),
]
