"""Turns: from a client's input until the agent stops responding (`protocol.md` 4 and 7)."""

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import CallNotOpen, TurnAlreadyActive
from engine.core.messages import ToolCall, ToolMessage, transcript
from engine.core.worker import Done, Error, GiveResult
from tests.core.given import Session, agent, names, paused, tool, user, view

SEND = ToolCall(id="c1", name="send", arguments='{"to": "ada"}')


def test_a_plain_turn_is_two_commits() -> None:
    """Input accepted and the model called; then the reply recorded and the turn over."""
    session = Session()

    assert names(session.say()) == [
        "session.created",
        "turn.started",
        "message.new",
        "llm.call.requested",
    ]
    assert names(session.reply()) == ["llm.call.completed", "message.new", "turn.completed"]
    assert session.state.control.turns == ()


def test_every_event_of_a_turn_carries_its_id() -> None:
    """Only the birth of the session belongs to no turn."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, SEND)
    session.finish("c1")
    session.reply()

    [turn_id] = {event.turn_id for event in session.log[1:]}
    assert turn_id is not None
    assert session.log[0].turn_id is None


def test_the_second_turn_gets_an_id_of_its_own() -> None:
    """A turn that ended is never taken up again."""
    session = Session()
    session.say("u1")
    session.reply()
    session.say("u2")
    session.reply()

    started = [e.turn_id for e in session.log if isinstance(e.body, ev.TurnStarted)]
    completed = [e.turn_id for e in session.log if isinstance(e.body, ev.TurnCompleted)]
    assert len(set(started)) == 2
    assert started == completed


def test_input_during_a_turn_is_refused() -> None:
    """One running turn a session."""
    session = Session()
    session.say("u1")

    with pytest.raises(TurnAlreadyActive):
        session.say("u2")


def test_the_model_is_called_once_when_all_tools_have_ended() -> None:
    """Two calls of one reply run side by side; the model waits for both."""
    session = Session(agent(tool("send")))
    session.say()
    both = (SEND, ToolCall(id="c2", name="send", arguments='{"to": "bob"}'))
    assert names(session.reply(None, *both)).count("call.started") == 2

    assert "llm.call.requested" not in names(session.finish("c2"))
    assert "llm.call.requested" in names(session.finish("c1"))
    results = [m for m in transcript(session.path) if isinstance(m, ToolMessage)]
    assert [m.tool_call_id for m in results] == ["c1", "c2"]


def test_a_result_for_a_call_that_ended_is_refused() -> None:
    """A tool's second result changes nothing."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, SEND)
    session.finish("c1")

    with pytest.raises(CallNotOpen):
        session.do(cmd.FinishToolCall(call_id="c1", attempt=1, result="again"))


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("send", '{"to": ', "not JSON"),
        ("send", '{"to": 3}', "is not of type 'string'"),
        ("nobody", "{}", "there is no tool 'nobody'"),
    ],
    ids=["malformed", "invalid", "undeclared"],
)
def test_a_call_that_cannot_run_tells_the_model_why(name: str, arguments: str, said: str) -> None:
    """Arguments are judged before a tool runs; the model reads the error and goes on."""
    session = Session(agent(tool("send")))
    session.say()
    happened = session.reply(None, ToolCall(id="c1", name=name, arguments=arguments))

    assert "call.started" not in names(happened)
    assert "llm.call.requested" in names(happened)
    [result] = [m for m in session.path if isinstance(m, ToolMessage)]
    assert said in (result.error or "")


def test_the_error_of_the_last_model_call_is_the_turns() -> None:
    """A provider that fails for good ends the turn with its code."""
    session = Session()
    session.say()
    call = session.model_call
    error = Error(code="rate_limited", message="slow down")
    happened = session.do(cmd.FailCall(call_id=call.id, attempt=1, error=error))

    assert isinstance(happened[-1], ev.TurnCompleted)
    assert happened[-1].error == error


def test_done_ends_the_turn_with_its_data_and_closes_what_is_open() -> None:
    """`done {data}`: open tool calls get a result, so the transcript stays valid."""
    session = Session(agent(tool("own", handler="worker"), wants=frozenset({"llm.finished"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="own", arguments='{"to": "x"}'))
    trigger_message = session.out.trigger
    assert trigger_message.type == "llm.finished"
    happened = session.answer(Done(data={"n": 1}))

    assert isinstance(happened[-1], ev.TurnCompleted)
    assert happened[-1].data == {"n": 1}
    assert happened[-1].error is None


def test_an_answer_that_starts_nothing_ends_the_turn() -> None:
    """The agent has stopped responding: no turn is left hanging."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say()
    happened = session.answer()

    assert names(happened) == ["decision.completed", "turn.completed"]


def test_a_call_left_open_by_its_worker_keeps_the_turn_running() -> None:
    """An async tool: the turn waits, and goes on with the result."""
    session = Session(agent(tool("own", handler="worker"), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="own", arguments='{"to": "x"}'))
    assert names(session.answer()) == ["decision.completed", "call.started"]

    assert session.state.control.turns != ()


# ------------------------------------------------------------------- cancel


def test_cancelling_nothing_is_no_event() -> None:
    """A session with nothing open is not changed, however often it is cancelled."""
    session = Session()
    session.say()
    session.reply()

    assert session.do(cmd.CancelSession()) == []
    assert session.do(cmd.CancelSession()) == []


def test_a_cancel_stops_the_model_call_and_the_turn() -> None:
    """The call is voided, so its late reply is refused; the next message starts a new turn."""
    session = Session()
    session.say()
    call = session.model_call
    assert names(session.do(cmd.CancelSession())) == ["call.voided", "turn.completed"]

    with pytest.raises(CallNotOpen):
        session.do(cmd.FailCall(call_id=call.id, attempt=1, error=Error(code="x", message="late")))
    assert "turn.started" in names(session.do(view(user("u1"), user("u2"))))


def test_a_cancel_gives_every_tool_call_its_result() -> None:
    """Started or not: what the model reads next is valid."""
    session = paused()
    happened = session.do(cmd.CancelSession())

    assert names(happened) == [
        "tool.call.errored",
        "message.new",
        "session.interrupt_resumed",
        "turn.completed",
    ]
    [result] = [m for m in session.path if isinstance(m, ToolMessage)]
    assert result.content == "cancelled: the turn ended"
    assert session.state.control.interrupts == ()


def test_a_cancel_drops_the_decision_that_is_out() -> None:
    """Its answer, when it comes, is ignored."""
    session = Session(agent(wants=None))
    session.say()
    decision = session.out
    assert "decision.dropped" in names(session.do(cmd.CancelSession()))

    late = cmd.AnswerDecision(
        decision_id=decision.id,
        attempt=1,
        response=cmd.DecisionResponse(actions=(GiveResult(id="c1", result="x"),)),
    )
    assert session.do(late) == []


def test_a_cancel_drops_what_waits_outside_a_turn() -> None:
    """An answer whose trigger still waits sends nothing after the cancel."""
    session = Session(agent(wants=frozenset({"interrupt.resumed"})))
    session.do(cmd.RaiseInterrupt(reason="one"))
    session.do(cmd.RaiseInterrupt(reason="two"))
    session.resume(True)
    happened = names(session.do(cmd.CancelSession()))

    assert happened == ["decision.dropped", "session.interrupt_resumed"]
    assert session.state.control.decisions == ()


def test_a_result_that_came_while_paused_survives_a_cancel() -> None:
    """The tool ran: the model is told what it came to, not that it was cancelled."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(
        None,
        ToolCall(id="c1", name="send", arguments='{"to": "ada"}'),
        ToolCall(id="c2", name="send", arguments='{"to": "bob"}'),
    )
    session.do(cmd.RaiseInterrupt(reason="confirm"))
    session.finish("c1", "sent to ada")
    session.do(cmd.CancelSession())
    results = {m.tool_call_id: m.content for m in session.path if isinstance(m, ToolMessage)}
    assert results == {"c1": "sent to ada", "c2": "cancelled: the turn ended"}
