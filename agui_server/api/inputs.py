"""A `ClientInput` on its way into the engine: which session, which command, what to reply.

Source: `protocol.md` sections 3, 4, 6, 8 and 13.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agui_server.api import shapes
from agui_server.api.callers import Caller
from agui_server.api.refusals import invalid
from agui_server.api.sent import checked, checked_message
from engine.core import commands as cmd
from engine.core.handle import Receipt
from engine.core.messages import ClientContext, Json

CREATING = (shapes.SendMessage, shapes.AppendMessages, shapes.ShowView, shapes.CallAction)
"""Inputs that may be the first of a session. The others are about something that is open."""

AT_THE_HEAD = (shapes.SendMessage, shapes.AppendMessages)
"""Inputs that may wait for a running turn."""

WITH_MESSAGES = (*AT_THE_HEAD, shapes.ShowView)
"""Inputs that may name the turn they start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What stands beside an input in its body. `path` is where the input stands."""

    path: str
    turn_id: str | None
    queue: bool


def command_of(sent: shapes.ClientInput, options: Options, caller: Caller) -> cmd.Command:
    """Return the command an input asks for.

    Raises:
        Refusal: 422 `invalid_input`: a field that this input cannot have, or a message of it.
    """
    if options.queue and not isinstance(sent, AT_THE_HEAD):
        raise invalid("queue", "goes with `client.message` and `client.append` only")
    if options.turn_id is not None and not isinstance(sent, WITH_MESSAGES):
        raise invalid("turn_id", f"{sent.type!r} starts no turn of its own")
    match sent:
        case shapes.SendMessage():
            message = checked_message(sent.message, f"{options.path}.message")
            return _append([message], sent.client, options)
        case shapes.AppendMessages():
            messages = checked(sent.messages, f"{options.path}.messages")
            return _append(messages, sent.client, options)
        case shapes.ShowView():
            return cmd.ClientView(
                messages=checked(sent.messages, f"{options.path}.messages"),
                answers=_answers(sent, options.path, caller.responder()),
                client=_context(sent.client),
                caller=caller.kind,
                turn_id=options.turn_id,
            )
        case shapes.CallAction():
            return cmd.TakeAction(name=sent.name, args=sent.args)
        case shapes.Resume():
            answer = cmd.Answer(
                interrupt_id=sent.interrupt_id,
                payload=sent.payload,
                responder=caller.responder(),
            )
            return cmd.ResumeInterrupt(answer=answer, caller=caller.kind)
        case shapes.GiveResult():
            return cmd.SettleCall(call_id=sent.id, result=sent.result, caller=caller.kind)
        case shapes.GiveError():
            return cmd.SettleCall(call_id=sent.id, error=sent.error, caller=caller.kind)


def _append(
    messages: Sequence[cmd.Message], client: shapes.SentContext, options: Options
) -> cmd.AppendMessages:
    return cmd.AppendMessages(
        messages=tuple(messages),
        client=_context(client),
        queue=options.queue,
        turn_id=options.turn_id,
    )


def _answers(sent: shapes.ShowView, path: str, responder: Json) -> tuple[cmd.Answer, ...]:
    seen: set[str] = set()
    for index, given in enumerate(sent.answers):
        if given.interrupt_id in seen:
            raise invalid(f"{path}.answers[{index}].interrupt_id", "is answered twice")
        seen.add(given.interrupt_id)
    return tuple(
        cmd.Answer(
            interrupt_id=given.interrupt_id,
            payload=given.payload,
            cancelled=given.status == "cancelled",
            responder=responder,
        )
        for given in sent.answers
    )


def _context(client: shapes.SentContext) -> ClientContext:
    return ClientContext(
        tools=tuple(tool.model_dump(exclude_unset=True) for tool in client.tools),
        context=tuple(entry.model_dump() for entry in client.context),
        state=client.state,
        forwarded_props=client.forwarded_props,
    )


def reply(sent: shapes.ClientInput, receipt: Receipt, thread_id: str) -> dict[str, Json]:
    """Return what a body's input led to: `{session_id, thread_id, turn_id, queued, …}`.

    An input of which nothing came creates no session: `session_id` is `null` then. `resumed`
    stands beside an `interrupt.resume`; `warnings` is `[{code, detail}]`, when there are any.
    """
    after = receipt.after
    exists = after.seq > 0
    said: dict[str, Json] = {
        "session_id": after.session_id if exists else None,
        "thread_id": after.thread_id if exists else thread_id,
        "turn_id": receipt.turn_id,
        "queued": receipt.queued,
    }
    if isinstance(sent, shapes.Resume):
        said["resumed"] = sent.interrupt_id in receipt.cleared
    if receipt.notices:
        said["warnings"] = [{"code": n.code, "detail": n.detail} for n in receipt.notices]
    return said
