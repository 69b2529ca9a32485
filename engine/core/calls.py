"""Calls: work outside the core. Recorded before it starts, ended exactly once.

Source: `protocol.md` sections 2 and 8.
"""

from dataclasses import replace
from typing import Any

from engine.core import events as ev
from engine.core.commands import FailCall, FinishModelCall, FinishToolCall, SettleCall
from engine.core.draft import Draft
from engine.core.env import FUNCTION_TOOL, RetryPolicy
from engine.core.errors import CallNotOpen, Forbidden
from engine.core.messages import Json, SystemMessage, ToolMessage, members
from engine.core.results import as_result, result_text
from engine.core.retries import retry_of
from engine.core.state import Call, Decision, Turn
from engine.core.toolinput import input_of
from engine.core.worker import (
    CallModel,
    CallTool,
    Error,
    InterruptResumed,
    LlmFinished,
    ToolExecute,
    ToolFinished,
)

OUTCOME_UNKNOWN = "outcome unknown: the process ended while the tool ran"
"""What a model reads about a tool that ran when the process died."""

TIMED_OUT = "outcome unknown: the tool took too long"
"""What a model reads about a tool of a worker that did not answer in its time."""

TOOL_FAILED = "the tool failed"
"""What a model reads about a tool whose failure says nothing fit to be shown."""

DEADLINE = Error(code="deadline_exceeded", message="the attempt took too long", retryable=True)
RESTARTED = Error(code="restarted", message="the process ended during the attempt", retryable=True)


# ------------------------------------------------------------------ models


def request_model_call(draft: Draft, turn: Turn, action: CallModel) -> None:
    """Start a model call over the active path.

    What the action leaves out comes from the config in force there; the tools and the
    context are those of the turn's client.
    """
    env, policy = draft.env, draft.env.agent.model_retry.but(action.retry)
    expires = env.now + policy.total
    in_force = members(draft.state.control.agent)
    draft.emit(
        ev.LlmCallRequested(
            call_id=env.new_id("call"),
            message_id=env.new_id("msg"),
            anchor=draft.state.control.head,
            attempt=1,
            deadline=min(env.now + policy.run, expires),
            expires=expires,
            model=action.model or in_force.get("model"),
            system=action.system if action.system is not None else in_force.get("system"),
            client=action.client,
            retry=action.retry,
        ),
        turn.id,
    )


def finish_model_call(draft: Draft, command: FinishModelCall) -> None:
    """A model answered."""
    call = _running(draft, command.call_id, command.attempt)
    draft.emit(
        ev.LlmCallCompleted(
            call_id=call.id,
            attempt=call.attempt,
            usage=command.usage,
            truncated=command.truncated,
        ),
        call.turn_id,
    )
    draft.trigger(
        call.turn_id,
        LlmFinished(
            id=call.id,
            ok=True,
            message=command.message,
            reasoning=command.reasoning,
            truncated=command.truncated,
            usage=command.usage,
        ),
    )


def fail_model_call(draft: Draft, call: Call, error: Error, *, at_once: bool = False) -> None:
    """An attempt of a model call failed: another follows, or the call ends with the error."""
    retry = retry_of(
        draft.env.agent.model_retry.but(call.retry),
        attempt=call.attempt,
        expires=call.expires,
        retryable=error.retryable,
        env=draft.env,
        at_once=at_once,
    )
    if retry is not None:
        retry = replace(retry, message_id=draft.env.new_id("msg"))
    elif error.code == RESTARTED.code:
        error = replace(error, code="provider_error")
    draft.emit(
        ev.LlmCallErrored(call_id=call.id, attempt=call.attempt, error=error, retry=retry),
        call.turn_id,
    )
    if retry is None:
        draft.trigger(call.turn_id, LlmFinished(id=call.id, ok=False, error=error))


# ------------------------------------------------------------------- tools


def request_tool_call(
    draft: Draft, turn: Turn, call_id: str, action: CallTool, *, beside: bool = False
) -> None:
    """Open a tool call. Where it runs follows from the name: agent's tools, then the client's.

    `beside`: it stands beside an interrupt and starts although the branch is paused.
    """
    name, arguments = action.name, action.arguments
    spec = draft.env.agent.tools.get(name)
    client_tools: list[Any] = [tool for tool in turn.client.tools if tool.get("name") == name]
    handler: ev.ToolHandler = (
        spec.handler if spec is not None else "client" if client_tools else "unknown"
    )
    draft.emit(
        ev.ToolCallRequested(
            call_id=call_id,
            name=name,
            arguments=arguments,
            handler=handler,
            anchor=draft.state.control.head,
            retry=action.retry,
        ),
        turn.id,
    )
    call = draft.state.call(call_id)
    if call is not None and handler != "client":
        ask_about(draft, call, beside=beside)


def ask_about(draft: Draft, call: Call, *, beside: bool = False) -> None:
    """Ask what to do about a call that the engine or a worker would run."""
    checked = input_of(draft.env, call.name, call.arguments)
    trigger = ToolExecute(id=call.id, name=call.name, arguments=call.arguments, input=checked)
    draft.trigger(call.turn_id, trigger, beside=beside)


def start_tool(draft: Draft, call: Call) -> None:
    """Run a function tool's call in the engine: the first attempt."""
    start_clock(draft, call, attempt=1)


def finish_tool_call(draft: Draft, command: FinishToolCall) -> None:
    """A tool that the engine ran returned."""
    end_tool_call(draft, _running(draft, command.call_id, command.attempt), result=command.result)


def settle_call(draft: Draft, command: SettleCall) -> str:
    """Somebody outside ends a call that is theirs; return its turn.

    Raises:
        CallNotOpen: it has ended, never was, or has another attempt by now.
        Forbidden: the engine runs it, or a client may not end it.
    """
    call = draft.state.call(command.call_id)
    if call is None or command.attempt not in {None, attempt_of(call)}:
        raise CallNotOpen(command.call_id)
    if call.kind == "worker" and command.caller == "client":
        raise Forbidden(f"Call {call.id} is its worker's to end.")
    if call.kind not in {"worker", "client"}:
        raise Forbidden(f"Call {call.id} runs in the engine; nobody else ends it.")
    end_tool_call(draft, call, result=command.result, error=command.error)
    return call.turn_id


def bound_open_calls(draft: Draft) -> None:
    """Note which calls their worker has left open; where the tool has a clock, it starts.

    Source: `protocol.md` section 8, the table and "Async tools".
    """
    for call in draft.state.control.calls:
        if call.kind != "worker" or call.attempt > 0 or draft.state.is_parked(call.turn_id):
            continue
        if not is_undecided(draft, call):
            start_clock(draft, call, attempt=max(1, call.asked))


def restart_clocks(draft: Draft) -> None:
    """Give calls that an interrupt held all of their time, now that it is cleared.

    Source: `protocol.md` section 6, "No clock runs against a person".
    """
    for call in draft.state.control.calls:
        is_free = call.id in draft.released and not draft.state.is_held(call.id)
        if is_free and call.deadline is not None:
            start_clock(draft, call, attempt=call.attempt)


def attempt_of(call: Call) -> int:
    """Return the attempt that is open: of a worker's own call, the one it was told last."""
    return call.attempt or call.asked


def is_undecided(draft: Draft, call: Call) -> bool:
    """Whether a worker or a person has still to say what becomes of a call."""
    if draft.state.is_held(call.id):
        return True
    for each in draft.waiting:
        match each.trigger:
            case ToolExecute(id=about) | InterruptResumed(tool_call_id=about) if about == call.id:
                return True
            case _:
                continue
    return False


def start_clock(draft: Draft, call: Call, *, attempt: int) -> None:
    """Say how long a call has from now on."""
    policy = _time_of(draft, call)
    deadline = expires = None
    if policy is not None:
        begins = max(draft.env.now, call.not_before or draft.env.now)
        expires = begins + policy.total
        deadline = min(begins + policy.run, expires)
    started = ev.CallStarted(call_id=call.id, attempt=attempt, deadline=deadline, expires=expires)
    draft.emit(started, call.turn_id)


def _time_of(draft: Draft, call: Call) -> RetryPolicy | None:
    """Return how long a call may take. One that its worker left open may take for ever."""
    if call.kind != "worker":
        return tool_policy(draft, call)
    spec = draft.env.agent.tools.get(call.name)
    bound = spec.left_open if spec is not None else None
    if call.retry is not None and (call.retry.total or call.retry.run):
        bound = (bound or tool_policy(draft, call)).but(call.retry)
    return None if bound is None else replace(bound, run=bound.total)


def end_tool_call(
    draft: Draft,
    call: Call,
    *,
    result: Json = None,
    error: str | None = None,
    message_id: str | None = None,
    instructions: tuple[SystemMessage, ...] | None = None,
) -> None:
    """End a tool call for good, with a result or with the error the model reads.

    Its message is recorded as `message_id`, when somebody already shows it under that id.
    """
    if error is None:
        result = as_result(result)
        draft.emit(
            ev.ToolCallCompleted(
                call_id=call.id, attempt=call.attempt, result=result, instructions=instructions
            ),
            call.turn_id,
        )
        finished = ToolFinished(
            id=call.id, name=call.name, ok=True, result=result, message_id=message_id
        )
    else:
        draft.emit(
            ev.ToolCallErrored(
                call_id=call.id,
                attempt=call.attempt,
                error=Error(code="tool_error", message=error),
                instructions=instructions,
            ),
            call.turn_id,
        )
        finished = ToolFinished(
            id=call.id, name=call.name, ok=False, error=error, message_id=message_id
        )
    draft.trigger(call.turn_id, finished)


def finished_message(draft: Draft, trigger: ToolFinished) -> ToolMessage:
    """Return the message that tells the model what a tool came to."""
    content = result_text(trigger.result) if trigger.ok else trigger.error or "failed"
    return ToolMessage(
        id=trigger.message_id or draft.env.new_id("msg"),
        tool_call_id=trigger.id,
        content=content,
        error=None if trigger.ok else content,
    )


def fail_tool_call(draft: Draft, call: Call, error: Error, *, at_once: bool = False) -> None:
    """An attempt of a tool call failed: another follows if its policy allows, else it ends.

    A call that its worker left open has one attempt.
    """
    policy = tool_policy(draft, call)
    retry = retry_of(
        policy if call.kind == "function" else replace(policy, attempts=1),
        attempt=call.attempt,
        expires=call.expires,
        retryable=error.retryable,
        env=draft.env,
        at_once=at_once,
    )
    if retry is None:
        message = OUTCOME_UNKNOWN if error.code == RESTARTED.code else error.message
        end_tool_call(draft, call, error=message)
        return
    draft.emit(
        ev.ToolCallErrored(call_id=call.id, attempt=call.attempt, error=error, retry=retry),
        call.turn_id,
    )


def fail_call(draft: Draft, command: FailCall) -> None:
    """An attempt of a call failed."""
    fail(draft, _running(draft, command.call_id, command.attempt), command.error)


def fail(draft: Draft, call: Call, error: Error, *, at_once: bool = False) -> None:
    """Fail the attempt that runs, whatever kind of call it is."""
    if call.kind == "llm":
        fail_model_call(draft, call, error, at_once=at_once)
    else:
        fail_tool_call(draft, call, error, at_once=at_once)


def stop_call(draft: Draft, call: Call, reason: str) -> None:
    """End a call because its turn ends. A tool call gets its message: the model needs one.

    Source: `protocol.md` section 7, steps 1 and 2; section 5, `done`.
    """
    if call.kind == "llm":
        draft.emit(ev.CallVoided(call_id=call.id, reason=reason), call.turn_id)
        return
    draft.emit(
        ev.ToolCallErrored(
            call_id=call.id, attempt=call.attempt, error=Error(code="ended", message=reason)
        ),
        call.turn_id,
    )
    record_unanswered(draft, call.id, reason, call.turn_id)


def record_unanswered(draft: Draft, call_id: str, reason: str, turn_id: str | None) -> None:
    """Record, for the model only, that a tool call got no result."""
    draft.emit(
        ev.MessageNew(
            message=ToolMessage(
                id=draft.env.new_id("msg"), tool_call_id=call_id, content=reason, error=reason
            ),
            parent_id=draft.state.end_of(turn_id),
        ),
        turn_id,
    )


def own_tool(draft: Draft, decision: Decision) -> ToolExecute | None:
    """Return the trigger of a decision in which the worker runs a tool of its own."""
    trigger = decision.trigger
    if not isinstance(trigger, ToolExecute):
        return None
    spec = draft.env.agent.tools.get(trigger.name)
    return trigger if spec is not None and spec.handler == "worker" else None


def tool_policy(draft: Draft, call: Call) -> RetryPolicy:
    """Return how long a tool may run, and how often."""
    spec = draft.env.agent.tools.get(call.name)
    return (spec.retry if spec is not None else FUNCTION_TOOL).but(call.retry)


def _running(draft: Draft, call_id: str, attempt: int) -> Call:
    call = draft.state.call(call_id)
    if call is None or call.attempt != attempt:
        raise CallNotOpen(call_id)
    return call
