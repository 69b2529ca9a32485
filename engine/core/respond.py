"""Apply a response to a trigger: whole, or not at all.

Source: `protocol.md` section 5, the tables of the response and of the actions.
"""

from typing import Literal

from engine.core import events as ev
from engine.core import values
from engine.core.calls import (
    attempt_of,
    end_tool_call,
    request_model_call,
    request_tool_call,
    start_tool,
)
from engine.core.commands import Answer
from engine.core.draft import Draft
from engine.core.errors import Forbidden, InvalidAnswer, InvalidInput, InvalidResponse
from engine.core.interrupts import clear, held_call, raise_interrupt
from engine.core.messages import ClientContext, Message
from engine.core.retries import problem_of
from engine.core.state import Call, Turn
from engine.core.status import active_turn
from engine.core.turns import TURN_DONE, complete, start_turn
from engine.core.worker import (
    Action,
    CallModel,
    CallTool,
    ClientMessages,
    DecisionResponse,
    Done,
    GiveError,
    GiveResult,
    Interrupt,
    InterruptResumed,
    ResolveInterrupt,
    RunTool,
    ToolExecute,
    Trigger,
)


def respond(
    draft: Draft,
    turn_id: str | None,
    trigger: Trigger,
    response: DecisionResponse,
    *,
    by: Literal["worker", "engine"] = "worker",
    asks: bool = False,
) -> dict[str, str]:
    """Apply a response; return the interrupt ids that were replaced (asked for → given).

    `asks`: an interrupt stood beside these actions, whether it is among them or not.

    Raises:
        InvalidResponse: a rule is broken. The draft is then half changed: work on a fork.
    """
    _check(response)
    _record(draft, turn_id, _messages(draft, trigger, response))
    values.write(draft, turn_id, response)
    replaced: dict[str, str] = {}
    held: set[str] = set()
    asks = asks or any(isinstance(action, Interrupt) for action in response.actions)
    for index, action in enumerate(response.actions):
        where = f"actions[{index}]"
        match action:
            case Interrupt():
                call_id = held_call(draft.state, action.payload, _call_of(trigger))
                if call_id is not None and call_id in held:
                    raise InvalidResponse(where, f"call {call_id} is held by another interrupt")
                held |= {call_id} if call_id is not None else set()
                given = _interrupt(draft, turn_id, action, call_id, where, origin=by)
                if action.interrupt_id is not None and given != action.interrupt_id:
                    replaced[action.interrupt_id] = given
            case Done():
                _done(draft, turn_id, action)
            case CallTool():
                beside = asks and not action.waits
                _call_tool(draft, turn_id, action, where, beside=beside)
            case _:
                _act(draft, turn_id, trigger, action, where)
    return replaced


def _check(response: DecisionResponse) -> None:
    """Refuse what contradicts itself."""
    kinds = {action.type for action in response.actions}
    for index, action in enumerate(response.actions):
        where = f"actions[{index}]"
        if action.type in {"llm.call", "done"} and "interrupt" in kinds:
            raise InvalidResponse(where, f"{action.type} cannot stand beside an interrupt")
        if isinstance(action, Interrupt) and not action.reason:
            raise InvalidResponse(f"{where}.reason", "an interrupt needs a reason")
        if isinstance(action, CallModel | CallTool) and (problem := problem_of(action.retry)):
            raise InvalidResponse(f"{where}.retry.{problem[0]}", problem[1])
        if isinstance(action, Done) and index != len(response.actions) - 1:
            raise InvalidResponse(where, "nothing can follow done")


def _messages(draft: Draft, trigger: Trigger, response: DecisionResponse) -> tuple[Message, ...]:
    """The input itself is recorded first when it is answered by an interrupt."""
    interrupts = any(isinstance(action, Interrupt) for action in response.actions)
    if isinstance(trigger, ClientMessages) and interrupts and not response.messages:
        return tuple(m for m in trigger.messages if m.id not in draft.state.tree)
    return response.messages


def _record(draft: Draft, turn_id: str | None, messages: tuple[Message, ...]) -> None:
    for index, message in enumerate(messages):
        if message.id in draft.state.tree:
            raise InvalidResponse(f"messages[{index}].id", f"{message.id} is already recorded")
        parent_id = draft.state.end_of(turn_id)
        draft.emit(ev.MessageNew(message=message, parent_id=parent_id), turn_id)


def _call_tool(
    draft: Draft, turn_id: str | None, action: CallTool, where: str, *, beside: bool
) -> None:
    call_id = action.id or draft.env.new_id("call")
    if draft.state.call(call_id) is not None or draft.env.was_used(call_id):
        raise InvalidResponse(f"{where}.id", f"call {call_id} exists; ids are used once")
    request_tool_call(draft, _turn(draft, turn_id), call_id, action, beside=beside)


def _act(draft: Draft, turn_id: str | None, trigger: Trigger, action: Action, where: str) -> None:
    match action:
        case CallModel():
            request_model_call(draft, _turn(draft, turn_id), action)
        case RunTool():
            call = _open_call(draft, trigger, action.id, None, where)
            is_here = not draft.state.is_parked(call.turn_id)
            if call.kind != "function" or call.attempt > 0 or not is_here:
                raise InvalidResponse(where, f"call {call.id} is not a function tool's that waits")
            start_tool(draft, call)
        case GiveResult():
            call = _open_call(draft, trigger, action.id, action.attempt, where)
            end_tool_call(draft, call, result=action.result)
        case GiveError():
            call = _open_call(draft, trigger, action.id, action.attempt, where)
            end_tool_call(draft, call, error=action.error)
        case ResolveInterrupt():
            answer = Answer(interrupt_id=action.interrupt_id, payload=action.payload)
            try:
                clear(draft, answer, "machine")
            except (InvalidAnswer, Forbidden) as error:
                raise InvalidResponse(where, str(error)) from error
        case Interrupt() | Done() | CallTool():  # pragma: no cover - the caller keeps these
            raise AssertionError(action)


def _interrupt(
    draft: Draft,
    turn_id: str | None,
    action: Interrupt,
    call_id: str | None,
    where: str,
    *,
    origin: Literal["worker", "engine"],
) -> str:
    try:
        return raise_interrupt(
            draft,
            turn_id,
            origin=origin,
            reason=action.reason,
            interrupt_id=action.interrupt_id,
            payload=action.payload,
            answer_by=action.answer_by,
            held_call=call_id,
        )
    except InvalidInput as error:
        raise InvalidResponse(f"{where}.{error.field}", error.reason) from error


def _done(draft: Draft, turn_id: str | None, action: Done) -> None:
    turn = draft.state.turn(turn_id)
    if turn is not None:
        complete(draft, turn, data=action.data, reason=TURN_DONE)


def _turn(draft: Draft, turn_id: str | None) -> Turn:
    """Return the decision's turn; work that starts outside one opens one."""
    turn = draft.state.turn(turn_id)
    if turn is not None:
        return turn
    return active_turn(draft.state) or start_turn(draft, ClientContext())


def _call_of(trigger: Trigger) -> str | None:
    """Return the call an answer is about when it names none."""
    match trigger:
        case ToolExecute():
            return trigger.id
        case InterruptResumed():
            return trigger.tool_call_id
        case _:
            return None


def _open_call(
    draft: Draft, trigger: Trigger, call_id: str | None, attempt: int | None, where: str
) -> Call:
    wanted = call_id or _call_of(trigger)
    if wanted is None:
        raise InvalidResponse(f"{where}.id", "which call? this trigger is not about one")
    call = draft.state.call(wanted)
    if call is None or call.kind == "llm":
        raise InvalidResponse(f"{where}.id", f"tool call {wanted} is not open")
    if attempt is not None and attempt != attempt_of(call):
        raise InvalidResponse(f"{where}.attempt", f"attempt {attempt_of(call)} is open")
    return call
