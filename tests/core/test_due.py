"""Time and restarts: deadlines, retries, recovery (`protocol.md` 2 and 8)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.calls import OUTCOME_UNKNOWN, TIMED_OUT
from engine.core.due import wake_at
from engine.core.env import DECISION, FUNCTION_TOOL, MODEL_CALL
from engine.core.errors import CallNotOpen
from engine.core.messages import ToolCall, ToolMessage
from engine.core.pending import pending
from engine.core.worker import Error
from tests.core.given import START, Session, agent, names, paused, tool

BUSY = Error(code="rate_limited", message="busy", retryable=True)
SEND = ToolCall(id="c1", name="send", arguments='{"to": "ada"}')


def fail(session: Session, error: Error = BUSY) -> list[ev.Body]:
    """The model's attempt in flight fails."""
    call = session.model_call
    return session.do(cmd.FailCall(call_id=call.id, attempt=call.attempt, error=error))


def test_a_retryable_failure_is_tried_again_later_under_a_new_id() -> None:
    """Backoff with full jitter: half of `2**2` seconds here; the reply gets a fresh id."""
    session = Session()
    session.say()
    before = session.model_call
    [errored] = fail(session)

    assert isinstance(errored, ev.LlmCallErrored)
    assert errored.retry is not None
    assert errored.retry.at == START + timedelta(seconds=2)
    after = session.model_call
    assert (after.id, after.attempt) == (before.id, 2)
    assert after.message_id != before.message_id
    [work] = pending(session.state)
    assert work.not_before == errored.retry.at


def test_attempts_run_out() -> None:
    """The fifth failure of a model call is its last, and ends the turn."""
    session = Session()
    session.say()
    for _ in range(MODEL_CALL.attempts - 1):
        assert names(fail(session)) == ["llm.call.errored"]
    assert names(fail(session)) == ["llm.call.errored", "turn.completed"]


def test_a_result_of_an_old_attempt_is_refused() -> None:
    """Fencing: only the attempt in flight may end the call."""
    session = Session()
    session.say()
    old = session.model_call
    fail(session)

    with pytest.raises(CallNotOpen):
        session.do(cmd.FailCall(call_id=old.id, attempt=1, error=BUSY))


def test_a_failure_that_would_repeat_is_not_tried_again() -> None:
    """Only errors marked retryable, and timeouts, retry."""
    session = Session()
    session.say()
    assert names(fail(session, replace(BUSY, retryable=False)))[-1] == "turn.completed"


def test_an_overdue_attempt_ends() -> None:
    """Deadlines are in the log: whoever looks later finds them overdue."""
    session = Session()
    session.say()
    assert wake_at(session.state) == START + MODEL_CALL.run
    assert session.do(cmd.PassTime()) == []

    session.wait(seconds=MODEL_CALL.run.total_seconds())
    [errored] = session.do(cmd.PassTime())
    assert isinstance(errored, ev.LlmCallErrored)
    assert errored.error.code == "deadline_exceeded"
    assert session.model_call.attempt == 2


def test_no_clock_runs_against_a_person() -> None:
    """Forty days paused: nothing to wake for, and the answer still runs the tool."""
    session = paused()
    assert wake_at(session.state) is None
    session.wait(days=40)
    assert session.do(cmd.PassTime()) == []

    assert "call.started" in names(session.resume(True))
    call = session.state.call("c1")
    assert call is not None
    assert call.deadline == session.now + FUNCTION_TOOL.run


def test_a_model_call_in_flight_is_sent_again_after_a_crash() -> None:
    """At once, as the next attempt; what waited for its backoff still waits."""
    session = Session()
    session.say()
    session.do(cmd.Recover())
    assert session.model_call.attempt == 2
    assert session.model_call.not_before == session.now

    fail(session)
    waiting = session.model_call
    assert session.do(cmd.Recover()) == []
    assert session.model_call == waiting


def test_a_tool_that_ran_at_a_crash_is_not_run_again() -> None:
    """Its outcome is unknown, and the model is told."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, SEND)
    happened = session.do(cmd.Recover())

    assert "call.started" not in names(happened)
    [result] = [m for m in session.path if isinstance(m, ToolMessage)]
    assert result.content == OUTCOME_UNKNOWN
    assert "llm.call.requested" in names(happened)


def test_a_tool_whose_policy_allows_it_runs_again_after_a_crash() -> None:
    """A retry is the tool's own word that running twice does no harm."""
    session = Session(agent(tool("send", retry=replace(FUNCTION_TOOL, attempts=2))))
    session.say()
    session.reply(None, SEND)
    happened = session.do(cmd.Recover())

    assert names(happened) == ["tool.call.errored"]
    call = session.state.call("c1")
    assert call is not None
    assert call.attempt == 2


def test_a_decision_that_was_out_is_asked_again_after_a_crash() -> None:
    """Asking is at least once: the same decision, the next attempt."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say()
    before = session.out
    session.do(cmd.Recover())
    assert (session.out.id, session.out.attempt) == (before.id, 2)


def test_a_workers_own_tool_that_ran_at_a_crash_is_not_run_again() -> None:
    """The decision is the call: at most once an attempt."""
    session = Session(agent(tool("own", handler="worker"), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="own", arguments='{"to": "x"}'))
    happened = session.do(cmd.Recover())

    assert "decision.errored" in names(happened)
    [result] = [m for m in session.path if isinstance(m, ToolMessage)]
    assert result.content == OUTCOME_UNKNOWN


def test_what_waits_for_a_person_is_left_alone_by_a_restart() -> None:
    """A pause is only rows."""
    session = paused()
    assert session.do(cmd.Recover()) == []
    assert pending(session.state) == []


def test_a_worker_that_never_answers_ends_the_turn() -> None:
    """When attempts run out the turn completes with `worker_error`."""
    session = Session(agent(wants=None, decision_retry=replace(DECISION, attempts=2, base=1.0)))
    session.say()
    session.wait(seconds=DECISION.run.total_seconds())
    assert names(session.do(cmd.PassTime())) == ["decision.errored"]
    session.wait(seconds=2 * DECISION.run.total_seconds())
    happened = session.do(cmd.PassTime())
    assert isinstance(happened[-1], ev.TurnCompleted)
    assert happened[-1].error is not None
    assert happened[-1].error.code == "worker_error"


def test_a_workers_tool_that_takes_too_long_says_so_to_the_model() -> None:
    """Nobody knows what came of it, and no process has ended."""
    session = Session(agent(tool("own", handler="worker"), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="own", arguments='{"to": "x"}'))
    session.wait(seconds=121)
    session.do(cmd.PassTime())
    assert [m.content for m in session.path if isinstance(m, ToolMessage)] == [TIMED_OUT]
