"""Which time and how many attempts each kind of call has, and who ends it.

Source: `protocol.md` section 8, its table, and "Function tools" to "Client tools".
"""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from engine.agent import Agent, Tool
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.due import wake_at
from engine.core.env import DECISION, FUNCTION_TOOL, MODEL_CALL, WORKER_TOOL, RetryPolicy, ToolSpec
from engine.core.errors import CallNotOpen
from engine.core.messages import ToolCall
from engine.core.pending import pending
from engine.core.state import Call, Decision
from engine.core.worker import CallModel, CallTool, Error, GiveError, RetryOverride
from tests.core.given import Session, agent, names, tool, user
from tests.protocol.calls import (
    PICK,
    attempts,
    call,
    gating,
    left_open,
    only,
    opened,
    read,
    recorded,
    running_own,
    settle,
    started,
    worker_tool,
)


def seconds(session: Session, moment: datetime | None) -> float:
    """How long it is until a moment."""
    assert moment is not None
    return (moment - session.now).total_seconds()


def running(*calls: ToolCall, spec: ToolSpec | None = None) -> Session:
    """A reply whose function tools run."""
    session = Session(agent(spec or tool("send")))
    session.say()
    session.reply(None, *(calls or (call(),)))
    return session


# --------------------------------------------------------------------- the table


def test_8_row_model_call() -> None:
    """180 seconds an attempt, 1800 in all, 5 attempts."""
    session = Session()
    session.say()
    made = session.model_call
    assert (seconds(session, made.deadline), seconds(session, made.expires)) == (180, 1800)
    busy = Error(code="rate_limited", message="busy", retryable=True)
    happened: list[ev.Body] = []
    for attempt in range(1, 6):
        assert session.model_call.attempt == attempt
        happened = session.do(cmd.FailCall(call_id=made.id, attempt=attempt, error=busy))
    assert names(happened) == ["llm.call.errored", "turn.completed"]


def test_8_row_function_tool() -> None:
    """120 seconds, 600 in all, once."""
    session = running()
    made = opened(session)
    assert made.kind == "function"
    assert (seconds(session, made.deadline), seconds(session, made.expires)) == (120, 600)
    busy = Error(code="tool_error", message="busy", retryable=True)
    session.do(cmd.FailCall(call_id="c1", attempt=1, error=busy))
    assert read(session) == {"c1": "busy"}


def test_8_row_function_tool_calls_of_one_reply_run_in_parallel() -> None:
    """All of them start in the commit of the reply, and may end in any order."""
    session = Session(agent(tool("send")))
    session.say()
    happened = session.reply(None, call("c1"), call("c2"), call("c3"))
    assert started(happened) == ["c1", "c2", "c3"]
    for call_id in ("c3", "c1", "c2"):
        assert "llm.call.requested" not in names(happened)
        happened = session.finish(call_id, call_id)
    assert "llm.call.requested" in names(happened)


def test_8_row_worker_tool() -> None:
    """120 seconds, 600 in all, once: being asked is running it."""
    session = running_own()
    decision = session.out
    assert (seconds(session, decision.deadline), seconds(session, decision.expires)) == (120, 600)
    busy = GiveError(error="busy", retryable=True)
    session.answer(busy)
    assert read(session) == {"c1": "busy"}


def test_8_row_async_tool() -> None:
    """A call that its worker has left open waits for ever."""
    session = left_open()
    assert wake_at(session.state) is None
    session.wait(days=4000)
    assert session.do(cmd.PassTime()) == []
    settle(session)
    assert read(session) == {"c1": "done"}


def test_8_row_client_tool() -> None:
    """No time, and nobody tries twice."""
    session = Session()
    session.say(client=PICK)
    session.reply(None, call(name="pick"))
    assert opened(session).kind == "client"
    assert wake_at(session.state) is None
    session.wait(days=4000)
    assert session.do(cmd.PassTime()) == []
    assert pending(session.state) == []


def test_8_row_worker_decision() -> None:
    """20 seconds an attempt, 300 in all, 10 attempts."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say()
    decision = session.out
    assert (seconds(session, decision.deadline), seconds(session, decision.expires)) == (20, 300)
    failed = Error(code="worker_error", message="down", retryable=True)
    happened: list[ev.Body] = []
    for attempt in range(1, 11):
        assert session.out.attempt == attempt
        happened = session.do(
            cmd.FailDecision(decision_id=decision.id, attempt=attempt, error=failed)
        )
    assert "turn.completed" in names(happened)


# --------------------------------------------------------------- what retries do


def test_8_backoff_full_jitter() -> None:
    """Before attempt n a part of `2**n` seconds, at most of 60; here the half of it."""
    session = Session(agent(model_retry=replace(MODEL_CALL, attempts=9)))
    session.say()
    waits: list[float] = []
    for attempt in range(1, 9):
        busy = Error(code="rate_limited", message="busy", retryable=True)
        [errored] = session.do(
            cmd.FailCall(call_id=session.model_call.id, attempt=attempt, error=busy)
        )
        assert isinstance(errored, ev.LlmCallErrored)
        assert errored.retry is not None
        waits.append(seconds(session, errored.retry.at))
    assert waits == [2, 4, 8, 16, 30, 30, 30, 30]


@pytest.mark.parametrize("base", [1e7, 10.0**30], ids=["1e7", "1e30"])
def test_8_backoff_is_bounded_whatever_the_base(base: float) -> None:
    """A power that no number can hold is still more than the maximum."""
    patient = replace(MODEL_CALL, attempts=99, base=base, total=timedelta(days=9))
    session = Session(agent(model_retry=patient))
    session.say()
    for _ in range(60):
        made = session.model_call
        busy = Error(code="rate_limited", message="busy", retryable=True)
        session.do(cmd.FailCall(call_id=made.id, attempt=made.attempt, error=busy))
    assert session.model_call.not_before == session.now + timedelta(seconds=30)


def test_8_the_total_time_bounds_all_attempts() -> None:
    """No attempt begins behind it, and the last one ends with it."""
    short = replace(MODEL_CALL, total=timedelta(seconds=200))
    session = Session(agent(model_retry=short))
    session.say()
    made = session.model_call
    session.wait(seconds=180)
    session.do(cmd.PassTime())
    assert session.model_call.deadline == made.expires
    session.wait(seconds=20)
    happened = session.do(cmd.PassTime())
    error = only(happened, ev.TurnCompleted).error
    assert error is not None
    assert error.code == "deadline_exceeded"


@pytest.mark.parametrize("retryable", [True, False], ids=["marked", "not marked"])
def test_8_only_errors_marked_retryable_are_tried_again(retryable: bool) -> None:  # noqa: FBT001
    """Of a model call; a failure that would come again ends it at once."""
    session = Session()
    session.say()
    failed = Error(code="provider_error", message="x", retryable=retryable)
    happened = session.do(cmd.FailCall(call_id=session.model_call.id, attempt=1, error=failed))
    assert ("turn.completed" not in names(happened)) is retryable


@pytest.mark.parametrize("attempts_allowed", [1, 2])
def test_8_timeouts_are_tried_again(attempts_allowed: int) -> None:
    """Of a tool whose policy allows another attempt."""
    policy = replace(FUNCTION_TOOL, attempts=attempts_allowed)
    session = running(spec=tool("send", retry=policy))
    session.wait(seconds=120)
    session.do(cmd.PassTime())
    assert attempts(session) == ({"c1": 2} if attempts_allowed == 2 else {})


def test_8_overrides_stack() -> None:
    """Engine, agent, kind, tool, action: each says what it changes, the rest stays."""
    declared = Agent(
        "a",
        tools=[Tool("own", "", {"type": "object"}, retry=RetryOverride(base=3, run=5))],
        retry={
            "default": RetryOverride(attempts=2, total=500, max=7),
            "worker": RetryOverride(attempts=3, base=9, run=6),
        },
    )
    policy = declared.spec().tools["own"].retry.but(RetryOverride(run=4))
    assert policy == RetryPolicy(
        run=timedelta(seconds=4),
        total=timedelta(seconds=500),
        attempts=3,
        base=3,
        max_backoff_s=7,
    )


def test_8_overrides_of_an_agent_reach_each_kind() -> None:
    """What is said for one kind does not change another."""
    spec = Agent(
        "a", tools=[Tool("own")], retry={"llm": RetryOverride(run=1), "decision": RetryOverride()}
    ).spec()
    assert spec.model_retry == replace(MODEL_CALL, run=timedelta(seconds=1))
    assert spec.decision_retry == DECISION
    assert spec.tools["own"].retry == WORKER_TOOL


@pytest.mark.parametrize("kind", ["llm.call", "function", "worker"])
def test_8_overrides_of_an_action(kind: str) -> None:
    """What the action says goes before everything else, in every attempt."""
    wants = {"client.messages"} | ({"tool.execute"} if kind == "worker" else set())
    session = Session(agent(tool("send"), worker_tool(), wants=frozenset(wants)))
    session.say()
    override = RetryOverride(run=7, total=70, attempts=2, base=4, max=1)
    name = {"function": "send", "worker": "own"}.get(kind)
    action = (
        CallModel(retry=override)
        if name is None
        else CallTool(id="c1", name=name, arguments='{"to": "x"}', retry=override)
    )
    session.answer(action, messages=[user("u1")])

    def work() -> Call | Decision:
        if kind == "worker":
            return session.out
        return session.model_call if kind == "llm.call" else opened(session)

    assert (seconds(session, work().deadline), seconds(session, work().expires)) == (7, 70)
    session.wait(seconds=7)
    session.do(cmd.PassTime())
    assert work().attempt == 2
    assert work().not_before == session.now + timedelta(seconds=0.5)
    session.wait(seconds=8)
    session.do(cmd.PassTime())
    assert session.state.call("c1") is None


# ------------------------------------------------------------------- in the log


def test_8_deadlines_are_in_the_log() -> None:
    """Whoever folds it later finds what is overdue, and ends it on start."""
    for session in (running(), running_own(), Session()):
        if not session.log:
            session.say()
        again = Session(session.spec, state=session.refolded(), log=list(session.log))
        again.minted, again.now = session.minted, session.now + timedelta(hours=1)
        assert wake_at(again.state) is not None
        assert again.do(cmd.PassTime()) != []


def test_8_a_result_of_an_old_attempt_is_refused() -> None:
    """The attempt that lapsed comes back late."""
    session = running(spec=tool("send", retry=replace(FUNCTION_TOOL, attempts=2)))
    session.wait(seconds=120)
    session.do(cmd.PassTime())
    with pytest.raises(CallNotOpen):
        session.do(cmd.FinishToolCall(call_id="c1", attempt=1, result="late"))
    assert attempts(session) == {"c1": 2}


def test_8_call_ids_are_used_once() -> None:
    """The engine mints those of model calls; a worker cannot use one again."""
    session = gating()
    happened = session.answer(CallTool(name="send", id="c1", arguments='{"to": "x"}'))
    assert names(happened) == ["decision.errored"]
    ids = [b.call_id for b in recorded(session, ev.LlmCallRequested)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("kind", ["tool.finished", "llm.finished"])
def test_8_a_failed_attempt_is_not_the_end_of_a_call(kind: str) -> None:
    """Its worker hears of the call when it has ended for good."""
    twice = tool("send", retry=replace(FUNCTION_TOOL, attempts=2))
    session = Session(agent(twice, wants=frozenset({kind})))
    session.say()
    if kind == "tool.finished":
        session.reply(None, call())
    call_id = "c1" if kind == "tool.finished" else session.model_call.id
    busy = Error(code="x", message="busy", retryable=True)
    session.do(cmd.FailCall(call_id=call_id, attempt=1, error=busy))
    assert session.state.control.decisions == ()
    session.do(cmd.FailCall(call_id=call_id, attempt=2, error=replace(busy, retryable=False)))
    assert session.trigger.type == kind
