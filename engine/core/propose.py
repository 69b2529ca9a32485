"""What the engine itself would do about each trigger.

A worker sees this as `proposed`; an agent without a worker gets it applied.

Source: `protocol.md` sections 5 and 6.
"""

from dataclasses import replace

from engine.core import values
from engine.core.approvals import APPROVAL, approves, refusal, start_calls
from engine.core.calls import finished_message
from engine.core.draft import Draft, Raised
from engine.core.state import Decision
from engine.core.toolinput import input_of
from engine.core.worker import (
    CallModel,
    ClientAction,
    ClientMessages,
    DecisionResponse,
    Done,
    GiveError,
    InterruptResumed,
    LlmFinished,
    RunTool,
    SessionStart,
    ToolExecute,
    ToolFinished,
    ToolInput,
    Trigger,
)


def propose(
    draft: Draft, turn_id: str | None, trigger: Trigger, own: str | None
) -> DecisionResponse:
    """Return the engine's own response to a trigger.

    `own` is the id of the decision on this trigger, so that it does not wait for itself.
    """
    match trigger:
        case SessionStart():
            return DecisionResponse(agent=values.config(draft.env.agent, draft.state.control))
        case ClientAction():
            return DecisionResponse()
        case ClientMessages():
            return _record_input(draft, turn_id, trigger, own)
        case ToolExecute():
            actions = _start_or_refuse(draft, trigger.id, trigger.name, trigger.input)
            return DecisionResponse(actions=actions)
        case ToolFinished():
            return _record_result(draft, turn_id, trigger, own)
        case LlmFinished():
            return _record_reply(draft, turn_id, trigger, own)
        case InterruptResumed():
            return _after_answer(draft, turn_id, trigger, own)


def _record_input(
    draft: Draft, turn_id: str | None, trigger: ClientMessages, own: str | None
) -> DecisionResponse:
    """Record the input and call the model. Input that joined a turn brings its own tools."""
    new = tuple(message for message in trigger.messages if message.id not in draft.state.tree)
    if not _may_call_model(draft, turn_id, own):
        return DecisionResponse(messages=new)
    turn = draft.state.turn(turn_id)
    joined = turn is not None and turn.client != trigger.client
    action = CallModel(client=trigger.client if joined else None)
    return DecisionResponse(messages=new, actions=(action,))


def _start_or_refuse(
    draft: Draft, call_id: str, name: str, checked: ToolInput
) -> tuple[RunTool | GiveError, ...]:
    """Run a function tool, leave a worker's own to it, refuse what cannot run."""
    spec = draft.env.agent.tools.get(name)
    if spec is None:
        return (GiveError(id=call_id, error=f"there is no tool {name!r}"),)
    if checked.status != "valid":
        return (GiveError(id=call_id, error=checked.error or "invalid arguments"),)
    return (RunTool(id=call_id),) if spec.handler == "function" else ()


def _record_result(
    draft: Draft, turn_id: str | None, trigger: ToolFinished, own: str | None
) -> DecisionResponse:
    message = finished_message(draft, trigger)
    actions = (CallModel(),) if _may_call_model(draft, turn_id, own) else ()
    return DecisionResponse(messages=(message,), actions=actions)


def _record_reply(
    draft: Draft, turn_id: str | None, trigger: LlmFinished, own: str | None
) -> DecisionResponse:
    """Record the reply and start its tool calls; without any the agent is done.

    Not when something else of the turn is open or waits. What failed ends the turn by itself.
    """
    if trigger.message is None:
        return DecisionResponse()
    actions = start_calls(draft.env, trigger.message.tool_calls)
    if not actions and _is_last(draft, turn_id, own):
        actions = (Done(),)
    return DecisionResponse(messages=(*trigger.reasoning, trigger.message), actions=actions)


def _after_answer(
    draft: Draft, turn_id: str | None, trigger: InterruptResumed, own: str | None
) -> DecisionResponse:
    """Go on where the question stopped.

    1. It holds a function tool's call: run it, or say that a person declined. Arguments
       that cannot be used are refused, whoever approved them. After an approval a worker that
       gates the tool is asked, too; a question of its own was its word.
    2. It asked for leave to run a worker's tool: say that a person declined, or let the
       worker have it.
    3. Something of the turn is still open or waits: nothing.
    4. Else the model goes on.
    """
    call = draft.state.call(trigger.tool_call_id) if trigger.tool_call_id else None
    is_function = call is not None and call.kind == "function"
    if call is not None and call.attempt == 0 and (is_function or trigger.prompt_type == APPROVAL):
        if call.refused is not None or not approves(trigger.answer):
            said = call.refused or refusal(trigger.answer)
            return DecisionResponse(actions=(GiveError(id=call.id, error=said),))
        gated = trigger.prompt_type == APPROVAL and _is_to_be_gated(draft, call.id)
        if not is_function or gated or draft.state.is_held(call.id):
            return DecisionResponse()
        checked = input_of(draft.env, call.name, call.arguments)
        return DecisionResponse(actions=_start_or_refuse(draft, call.id, call.name, checked))
    if turn_id is None or not _may_call_model(draft, turn_id, own):
        return DecisionResponse()
    return DecisionResponse(actions=(CallModel(),))


def _is_to_be_gated(draft: Draft, call_id: str) -> bool:
    """Whether a worker that gates tools has still to be asked about a call."""
    if not draft.env.agent.wants_trigger("tool.execute"):
        return False
    return any(
        isinstance(each.trigger, ToolExecute) and each.trigger.id == call_id
        for each in draft.waiting
    )


def _may_call_model(draft: Draft, turn_id: str | None, own: str | None) -> bool:
    """Whether the model may be called: nothing else of the turn is open or waits in line.

    A client's action that waits is no reason to wait: it proposes no model call. Unless a
    worker has answered it, and what it starts is held.
    """
    if draft.state.calls_of(turn_id):
        return False
    return all(
        isinstance(each.trigger, ClientAction) and not (isinstance(each, Decision) and each.held)
        for each in _waiting(draft, turn_id, own)
    )


def _is_last(draft: Draft, turn_id: str | None, own: str | None) -> bool:
    """Whether nothing else of the turn is open or waits."""
    return not draft.state.calls_of(turn_id) and not _waiting(draft, turn_id, own)


def _waiting(draft: Draft, turn_id: str | None, own: str | None) -> list[Decision | Raised]:
    """Return what else of a turn waits to be decided."""
    return [
        each
        for each in draft.waiting
        if each.turn_id == turn_id and not (isinstance(each, Decision) and each.id == own)
    ]


def asked(decision: Decision) -> Trigger:
    """Return why the worker is asked: about a call, also how often and until when."""
    if not isinstance(decision.trigger, ToolExecute):
        return decision.trigger
    return replace(decision.trigger, attempt=decision.attempt, deadline=decision.deadline)
