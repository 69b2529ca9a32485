"""Constructors of the actions a worker answers with.

    @agent.decide
    def decide(request):
        if request.trigger.type == "tool.execute":
            return interrupt("confirm", payload={"message": "Send the email?"})
        return request.proposed

Each returns a frozen value of :mod:`engine.core.worker`. `id` is a call's id; left
out, it is the call of the trigger being answered.

Source: `protocol.md` section 5, the table of actions.
"""

import json
from collections.abc import Mapping
from typing import Literal

from engine.core.messages import ClientContext, Json
from engine.core.text import repair_json
from engine.core.worker import (
    CallModel,
    CallTool,
    Done,
    GiveError,
    GiveResult,
    Interrupt,
    ResolveInterrupt,
    RunTool,
)


def interrupt(
    reason: str,
    *,
    payload: Json = None,
    interrupt_id: str | None = None,
    answer_by: Literal["client", "machine"] = "client",
) -> Interrupt:
    """Pause the active branch until a person answers (`interrupt`).

    `payload` is what the person needs to see; it may follow the AG-UI Interrupt
    (`message`, `toolCallId`, `responseSchema`, `expiresAt`, `metadata`).
    """
    return Interrupt(reason=reason, payload=payload, interrupt_id=interrupt_id, answer_by=answer_by)


def resolve(interrupt_id: str, payload: Json = None) -> ResolveInterrupt:
    """Clear an interrupt, as a resume with this payload would (`interrupt.resolve`)."""
    return ResolveInterrupt(interrupt_id=interrupt_id, payload=payload)


def tool_run(*, id: str | None = None) -> RunTool:
    """Run the function tool now, in the engine (`tool.run`)."""
    return RunTool(id=id)


def tool_result(result: Json, *, id: str | None = None) -> GiveResult:
    """End a tool call well (`tool.result`).

    `result` is the MCP shape, `{content: [{type: "text", text}], …}`, or a string.
    """
    return GiveResult(result=result, id=id)


def tool_error(error: str, *, id: str | None = None) -> GiveError:
    """End a tool call with an error the model reads (`tool.error`)."""
    return GiveError(error=error, id=id)


def tool_call(
    name: str, arguments: Mapping[str, Json] | str | None = None, *, id: str | None = None
) -> CallTool:
    """Start a tool call; the name decides where it runs (`tool.call`).

    `arguments` is an object, or its JSON text. Here `id` names the new call; left
    out, the engine mints one.

    Raises:
        TypeError, ValueError: the arguments are not JSON.
    """
    if isinstance(arguments, str):
        return CallTool(name=name, id=id, arguments=arguments)
    members = repair_json(dict(arguments or {}))
    text = json.dumps(members, ensure_ascii=False, allow_nan=False)
    return CallTool(name=name, id=id, arguments=text)


def llm_call(
    *,
    model: str | None = None,
    system: str | None = None,
    client: ClientContext | None = None,
) -> CallModel:
    """Call a model (`llm.call`). What is left out comes from the agent's config.

    `client` replaces the tools and the context that the frontend sent.
    """
    return CallModel(model=model, system=system, client=client)


def done(data: Json = None) -> Done:
    """End the turn; `data` becomes its result (`done`)."""
    return Done(data=data)
