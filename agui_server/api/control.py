"""What clients and machines may do to a session alike: pause it, answer it, cancel it.

Source: `protocol.md` sections 6 and 7.
"""

from collections.abc import Sequence
from typing import cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agui_server.api.addresses import find
from agui_server.api.bodies import read
from agui_server.api.callers import Caller
from agui_server.api.refusals import invalid
from agui_server.api.shapes import AnswerBody, InterruptBody
from agui_server.channels.prompts import choices
from engine import Engine
from engine.core import commands as cmd
from engine.core.errors import Forbidden
from engine.core.handle import Receipt
from engine.core.messages import Json, members
from engine.core.state import OpenInterrupt
from engine.store.protocol import Companion


async def raise_interrupt(request: Request, caller: Caller) -> Response:
    """Pause a session at its head → 201 `{interrupt_id}`: the given id, or a fresh one.

    A client's interrupt holds a client's call, or none.
    """
    engine: Engine = request.app.state.engine
    body = await read(request, InterruptBody)
    if caller.kind == "client":
        _check_schema(members(body.payload).get("responseSchema"))
    state = await find(engine, caller, request.path_params["address"])
    command = cmd.RaiseInterrupt(
        reason=body.reason,
        interrupt_id=body.interrupt_id,
        payload=body.payload,
        answer_by=body.answer_by,
        caller=caller.kind,
    )

    def guard(receipt: Receipt) -> Sequence[Companion]:
        held = _raised(receipt).tool_call_id
        call = next((call for call in receipt.after.calls if call.id == held), None)
        if caller.kind == "client" and call is not None and call.kind != "client":
            raise Forbidden(f"Call {call.id} is not a client's to hold.")
        return ()

    receipt = await engine.submit(state.control.session_id, command, companions=guard)
    return JSONResponse({"interrupt_id": _raised(receipt).id}, status_code=201)


def _check_schema(schema: Json) -> None:
    """Refuse patterns in a client's schema: one can keep the whole server busy."""
    match schema:
        case dict():
            for name, part in members(schema).items():
                if name in {"pattern", "patternProperties"}:
                    raise invalid("payload.responseSchema", "a client's schema has no patterns")
                _check_schema(part)
        case list():
            for part in cast("list[Json]", schema):
                _check_schema(part)
        case _:
            return


def _raised(receipt: Receipt) -> OpenInterrupt:
    """Return the interrupt that a command raised."""
    open_before = {interrupt.id for interrupt in receipt.before.interrupts}
    return next(i for i in receipt.after.interrupts if i.id not in open_before)


async def answer(request: Request, caller: Caller) -> Response:
    """Answer an interrupt as a button does → `{resumed, turn_id?}`.

    An old or unknown id is a success with `"resumed": false`. A machine may say who answered.
    """
    engine: Engine = request.app.state.engine
    body = await read(request, AnswerBody)
    state = await find(engine, caller, request.path_params["address"])
    interrupt_id: str = request.path_params["interrupt_id"]
    interrupt = state.interrupt(interrupt_id)
    if interrupt is None:
        return JSONResponse({"resumed": False})
    given = cmd.Answer(
        interrupt_id=interrupt_id,
        payload=body.payload if body.option is None else _chosen(interrupt, body.option),
        is_option=body.option is not None,
        responder=_responder(body, caller),
    )
    command = cmd.ResumeInterrupt(answer=given, caller=caller.kind)
    receipt = await engine.submit(state.control.session_id, command)
    said: dict[str, Json] = {"resumed": interrupt_id in receipt.cleared}
    if said["resumed"] and receipt.turn_id is not None:
        said["turn_id"] = receipt.turn_id
    return JSONResponse(said)


async def cancel(request: Request, caller: Caller) -> Response:
    """Stop everything that is open in a session → `{cancelled, turn_ids}`."""
    engine: Engine = request.app.state.engine
    state = await find(engine, caller, request.path_params["address"])
    receipt = await engine.submit(state.control.session_id, cmd.CancelSession())
    return JSONResponse({"cancelled": receipt.recorded, "turn_ids": list(receipt.ended)})


def _responder(body: AnswerBody, caller: Caller) -> Json:
    """Return who answered: a backend may know, a client is who it is."""
    if body.responder is None:
        return caller.responder()
    if caller.kind == "client":
        raise invalid("responder", "is stamped by the server, never sent by a client")
    return {"channel": caller.kind, **body.responder}


def _chosen(interrupt: OpenInterrupt, option: int) -> Json:
    """Return what the recorded prompt means by the index of an option."""
    offered = choices(interrupt.payload)
    if option >= len(offered):
        raise invalid("option", f"this prompt offers {len(offered) or 'no'} options")
    return offered[option].value
