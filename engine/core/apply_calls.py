"""Fold, continued: what an event changes about calls, and what calls cost their turn."""

from dataclasses import replace

from engine.core import events as ev
from engine.core.messages import Usage
from engine.core.state import Call, Control, Turn
from engine.core.worker import ToolExecute


def asked(control: Control, body: ev.Body) -> tuple[Call, ...]:
    """Note on a call that its worker is told to run it: once more."""
    match body:
        case ev.DecisionRequested(trigger=ToolExecute(id=call_id), attempt=attempt):
            pass
        case ev.DecisionErrored(retry=ev.Retry(attempt=attempt), decision_id=decision_id):
            trigger = next((d.trigger for d in control.decisions if d.id == decision_id), None)
            if not isinstance(trigger, ToolExecute):
                return control.calls
            call_id = trigger.id
        case _:
            return control.calls
    return tuple(replace(c, asked=attempt) if c.id == call_id else c for c in control.calls)


def answered(control: Control, body: ev.Body) -> tuple[Call, ...]:
    """Note on a call that a person was asked to let it run, and did not.

    When the agent itself asks again, that answer is the one that counts.
    """
    if isinstance(body, ev.SessionInterrupted) and body.origin in {"worker", "engine"}:
        return tuple(
            replace(call, refused=None) if call.id == body.tool_call_id else call
            for call in control.calls
        )
    if not isinstance(body, ev.SessionInterruptResumed) or body.approved is not False:
        return control.calls
    asked = next((i for i in control.interrupts if i.id == body.interrupt_id), None)
    if asked is None or asked.tool_call_id is None:
        return control.calls
    return tuple(
        replace(call, refused=body.refusal or "") if call.id == asked.tool_call_id else call
        for call in control.calls
    )


def model_calls(
    calls: tuple[Call, ...],
    event: ev.Event,
    body: ev.LlmCallRequested | ev.LlmCallCompleted | ev.LlmCallErrored,
) -> tuple[Call, ...]:
    """Return the open calls after an event about a model call."""
    match body:
        case ev.LlmCallRequested():
            call = Call(
                id=body.call_id,
                kind="llm",
                turn_id=event.turn_id or "",
                anchor=body.anchor,
                attempt=body.attempt,
                deadline=body.deadline,
                expires=body.expires,
                message_id=body.message_id,
                model=body.model,
                system=body.system,
                client=body.client,
                retry=body.retry,
            )
            return (*calls, call)
        case ev.LlmCallErrored(retry=retry) if retry is not None:
            return _retried(calls, body.call_id, retry)
        case ev.LlmCallCompleted() | ev.LlmCallErrored():
            return _without(calls, body.call_id)


def after_model_call(
    turns: tuple[Turn, ...],
    event: ev.Event,
    body: ev.LlmCallRequested | ev.LlmCallCompleted | ev.LlmCallErrored,
) -> tuple[Turn, ...]:
    """Note a turn's usage, and its error: that of its last model call."""
    match body:
        case ev.LlmCallErrored(retry=retry) if retry is not None:
            return turns
        case ev.LlmCallErrored():
            error, usage = body.error, ()
        case ev.LlmCallRequested():
            error, usage = None, ()
        case ev.LlmCallCompleted():
            error, usage = None, body.usage
    return tuple(
        replace(turn, error=error, usage=add_usage(turn.usage, usage))
        if turn.id == event.turn_id and (error is not turn.error or usage)
        else turn
        for turn in turns
    )


def tool_calls(
    calls: tuple[Call, ...],
    event: ev.Event,
    body: ev.ToolCallRequested
    | ev.CallStarted
    | ev.ToolCallCompleted
    | ev.ToolCallErrored
    | ev.CallVoided,
) -> tuple[Call, ...]:
    """Return the open calls after an event about a tool call, or about any call's end."""
    match body:
        case ev.ToolCallRequested():
            call = Call(
                id=body.call_id,
                kind=body.handler,
                turn_id=event.turn_id or "",
                anchor=body.anchor,
                name=body.name,
                arguments=body.arguments,
                retry=body.retry,
            )
            return (*calls, call)
        case ev.CallStarted():
            return tuple(
                replace(call, attempt=body.attempt, deadline=body.deadline, expires=body.expires)
                if call.id == body.call_id
                else call
                for call in calls
            )
        case ev.ToolCallErrored(retry=retry) if retry is not None:
            return _retried(calls, body.call_id, retry)
        case ev.ToolCallCompleted() | ev.ToolCallErrored() | ev.CallVoided():
            return _without(calls, body.call_id)


def _without(calls: tuple[Call, ...], call_id: str) -> tuple[Call, ...]:
    return tuple(call for call in calls if call.id != call_id)


def _retried(calls: tuple[Call, ...], call_id: str, retry: ev.Retry) -> tuple[Call, ...]:
    return tuple(
        replace(
            call,
            attempt=retry.attempt,
            not_before=retry.at,
            deadline=retry.deadline,
            message_id=retry.message_id or call.message_id,
        )
        if call.id == call_id
        else call
        for call in calls
    )


def add_usage(total: tuple[Usage, ...], more: tuple[Usage, ...]) -> tuple[Usage, ...]:
    """Add token counts, one entry per provider and model. An unknown count adds nothing."""
    sums = {(usage.provider, usage.model): usage for usage in total}
    for usage in more:
        key = (usage.provider, usage.model)
        sums[key] = _plus(sums[key], usage) if key in sums else usage
    return tuple(sums.values())


def _plus(left: Usage, right: Usage) -> Usage:
    def both(a: int | None, b: int | None) -> int | None:
        return b if a is None else a if b is None else a + b

    return Usage(
        model=left.model,
        provider=left.provider,
        input_tokens=both(left.input_tokens, right.input_tokens),
        output_tokens=both(left.output_tokens, right.output_tokens),
        reasoning_tokens=both(left.reasoning_tokens, right.reasoning_tokens),
        cached_input_tokens=both(left.cached_input_tokens, right.cached_input_tokens),
    )
