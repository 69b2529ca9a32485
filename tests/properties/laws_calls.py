"""Laws of calls: whose they are, who may end them, when they are tried again."""

from dataclasses import replace
from datetime import datetime, timedelta

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.calls import OUTCOME_UNKNOWN
from engine.core.due import wake_at
from engine.core.env import RetryPolicy
from engine.core.messages import AssistantMessage, ToolMessage
from engine.core.state import Call, Decision, State
from engine.core.worker import (
    GiveError,
    InterruptResumed,
    RetryOverride,
    ToolExecute,
    ToolFinished,
    Trigger,
)
from tests.properties.steps import Step
from tests.properties.world import World


def a_call_is_ended_by_whose_it_is(world: World, step: Step) -> None:
    """A client ends client calls only, a machine its workers' too, a report the engine's."""
    command = step.command
    if isinstance(command, cmd.SettleCall):
        call = step.before.call(command.call_id)
        assert call is not None
        assert call.kind == "client" or (call.kind == "worker" and command.caller == "machine")
        assert command.attempt in {None, call.attempt or call.asked}, "of another attempt"
    if isinstance(command, cmd.AnswerDecision):
        return  # a worker may end any call of a tool
    for state, event in step.walk():
        if isinstance(event.body, ev.ToolCallCompleted):
            ended = state.call(event.body.call_id)
            assert ended is not None
            assert ended.kind in _ends(command), f"{ended.kind} ended by {type(command).__name__}"


def _ends(command: cmd.Command) -> set[str]:
    """Return what kinds of calls a command may end well, itself."""
    match command:
        case cmd.FinishToolCall():
            return {"function"}
        case cmd.SettleCall():
            return {"client", "worker"}
        case cmd.ClientView() | cmd.AppendMessages():
            return {"client"}
        case _:
            return set()


def the_model_is_told_of_calls_that_are_given_up(world: World, step: Step) -> None:
    """A call that ends with its turn, or is passed over, has a message that says so (4, 5, 7)."""
    given_up = {
        e.body.call_id
        for e in step.outcome.events
        if isinstance(e.body, ev.ToolCallErrored) and e.body.error.code == "ended"
    }
    told = {
        e.body.message.tool_call_id
        for e in step.outcome.events
        if isinstance(e.body, ev.MessageNew) and isinstance(e.body.message, ToolMessage)
    }
    assert given_up <= told


def what_a_tool_came_to_is_told(world: World, step: Step) -> None:
    """Whatever ends a turn, a result that had come is recorded, not that it was cancelled."""
    if not step.outcome.receipt.ended:
        return
    told = {
        e.body.message.tool_call_id: e.body.message
        for e in world.log
        if isinstance(e.body, ev.MessageNew) and isinstance(e.body.message, ToolMessage)
    }
    asked = {
        call.id
        for e in world.log
        if isinstance(e.body, ev.MessageNew) and isinstance(e.body.message, AssistantMessage)
        for call in e.body.message.tool_calls
    }
    for decision in step.before.control.decisions:
        came = decision.trigger
        ended = decision.turn_id in step.outcome.receipt.ended
        if not isinstance(came, ToolFinished) or decision.is_out or decision.held:
            continue
        if ended and came.id in asked:
            assert came.id in told, "what a tool came to is lost"
            assert told[came.id].error == (None if came.ok else came.error)


def recovery_leaves_what_others_run(world: World, step: Step) -> None:
    """What its worker left open, a client has, or a person is asked about, waits (section 2)."""
    if not isinstance(step.command, cmd.Recover):
        return
    told = {d.trigger.id for d in _out(step.before) if isinstance(d.trigger, ToolExecute)}
    expired = any(isinstance(e.body, ev.SessionInterruptResumed) for e in step.outcome.events)
    held = {i.tool_call_id for i in step.before.control.interrupts}
    for call in step.before.control.calls:
        left_open = call.kind == "worker" and call.attempt > 0
        waits = call.attempt == 0 and call.id in held
        if not (left_open or call.kind == "client" or waits) or call.id in told:
            continue
        if expired or call.turn_id in step.outcome.receipt.ended:
            continue
        assert world.state.call(call.id) == call, "a restart touched a call that others run"


def recovery_repeats_only_what_may_be_repeated(world: World, step: Step) -> None:
    """A tool that ran is run again only if it may be, else its outcome is unknown (section 2).

    Also a worker's own tool, whose decision was out (section 5).
    """
    if not isinstance(step.command, cmd.Recover):
        return
    running = {c.id: c for c in step.before.control.calls if c.kind == "function" and c.attempt}
    attempts = {call_id: call.attempt for call_id, call in running.items()}
    starts = {call_id: call.not_before for call_id, call in running.items()}
    for decision in _out(step.before):
        if isinstance(decision.trigger, ToolExecute) and world.is_own_tool(decision):
            attempts[decision.trigger.id] = decision.attempt
            starts[decision.trigger.id] = decision.not_before
    for call_id, attempt in attempts.items():
        call = step.before.call(call_id)
        begins = starts[call_id]
        if call is None or (begins is not None and begins > step.now):
            continue
        if attempt >= _tool_policy(world, call).attempts:
            unknown = {
                e.body.call_id
                for e in step.outcome.events
                if isinstance(e.body, ev.ToolCallErrored)
                and e.body.retry is None
                and (e.body.error.message == OUTCOME_UNKNOWN or e.body.error.code == "ended")
            }
            assert call_id in unknown, "a tool whose attempts are used up may run again"


def _out(state: State) -> list[Decision]:
    return [decision for decision in state.control.decisions if decision.is_out]


def _tool_policy(world: World, call: Call) -> RetryPolicy:
    return merged(world.spec.tools[call.name].retry, call.retry)


def merged(policy: RetryPolicy, override: RetryOverride | None) -> RetryPolicy:
    """Return a policy with what an action says in its place."""
    if override is None:
        return policy
    run, total = override.run, override.total
    return replace(
        policy,
        run=policy.run if run is None else timedelta(seconds=run),
        total=policy.total if total is None else timedelta(seconds=total),
        attempts=policy.attempts if override.attempts is None else override.attempts,
    )


def work_has_the_time_that_was_said(world: World, step: Step) -> None:
    """Deadlines are those of the policy, and of the action before it (section 8)."""
    for state, event in step.walk():
        match event.body:
            case ev.LlmCallRequested() as body:
                policy = merged(world.spec.model_retry, body.retry)
                _is_on_time(body, step.now, policy)
            case ev.CallStarted() as body:
                call = state.call(body.call_id)
                assert call is not None
                policy = _time_of(world, call)
                if policy is None:
                    assert body.deadline is None, "a clock for what may stay open for ever"
                    continue
                _is_on_time(body, max(step.now, call.not_before or step.now), policy)
            case ev.DecisionRequested() as body:
                policy = _decision_policy(world, state, body.decision_id, body.trigger)
                _is_on_time(body, step.now, policy)
                assert body.attempt <= policy.attempts
            case _:
                continue


def _time_of(world: World, call: Call) -> RetryPolicy | None:
    """Return how long a call may take: what is left open only if somebody says so."""
    policy, said = _tool_policy(world, call), call.retry
    left_open = world.spec.tools[call.name].left_open
    if call.kind != "worker":
        return policy
    if left_open is None and (said is None or (said.run is None and said.total is None)):
        return None
    policy = merged(left_open or world.spec.tools[call.name].retry, said)
    return replace(policy, run=policy.total)


def _is_on_time(
    body: ev.LlmCallRequested | ev.CallStarted | ev.DecisionRequested,
    begins: datetime,
    policy: RetryPolicy,
) -> None:
    assert body.expires == begins + policy.total
    assert body.deadline == min(begins + policy.run, begins + policy.total)


def _decision_policy(world: World, state: State, decision_id: str, trigger: Trigger) -> RetryPolicy:
    asked = Decision(id=decision_id, turn_id=None, trigger=trigger)
    if isinstance(trigger, ToolExecute) and world.is_own_tool(asked):
        call = state.call(trigger.id)
        assert call is not None
        return _tool_policy(world, call)
    return world.spec.decision_retry


def attempts_are_as_many_as_allowed(world: World, step: Step) -> None:
    """Only what may pass is tried again, within its attempts and its time (section 8)."""
    for state, event in step.walk():
        match event.body:
            case ev.LlmCallErrored(error=error, retry=ev.Retry() as retry) as body:
                call = state.call(body.call_id)
                assert call is not None
                policy, expires = merged(world.spec.model_retry, call.retry), call.expires
            case ev.ToolCallErrored(error=error, retry=ev.Retry() as retry) as body:
                call = state.call(body.call_id)
                assert call is not None
                assert call.kind == "function", "only the engine tries a tool again"
                policy, expires = _tool_policy(world, call), call.expires
            case ev.DecisionErrored(error=error, retry=ev.Retry() as retry) as body:
                decision = state.decision(body.decision_id)
                assert decision is not None
                policy = _decision_policy(world, state, decision.id, decision.trigger)
                expires = decision.expires
            case _:
                continue
        assert error.retryable
        assert 1 < retry.attempt <= policy.attempts
        assert retry.deadline is not None
        assert expires is not None
        assert step.now <= retry.at < retry.deadline <= expires


def a_worker_may_ask_for_another_attempt(world: World, step: Step) -> None:
    """A retryable error of a worker's own tool is no end while an attempt is left (section 5)."""
    command = step.command
    if not isinstance(command, cmd.AnswerDecision):
        return
    decision = step.before.decision(command.decision_id)
    if decision is None or not decision.is_out or not world.is_own_tool(decision):
        return
    trigger, actions = decision.trigger, command.response.actions
    assert isinstance(trigger, ToolExecute)
    may_pass = any(isinstance(a, GiveError) and a.retryable and a.id is None for a in actions)
    policy = _decision_policy(world, step.before, decision.id, trigger)
    latest = step.now + timedelta(seconds=policy.max_backoff_s)
    in_time = decision.expires is not None and decision.expires > latest
    if may_pass and in_time and decision.attempt < policy.attempts:
        assert world.state.call(trigger.id) is not None, "it ended, and an attempt was left"


def time_wakes_for_the_next_thing(world: World, step: Step) -> None:
    """The moment a session is looked at again is that of its next deadline (sections 2 and 8)."""
    control = world.state.control
    held = {interrupt.tool_call_id for interrupt in control.interrupts}
    asked = [d for d in control.decisions if getattr(d.trigger, "id", "") not in held]
    moments = [
        *(call.deadline for call in control.calls if call.id not in held),
        *(d.deadline for d in asked if isinstance(d.trigger, ToolExecute)),
        *(d.deadline for d in control.decisions if not isinstance(d.trigger, ToolExecute)),
        *(interrupt.expires for interrupt in control.interrupts),
    ]
    assert wake_at(world.state) == min((m for m in moments if m is not None), default=None)


def questions_are_about_open_calls(world: World, step: Step) -> None:
    """Nobody is asked whether to start a call that has ended or started already (section 5)."""
    for decision in world.state.control.decisions:
        if isinstance(decision.trigger, ToolExecute) and not decision.held:
            call = world.state.call(decision.trigger.id)
            assert call is not None, "a question about a call that has ended"
            assert call.attempt == 0 or decision.is_out, "a question about a call that runs"


def what_a_worker_left_open_has_its_time(world: World, step: Step) -> None:
    """Its tool's `retry` sets a time for a call once its worker has left it open (section 8).

    Not before; and one whose tool says nothing waits for ever.
    """
    for state, event in step.walk():
        if isinstance(event.body, ev.CallStarted):
            call = state.call(event.body.call_id)
            assert call is not None
            if call.kind == "worker":
                assert call.attempt > 0 or not _is_undecided(state, call), "nobody left it open"
    for call in world.state.control.calls:
        if call.kind != "worker" or world.state.is_parked(call.turn_id):
            continue
        if not _is_undecided(world.state, call):
            assert (call.deadline is not None) == (_time_of(world, call) is not None)


def _is_undecided(state: State, call: Call) -> bool:
    """Whether a person or the worker has still to say what becomes of a call."""
    for decision in state.control.decisions:
        match decision.trigger:
            case ToolExecute(id=about) | InterruptResumed(tool_call_id=about) if about == call.id:
                return True
            case _:
                continue
    return any(i.tool_call_id == call.id for i in state.control.interrupts)
