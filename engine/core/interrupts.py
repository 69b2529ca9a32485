"""Interrupts: raising one, what it pauses, and clearing it.

Source: `protocol.md` section 6.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

from engine.core import events as ev
from engine.core.approvals import approves, is_approval, refusal
from engine.core.commands import Answer, Caller
from engine.core.draft import Draft
from engine.core.errors import Forbidden, InvalidAnswer, InvalidInput
from engine.core.messages import Json, SystemMessage, members
from engine.core.state import OpenInterrupt, State
from engine.core.worker import InterruptResumed, InterruptStatus, ToolExecute

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

CANCELLED: Json = {"status": "cancelled"}
"""The payload of an interrupt that was given up."""

EXPIRED: Json = {"status": "expired"}
"""The payload of an interrupt that nobody answered in its time."""


def pauses(state: State, interrupt: OpenInterrupt, head: str | None) -> bool:
    """Whether an open interrupt pauses the path that ends at `head`.

    1. No anchor: every path.
    2. The anchor is the end of the path: yes.
    3. The anchor stands above: only when the message right below it is not older
       than the interrupt, so a reply that was already there stays live.
    """
    if interrupt.anchor is None or interrupt.anchor == head:
        return True
    below = state.tree.child_towards(interrupt.anchor, head)
    return below is not None and below.seq > interrupt.seq


def pausing(state: State) -> list[OpenInterrupt]:
    """Return what pauses the active path, oldest first."""
    return pausing_at(state, state.control.head)


def pausing_at(state: State, end: str | None) -> list[OpenInterrupt]:
    """Return what pauses the path that ends at a message (`None`: the empty one)."""
    return [i for i in state.control.interrupts if pauses(state, i, end)]


def is_paused(state: State) -> bool:
    """Whether the active path waits for a person."""
    return bool(state.control.interrupts) and bool(pausing(state))


def raise_interrupt(
    draft: Draft,
    turn_id: str | None,
    *,
    origin: ev.Origin,
    reason: str,
    interrupt_id: str | None,
    payload: Json,
    answer_by: str,
    held_call: str | None,
) -> str:
    """Pause a turn's branch at its end, and void the model calls in flight on it.

    Returns the interrupt's id: the one asked for, or a fresh one when that was used before.

    Raises:
        InvalidInput: its `expiresAt` is no moment.
    """
    control = draft.state.control
    end = draft.state.end_of(turn_id)
    anchor = None if origin == "system" else end
    raised_id = interrupt_id
    if raised_id is None or draft.env.was_used(raised_id) or draft.state.interrupt(raised_id):
        raised_id = draft.env.new_id("int")
    draft.emit(
        ev.SessionInterrupted(
            interrupt_id=raised_id,
            origin=origin,
            reason=reason,
            payload=payload,
            anchor=anchor,
            tool_call_id=held_call,
            answer_by=cast("Any", answer_by),
            expires=_expiry(payload),
        ),
        turn_id,
    )
    for call in control.calls:
        if call.kind == "llm" and (
            anchor is None or draft.state.tree.is_on_path(call.anchor or anchor, end)
        ):
            draft.emit(ev.CallVoided(call_id=call.id, reason="interrupted"), call.turn_id)
    return raised_id


def _expiry(payload: Json) -> datetime | None:
    """Read a payload's `expiresAt`: RFC 3339, with an offset.

    Raises:
        InvalidInput: it is something else.
    """
    said = members(payload).get("expiresAt")
    if said is None:
        return None
    if isinstance(said, str) and _RFC_3339.fullmatch(said):
        # There may be no such day, or none in UTC.
        with suppress(ValueError, OverflowError):
            return datetime.fromisoformat(said.upper()).astimezone(UTC)
    raise InvalidInput("payload.expiresAt", "a moment with an offset, as RFC 3339 writes it")


def expire(draft: Draft) -> None:
    """Take back every question whose time is over; an answer then meets an old id."""
    for interrupt in draft.state.control.interrupts:
        if interrupt.expires is not None and interrupt.expires <= draft.env.now:
            close(draft, interrupt, "expired", payload=EXPIRED)


def held_call(state: State, payload: Json, default: str | None) -> str | None:
    """Return the call an interrupt holds: the open one its payload names, else `default`.

    One that is open on the branch of a turn that was left is not there to be held.
    """
    named = members(payload).get("toolCallId")
    call = state.call(named) if isinstance(named, str) else None
    if call is not None and not state.is_parked(call.turn_id):
        return call.id
    return default if default is not None and state.call(default) is not None else None


def clear(
    draft: Draft,
    answer: Answer,
    caller: Caller,
    *,
    instructions: tuple[SystemMessage, ...] | None = None,
) -> bool:
    """Clear one interrupt by id; an old or unknown id does nothing and returns false.

    Raises:
        InvalidAnswer, Forbidden: the answer cannot be taken; the interrupt stays open.
    """
    interrupt = draft.state.interrupt(answer.interrupt_id)
    if interrupt is None:
        return False
    if interrupt.answer_by == "machine" and caller == "client":
        raise Forbidden(f"Interrupt {interrupt.id} is not a client's to answer.")
    if answer.cancelled:
        close(draft, interrupt, "cancelled", payload=CANCELLED, instructions=instructions)
    else:
        payload, chosen = judged(draft, interrupt, answer, caller)
        close(
            draft,
            interrupt,
            "resolved",
            payload=payload,
            responder=_of_record(answer.responder),
            chosen=chosen,
            instructions=instructions,
        )
    draft.taken.append(interrupt.id)
    return True


def judged(
    draft: Draft, interrupt: OpenInterrupt, answer: Answer, caller: Caller
) -> tuple[Json, Json]:
    """Return what is recorded for an answer, and what it means to the worker.

    Raises:
        InvalidAnswer: not offered, or against the schema.
    """
    payload = _without_responder(answer.payload)
    offered = options(interrupt.payload)
    if offered is not None and (caller == "client" or answer.is_option):
        value = next((o["value"] for o in offered if _same(o["value"], payload)), _NOTHING)
        if value is _NOTHING and is_approval(interrupt.payload) and "approved" in members(payload):
            value = payload
        if value is _NOTHING:
            raise InvalidAnswer(interrupt.id, "the answer is not one of the options offered")
        resolved = {"status": "resolved", "payload": value}
        if answer.responder is not None:
            resolved["responder"] = _of_record(answer.responder)
        return resolved, value
    if is_approval(interrupt.payload) and "approved" in members(payload):
        return payload, payload
    schema = members(members(interrupt.payload).get("responseSchema"))
    if schema and offered is None and (problem := draft.env.conforms(schema, payload)):
        raise InvalidAnswer(interrupt.id, problem)
    return payload, payload


def close(
    draft: Draft,
    interrupt: OpenInterrupt,
    status: InterruptStatus,
    *,
    payload: Json,
    responder: Json = None,
    chosen: Json = None,
    instructions: tuple[SystemMessage, ...] | None = None,
) -> None:
    """Record that an interrupt ended, and tell the worker if it paused the active path."""
    paused_active = pauses(draft.state, interrupt, draft.state.control.head)
    approved = approves(chosen) if _lets_run(draft.state, interrupt, told=paused_active) else None
    draft.emit(
        ev.SessionInterruptResumed(
            interrupt_id=interrupt.id,
            status=status,
            payload=payload,
            responder=responder,
            approved=approved,
            refusal=refusal(chosen) if approved is False else None,
            instructions=instructions,
        ),
        interrupt.turn_id,
    )
    if interrupt.tool_call_id is not None and _is_timed(draft.state, interrupt.tool_call_id):
        draft.released.append(interrupt.tool_call_id)
    if paused_active:
        draft.trigger(
            interrupt.turn_id,
            InterruptResumed(
                interrupt_id=interrupt.id,
                reason=interrupt.reason,
                status=status,
                answer=chosen if status == "resolved" else None,
                payload=payload,
                responder=responder,
                tool_call_id=interrupt.tool_call_id,
                prompt_type=_prompt_type(interrupt.payload),
            ),
        )


def _lets_run(state: State, interrupt: OpenInterrupt, *, told: bool) -> bool:
    """Whether an answer says if a call may run: what does not approve it declines it.

    1. It asked for just that.
    2. It holds a function tool's call: of several questions about one call each must approve.
    3. Its branch was left, so nobody is told: the call must not run when that is back.
    """
    call = state.call(interrupt.tool_call_id) if interrupt.tool_call_id is not None else None
    is_function = call is not None and call.kind == "function"
    return is_approval(interrupt.payload) or is_function or (call is not None and not told)


def _is_timed(state: State, call_id: str) -> bool:
    """Whether a call, or the question about it, had a clock that the interrupt stopped."""
    call = state.call(call_id)
    asked = any(
        d.is_out and isinstance(d.trigger, ToolExecute) and d.trigger.id == call_id
        for d in state.control.decisions
    )
    return asked or (call is not None and call.deadline is not None)


def _of_record(responder: Json) -> Json:
    """Drop what is for the channel's own display: the chosen option's label and style."""
    if not isinstance(responder, dict):
        return responder
    return {key: said for key, said in members(responder).items() if key not in _DISPLAYED}


_DISPLAYED = {"label", "style"}


def _prompt_type(payload: Json) -> str | None:
    said = members(members(payload).get("metadata")).get("type")
    return said if isinstance(said, str) else None


def options(payload: Json) -> list[dict[str, Json]] | None:
    """Return the choice a prompt offers: `[{label, value, style?}]`, or `None`."""
    offered: Any = members(members(payload).get("metadata")).get("options")
    if not isinstance(offered, list):
        return None
    return [members(o) for o in cast("list[Any]", offered) if "value" in members(o)] or None


_NOTHING = object()


def _same(left: Json, right: Json) -> bool:
    """JSON equality: `1` is not `true`, although Python says so."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        ours, theirs = cast("list[Any]", left), cast("list[Any]", right)
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(left, dict) and isinstance(right, dict):
        mine, other = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
        return mine.keys() == other.keys() and all(_same(mine[k], other[k]) for k in mine)
    return bool(left == right)


def _without_responder(payload: Json) -> Json:
    """Drop what a requester may not say about who answered."""
    if "responder" not in members(payload):
        return payload
    return {key: value for key, value in members(payload).items() if key != "responder"}
