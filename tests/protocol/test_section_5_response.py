"""What a worker may answer, and how it is applied: whole or not at all.

Source: `protocol.md` section 5, from "The response" to "A response is applied".
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.calls import OUTCOME_UNKNOWN
from engine.core.env import DECISION
from engine.core.errors import InvalidResponse
from engine.core.messages import SystemMessage
from engine.core.worker import (
    Action,
    CallModel,
    CallTool,
    Done,
    Error,
    GiveError,
    GiveResult,
    Interrupt,
    RetryOverride,
    RunTool,
    ToolExecute,
)
from engine.store.codec import parse_response
from tests.core.given import Session, agent, names, respond, tool, user
from tests.protocol.calls import (
    attempts,
    call,
    come_back,
    gating,
    hold,
    leave,
    only,
    questions,
    read,
    recorded,
    running_own,
    take,
    told,
    worker_tool,
)

INPUT = frozenset({"client.messages"})


def asked(**more: Any) -> Session:
    """A worker that is asked about a person's first message."""
    session = Session(agent(wants=INPUT, **more))
    session.say()
    return session


def next_turn(session: Session) -> None:
    """The turn goes on to its end, and the person says more: the worker is asked again."""
    session.reply()
    session.say("u2")


# ------------------------------------------------------------------- the fields


def test_5_response_empty_writes_nothing() -> None:
    """`{}` is an answer: it records no message, and the turn that is left idle ends."""
    session = asked()
    assert names(session.answer()) == ["decision.completed", "turn.completed"]
    assert session.path == []


def test_5_response_messages_are_recorded_on_the_active_path() -> None:
    """In their order, below the head."""
    session = asked()
    note = SystemMessage(id="n1", content="note")
    session.answer(CallModel(), messages=[user("u1"), note])
    assert [m.id for m in session.path] == ["u1", "n1"]


def test_5_response_messages_go_before_everything_else() -> None:
    """Values and actions stand behind them in the log, and hang below the last of them."""
    session = asked()
    happened = session.answer(
        CallModel(), messages=[user("u1")], state={"n": 1}, shared_state={"m": 1}
    )
    assert names(happened) == [
        "decision.completed",
        "message.new",
        "state.updated",
        "shared_state.updated",
        "llm.call.requested",
    ]
    assert only(happened, ev.StateUpdated).anchor == "u1"
    assert only(happened, ev.LlmCallRequested).anchor == "u1"


@pytest.mark.parametrize("value", [{"n": 1}, [1], "text", 7, 0, "", False, []], ids=repr)
def test_5_response_state_replaces(value: object) -> None:
    """Any JSON value takes the place of what was there, also one that Python finds empty."""
    session = asked()
    session.answer(CallModel(), messages=[user("u1")], state={"old": True})
    next_turn(session)
    session.answer(CallModel(), messages=[user("u2")], state=value)
    assert session.state.control.state == value
    assert session.state.control.state is not None


def test_5_response_state_empty_clears() -> None:
    """After `{}` the worker reads what it reads when nothing was ever written."""
    session = asked()
    session.answer(CallModel(), messages=[user("u1")], state={"n": 1})
    next_turn(session)
    session.answer(CallModel(), messages=[user("u2")], state={})
    session.reply()
    session.say("u3")
    assert told(session).state is None


def test_5_response_state_omitted_or_null_keeps() -> None:
    """A response that does not speak of the state leaves it."""
    session = asked()
    session.answer(CallModel(), messages=[user("u1")], state={"n": 1})
    next_turn(session)
    happened = session.answer(CallModel(), messages=[user("u2")], state=None)
    assert "state.updated" not in names(happened)
    assert session.state.control.state == {"n": 1}


@pytest.mark.parametrize("value", [{"n": 1}, [1], 0, ""], ids=repr)
def test_5_response_shared_state_replaces(value: object) -> None:
    """The state that clients are shown is replaced whole."""
    session = asked()
    session.answer(CallModel(), messages=[user("u1")], shared_state={"old": True})
    next_turn(session)
    session.answer(CallModel(), messages=[user("u2")], shared_state=value)
    assert session.state.control.shared_state == value


def test_5_response_shared_state_empty_clears_and_omitted_keeps() -> None:
    """The same rule as for the worker's own state."""
    session = asked()
    session.answer(CallModel(), messages=[user("u1")], shared_state={"n": 1})
    next_turn(session)
    session.answer(CallModel(), messages=[user("u2")])
    assert session.state.control.shared_state == {"n": 1}
    session.reply()
    session.say("u3")
    session.answer(CallModel(), messages=[user("u3")], shared_state={})
    assert not session.state.control.shared_state


def test_5_response_agent_changes_the_config_of_the_branch() -> None:
    """The next model call uses it."""
    session = asked()
    session.answer(CallModel(), messages=[user("u1")], agent={"model": "m2", "system": "be brief"})
    assert (session.model_call.model, session.model_call.system) == ("m2", "be brief")


# ------------------------------------------- whose time, and who decides on what


def test_5_own_tool_has_the_tools_time_and_attempts() -> None:
    """Being asked to run one's own tool is running it: 120 seconds, once."""
    session = running_own()
    assert session.out.deadline == session.now + timedelta(seconds=120)
    session.wait(seconds=120)
    session.do(cmd.PassTime())
    assert session.state.call("c1") is None
    assert "c1" in read(session)


def test_5_own_tool_with_attempts_left_is_asked_again() -> None:
    """The tool's policy says how often; the call is the same."""
    session = running_own(worker_tool(attempts=2))
    session.wait(seconds=120)
    session.do(cmd.PassTime())
    assert isinstance(session.trigger, ToolExecute)
    trigger = told(session).trigger
    assert isinstance(trigger, ToolExecute)
    assert (trigger.id, trigger.attempt) == ("c1", 2)


def test_5_own_tool_out_at_a_crash_ends_with_outcome_unknown() -> None:
    """No attempt is left: it is not run again, and the model is told."""
    session = running_own()
    session.do(cmd.Recover())
    assert read(session) == {"c1": OUTCOME_UNKNOWN}
    assert session.model_call.attempt == 1


def test_5_own_tool_out_at_a_crash_is_not_run_again_after_a_pause() -> None:
    """That somebody had paused the branch does not give the tool another attempt."""
    session = running_own()
    hold(session)
    session.do(cmd.Recover())
    happened = session.resume(True, "hold")
    assert "decision.requested" not in names(happened)
    assert read(session) == {"c1": OUTCOME_UNKNOWN}


def test_5_own_tool_that_lapsed_while_paused_is_not_run_again() -> None:
    """Its one attempt was used, whoever paused the branch meanwhile."""
    session = running_own()
    hold(session)
    session.wait(seconds=120)
    session.do(cmd.PassTime())
    assert "decision.requested" not in names(session.resume(True, "hold"))
    assert session.state.call("c1") is None


def test_5_own_tool_of_a_branch_that_was_left_goes_on() -> None:
    """A running call is recorded when it ends, and is not begun a second time."""
    session = running_own()
    decision = session.out
    hold(session)
    path = leave(session)
    result = respond(GiveResult(result="done"))
    session.do(cmd.AnswerDecision(decision_id=decision.id, attempt=1, response=result))
    come_back(session, path)
    assert "decision.requested" not in names(session.resume(True, "hold"))
    assert read(session) == {"c1": "done"}


def test_5_gating_a_function_tool_is_an_ordinary_decision() -> None:
    """Its time is a decision's, and at a crash it is asked again."""
    session = gating()
    assert session.out.deadline == session.now + DECISION.run
    session.do(cmd.Recover())
    assert (session.out.attempt, attempts(session)) == (2, {"c1": 0})


def test_5_triggers_the_worker_does_not_want_are_the_engines() -> None:
    """They are decided inside the commit at hand, and leave no decision in the log."""
    session = gating()
    assert session.trigger.type == "tool.execute"
    kinds = [b.trigger.type for b in recorded(session, ev.DecisionRequested)]
    assert kinds == ["tool.execute"]
    assert recorded(session, ev.DecisionWaiting) == []


def test_5_an_agent_without_a_worker_takes_every_proposal() -> None:
    """Nobody is asked, and the turn runs to its end."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, call())
    session.finish("c1")
    session.reply("done")
    assert recorded(session, ev.DecisionRequested) == []
    assert session.state.control.turns == ()


# ---------------------------------------------------------- whole or not at all

REFUSED: list[tuple[tuple[Action, ...], str]] = [
    ((GiveResult(id="nobody", result="x"),), "actions[0].id"),
    ((RunTool(), RunTool()), "actions[1]"),
    ((GiveError(id="c1", error="x", attempt=7),), "actions[0].attempt"),
    ((Interrupt(reason=""),), "actions[0].reason"),
    ((Interrupt(reason="r"), CallModel()), "actions[1]"),
    ((Interrupt(reason="r"), Done()), "actions[1]"),
    ((Interrupt(reason="a"), Interrupt(reason="b")), "actions[1]"),
    ((CallTool(name="send", id="c1"),), "actions[0].id"),
    ((Interrupt(reason="r", payload={"expiresAt": "soon"}),), "actions[0].payload.expiresAt"),
    ((CallModel(retry=RetryOverride(attempts=0)),), "actions[0].retry.attempts"),
]


@pytest.mark.parametrize(
    ("actions", "field"),
    REFUSED,
    ids=[
        "call not open",
        "call has started",
        "another attempt",
        "no reason",
        "llm.call beside an interrupt",
        "done beside an interrupt",
        "two interrupts for one call",
        "call id in use",
        "expiry",
        "retry",
    ],
)
def test_5_a_response_that_breaks_a_rule_is_refused_whole(
    actions: tuple[Action, ...], field: str
) -> None:
    """Nothing of it is applied, the error names the field, and the worker is asked again."""
    session = gating()
    decision = session.out
    before, ran = session.state, attempts(session)
    happened = session.answer(*actions, messages=[user("note")], state={"n": 1})

    [errored] = happened
    assert isinstance(errored, ev.DecisionErrored)
    assert errored.decision_id == decision.id
    assert errored.error.message.startswith(field)
    assert len(session.state.tree) == len(before.tree)
    assert session.state.control.state is None
    assert attempts(session) == ran
    assert questions(session) == []
    assert (session.out.id, session.out.attempt) == (decision.id, 2)


@pytest.mark.parametrize(
    ("response", "field"),
    [
        ({"actions": [{"type": "explode"}]}, "actions[0]"),
        ({"actions": [{"type": "interrupt"}]}, "actions[0].reason"),
        ({"actions": "done"}, "actions"),
        ({"messages": [{"role": "king", "id": "m", "content": "x"}]}, "messages[0]"),
        ({"answer": 42}, "answer"),
        (None, "response"),
        (7, "response"),
    ],
    ids=[
        "unknown action",
        "field missing",
        "no list",
        "unknown role",
        "unknown field",
        "None",
        "7",
    ],
)
def test_5_a_malformed_response_names_the_field(response: object, field: str) -> None:
    """What cannot be read is refused where it is read."""
    with pytest.raises(InvalidResponse) as refused:
        parse_response(response)
    assert refused.value.field.startswith(field)


def test_5_a_message_that_is_recorded_already_is_refused() -> None:
    """A known id cannot be recorded again."""
    session = asked()
    session.answer(CallModel(), messages=[user("u1")])
    next_turn(session)
    [errored] = session.answer(CallModel(), messages=[user("u1")])
    assert isinstance(errored, ev.DecisionErrored)
    assert errored.error.message.startswith("messages[0]")


def test_5_when_attempts_run_out_the_turn_completes_with_worker_error() -> None:
    """A worker that never gives a valid answer ends the turn, not the session."""
    session = gating(decision_retry=replace(DECISION, attempts=3))
    for _ in range(2):
        assert names(session.answer(Interrupt(reason=""))) == ["decision.errored"]
    happened = session.answer(Interrupt(reason=""))
    error = only(happened, ev.TurnCompleted).error
    assert error is not None
    assert error.code == "worker_error"
    session.say("u2")
    assert session.model_call.attempt == 1


def test_5_an_error_that_would_come_again_is_not_asked_again() -> None:
    """A failure that is not retryable is the last."""
    session = asked()
    failed = Error(code="worker_error", message="KeyError: 'x'")
    happened = session.do(cmd.FailDecision(decision_id=session.out.id, attempt=1, error=failed))
    assert only(happened, ev.DecisionErrored).retry is None
    assert "turn.completed" in names(happened)


def test_5_an_answer_to_a_decision_that_was_made_is_ignored() -> None:
    """The first answer counts."""
    session = asked()
    decision = session.out
    take(session)
    again = cmd.AnswerDecision(decision_id=decision.id, attempt=1, response=respond(Done()))
    assert session.do(again) == []
