"""Calls that wait for somebody outside: async tools and client tools.

Source: `protocol.md` section 8, "Async tools" and "Client tools"; section 2 on restarts.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engine.agent import Agent, Tool
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.due import wake_at
from engine.core.env import WORKER_TOOL, RetryPolicy
from engine.core.errors import CallNotOpen, Forbidden
from engine.core.messages import ToolMessage
from engine.core.pending import pending
from engine.core.status import status
from engine.core.worker import GiveError, GiveResult, Interrupt, RetryOverride, ToolExecute
from tests.core.given import Session, agent, names, respond, tool, view
from tests.protocol.calls import (
    PICK,
    attempts,
    call,
    come_back,
    hold,
    leave,
    left_open,
    only,
    opened,
    read,
    running_own,
    settle,
    told,
    worker_tool,
)

BOUND = replace(WORKER_TOOL, total=timedelta(seconds=50))
"""What a tool's own `retry` says about a call that its worker leaves open."""


def picking() -> Session:
    """The model has called a tool of the frontend, `c1`."""
    session = Session()
    session.say(client=PICK)
    session.reply(None, call(name="pick"))
    return session


# ------------------------------------------------------------------ async tools


def test_8_async_tool_is_left_open_by_an_answer_with_neither_result_nor_error() -> None:
    """The turn goes on waiting for it."""
    session = running_own()
    assert "decision.completed" in names(session.answer())
    assert list(attempts(session)) == ["c1"]
    assert session.state.control.decisions == ()
    assert len(session.state.control.turns) == 1


@pytest.mark.parametrize(
    ("how", "said"),
    [({"result": "sent"}, "sent"), ({"error": "no such address"}, "no such address")],
    ids=["result", "error"],
)
def test_8_async_tool_ends_when_it_is_settled(how: dict[str, Any], said: str) -> None:
    """Recorded, and the model goes on."""
    session = left_open()
    happened = settle(session, **how)
    assert read(session) == {"c1": said}
    assert "llm.call.requested" in names(happened)


def test_8_async_tool_the_model_is_called_when_no_call_of_the_turn_is_open() -> None:
    """Two were left open; the first result is only recorded."""
    session = Session(agent(worker_tool(), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, call("c1", "own"), call("c2", "own"))
    session.answer()
    session.answer()
    assert names(settle(session, "c2")) == ["tool.call.completed", "message.new"]
    assert "llm.call.requested" in names(settle(session, "c1"))


def test_8_async_tool_has_no_deadline_unless_retry_sets_one() -> None:
    """The one it sets is counted from when the call is left open."""
    assert opened(left_open()).deadline is None
    session = left_open(worker_tool(left_open=BOUND))
    assert opened(session).deadline == session.now + timedelta(seconds=50)
    assert wake_at(session.state) == session.now + timedelta(seconds=50)


@pytest.mark.parametrize(
    ("retry", "total"),
    [(None, None), (RetryOverride(total=50), 50), (RetryOverride(attempts=3), None)],
    ids=["no retry", "a time", "attempts only"],
)
def test_8_async_tool_declared(retry: RetryOverride | None, total: float | None) -> None:
    """A `retry` that says nothing about time sets no deadline."""
    declared = Agent("a", tools=[Tool("own", "", {"type": "object"}, retry=retry)]).spec()
    session = left_open(declared.tools["own"])
    expected = None if total is None else session.now + timedelta(seconds=total)
    assert opened(session).deadline == expected


def test_8_async_tool_past_its_deadline_ends_with_an_error() -> None:
    """One attempt: the worker is not asked again, and a late result is refused."""
    session = left_open(worker_tool(attempts=3, left_open=BOUND))
    session.wait(seconds=50)
    happened = names(session.do(cmd.PassTime()))
    assert "decision.requested" not in happened
    assert "llm.call.requested" in happened
    assert list(read(session)) == ["c1"]
    with pytest.raises(CallNotOpen):
        settle(session)


def test_8_async_tool_past_its_deadline_while_paused_is_recorded() -> None:
    """The branch waits for a person, the call does not; what follows is held."""
    session = left_open(worker_tool(left_open=BOUND))
    hold(session)
    session.wait(seconds=50)
    assert names(session.do(cmd.PassTime())) == ["tool.call.errored", "decision.waiting"]
    assert "llm.call.requested" in names(session.resume(True, "hold"))


def test_8_async_tool_settled_before_its_worker_has_answered() -> None:
    """The result counts, and the late answer is ignored."""
    session = running_own()
    decision = session.out
    happened = names(settle(session, result="early"))
    assert "decision.dropped" in happened
    assert "llm.call.requested" in happened
    late = cmd.AnswerDecision(
        decision_id=decision.id, attempt=1, response=respond(GiveResult(result="late"))
    )
    assert session.do(late) == []
    assert read(session) == {"c1": "early"}


def test_8_async_tool_settled_while_paused() -> None:
    """The end is recorded at once, the model goes on after the answer."""
    session = left_open()
    hold(session)
    assert names(settle(session)) == ["tool.call.completed", "decision.waiting"]
    assert "llm.call.requested" in names(session.resume(True, "hold"))
    assert read(session) == {"c1": "done"}


def test_8_async_tool_settled_on_a_parked_turn() -> None:
    """Its trigger waits until the branch comes back."""
    session = left_open()
    hold(session)
    path = leave(session)
    assert names(settle(session)) == ["tool.call.completed", "decision.waiting"]
    come_back(session, path)
    assert "llm.call.requested" in names(session.resume(True, "hold"))
    assert read(session) == {"c1": "done"}


def test_8_async_tool_past_its_deadline_on_a_parked_turn() -> None:
    """A call belongs to its turn, and its clock runs on while the branch is left."""
    session = left_open(worker_tool(left_open=BOUND))
    hold(session)
    path = leave(session)
    session.wait(seconds=50)
    assert names(session.do(cmd.PassTime())) == ["tool.call.errored", "decision.waiting"]
    come_back(session, path)
    assert "llm.call.requested" in names(session.resume(True, "hold"))
    assert list(read(session)) == ["c1"]


def test_8_async_tool_of_a_turn_that_was_abandoned_is_refused() -> None:
    """The question was answered while nobody used the branch: its calls are over."""
    session = left_open()
    hold(session)
    leave(session)
    session.resume(True, "hold")
    assert attempts(session) == {}
    with pytest.raises(CallNotOpen):
        settle(session)


def test_8_async_tool_is_left_alone_by_a_restart() -> None:
    """It stays open, with the deadline it had, and is settled afterwards."""
    session = left_open(worker_tool(left_open=BOUND))
    deadline = opened(session).deadline
    session.wait(seconds=10)
    assert session.do(cmd.Recover()) == []
    assert opened(session).deadline == deadline
    settle(session)
    assert read(session) == {"c1": "done"}


def test_8_async_tool_is_settled_once() -> None:
    """A second result is refused, and changes nothing."""
    session = left_open()
    settle(session)
    with pytest.raises(CallNotOpen):
        settle(session, result="again")


@pytest.mark.parametrize("bound", [None, BOUND], ids=["no deadline", "deadline"])
@pytest.mark.parametrize("failed", [0, 1], ids=["first attempt", "second attempt"])
def test_8_async_tool_settled_with_the_attempt_its_worker_was_told(
    failed: int, bound: RetryPolicy | None
) -> None:
    """The attempt that the trigger named is the one that is open."""
    session = running_own(worker_tool(attempts=2, left_open=bound))
    for _ in range(failed):
        session.answer(GiveError(error="busy", retryable=True))
    trigger = told(session).trigger
    assert isinstance(trigger, ToolExecute)
    session.answer()
    settle(session, result="done", attempt=trigger.attempt)
    assert read(session) == {"c1": "done"}


@pytest.mark.parametrize("bound", [None, BOUND], ids=["no deadline", "deadline"])
def test_8_async_tool_settled_with_an_old_attempt_is_refused(bound: RetryPolicy | None) -> None:
    """Two attempts were made, and the first one's backend comes late."""
    session = running_own(worker_tool(attempts=2, left_open=bound))
    session.answer(GiveError(error="busy", retryable=True))
    session.answer()
    with pytest.raises(CallNotOpen):
        settle(session, result="late", attempt=1)


def test_8_async_tool_that_is_held_has_no_clock_until_it_was_decided() -> None:
    """A worker asks a person about its own call first, and leaves it open then."""
    session = running_own(worker_tool(left_open=BOUND))
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    assert wake_at(session.state) is None
    session.wait(days=1)
    session.resume(True, "q")
    assert opened(session).deadline == session.now + timedelta(seconds=50)


@pytest.mark.parametrize("kind", ["function", "llm"])
def test_8_calls_that_the_engine_runs_are_nobody_elses_to_end(kind: str) -> None:
    """Neither a backend nor a client may settle them."""
    session = Session(agent(tool("send")))
    session.say()
    call_id = session.model_call.id
    if kind == "function":
        session.reply(None, call())
        call_id = "c1"
    for caller in ("machine", "client"):
        with pytest.raises(Forbidden):
            session.do(cmd.SettleCall(call_id=call_id, result="x", caller=caller))


# ----------------------------------------------------------------- client tools


@pytest.mark.parametrize("declared", ["by the agent", "by the frontend"])
def test_8_client_tool_is_recorded_and_waits(declared: str) -> None:
    """Nothing runs, and the turn waits for the client."""
    own = tool("pick", handler="client")
    session = Session(agent(*([own] if declared == "by the agent" else [])))
    session.say(client=PICK if declared == "by the frontend" else cmd.ClientContext())
    happened = session.reply(None, call(name="pick"))
    assert only(happened, ev.ToolCallRequested).handler == "client"
    [turn] = session.state.control.turns
    assert status(session.state, turn) == "waiting"
    assert pending(session.state) == []


@pytest.mark.parametrize(
    ("how", "said"),
    [({"result": "blue"}, "blue"), ({"error": "closed"}, "closed")],
    ids=["tool.result", "tool.error"],
)
def test_8_client_tool_ends_by_an_input(how: dict[str, Any], said: str) -> None:
    """The client may do that: the call is its own."""
    session = picking()
    session.do(cmd.SettleCall(call_id="c1", caller="client", **how))
    assert read(session) == {"c1": said}
    assert session.model_call.attempt == 1


def test_8_client_tool_ends_by_a_tool_message_in_a_view_of_its_path() -> None:
    """Recorded once, under the id that the view gives."""
    session = picking()
    answer = ToolMessage(id="t1", tool_call_id="c1", content="blue")
    session.do(view(*session.path, answer))
    assert read(session) == {"c1": "blue"}
    assert "t1" in session.state.tree


def test_8_client_tool_is_not_ended_by_a_view_of_another_path() -> None:
    """The branch was left: its call stays open."""
    session = picking()
    path = leave(session)
    answer = ToolMessage(id="t1", tool_call_id="c1", content="blue")
    session.do(view(*session.path, answer))
    assert attempts(session) == {"c1": 0}
    session.reply("again")
    session.do(view(*path, answer))
    assert read(session) == {"c1": "blue"}


@pytest.mark.parametrize("name", ["own", "send"])
def test_8_a_client_may_end_client_calls_only(name: str) -> None:
    """Neither by an input nor by a message that it makes up."""
    session = Session(agent(worker_tool(), tool("send"), wants=frozenset({"tool.execute"})))
    session.say(client=PICK)
    session.reply(None, call(name=name))
    if name == "own":
        session.answer()
    with pytest.raises(Forbidden):
        session.do(cmd.SettleCall(call_id="c1", result="forged"))
    invented = ToolMessage(id="t1", tool_call_id="c1", content="forged")
    assert session.do(view(*session.path, invented)) == []
    assert session.state.call("c1") is not None
