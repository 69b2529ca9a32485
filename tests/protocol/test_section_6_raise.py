"""Raising an interrupt: by whom, which call it holds, where it hangs, and what it stops.

Source: `protocol.md` section 6, from "Raise" to "On raising".
"""

from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import CallNotOpen, InvalidInput, SessionInterrupted
from engine.core.interrupts import is_paused, pausing
from engine.core.messages import AssistantMessage, SystemMessage
from engine.core.pending import pending
from engine.core.worker import CallModel, GiveResult, Interrupt, RunTool, ToolExecute
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.calls import (
    approving,
    attempts,
    call,
    come_back,
    gating,
    hold,
    only,
    questions,
    recorded,
    started,
    told,
    worker_tool,
)

GATE = frozenset({"tool.execute"})


def question(interrupt_id: str = "q", **more: Any) -> Interrupt:
    """What a worker asks a person."""
    return Interrupt(reason="confirm", interrupt_id=interrupt_id, **more)


def asked(**more: Any) -> Session:
    """A worker that is asked about a person's first message."""
    session = Session(agent(wants=frozenset({"client.messages"}), **more))
    session.say()
    return session


# ------------------------------------------------------------------------ raise


def test_6_raise_by_a_worker_several_in_one_response() -> None:
    """Three parallel calls, three questions, each with its own call."""
    session = Session(agent(tool("send"), wants=frozenset({"llm.finished"})))
    session.say()
    session.reply(None, call("c1"), call("c2"), call("c3"))
    asks = [question(f"q{n}", payload={"toolCallId": f"c{n}"}) for n in (1, 2, 3)]
    proposal = told(session).proposed
    session.answer(*proposal.actions, *asks, messages=proposal.messages)
    held = [(i.id, i.tool_call_id) for i in session.state.control.interrupts]
    assert held == [("q1", "c1"), ("q2", "c2"), ("q3", "c3")]


def test_6_raise_at_most_one_per_call_in_a_response() -> None:
    """Also when one of them names the call and the other is about it anyway."""
    session = gating()
    named = question("q1", payload={"toolCallId": "c1"})
    assert names(session.answer(named, question("q2"))) == ["decision.errored"]
    assert questions(session) == []


def test_6_raise_by_the_engine_for_an_approval() -> None:
    """Its origin says so."""
    [raised] = approving().state.control.interrupts
    assert raised.origin == "engine"


@pytest.mark.parametrize("caller", ["client", "machine"])
def test_6_raise_by_a_client_or_a_backend(caller: Any) -> None:
    """From outside, at the head of the active branch."""
    session = Session()
    session.say()
    [raised, _] = hold(session, caller=caller)
    assert isinstance(raised, ev.SessionInterrupted)
    assert (raised.origin, raised.anchor) == (caller, "u1")


def test_6_reason_is_required_and_not_empty() -> None:
    """A client is refused, and a worker is asked again."""
    session = Session()
    with pytest.raises(InvalidInput) as refused:
        session.do(cmd.RaiseInterrupt(reason=""))
    assert refused.value.field == "reason"
    [errored] = asked().answer(Interrupt(reason=""))
    assert isinstance(errored, ev.DecisionErrored)


def test_6_the_engine_mints_an_id_when_there_is_none() -> None:
    """Two questions without an id have different ones."""
    session = asked()
    session.answer(Interrupt(reason="a"), Interrupt(reason="b"))
    first, second = questions(session)
    assert first
    assert second
    assert first != second


@pytest.mark.parametrize("how", ["answered", "open", "twice in a response"])
def test_6_an_id_that_was_ever_used_is_replaced(how: str) -> None:
    """A late click on the old question must not answer the new one; the decision says which."""
    session = asked()
    asks = (question(), question()) if how == "twice in a response" else (question(),)
    if how != "twice in a response":
        hold(session, "q", caller="machine")
    if how == "answered":
        session.resume(True, "q")
    happened = session.answer(*asks)
    completed = only(happened, ev.DecisionCompleted)
    fresh = questions(session)[-1]
    assert fresh != "q"
    assert completed.replaced_ids == {"q": fresh}


def test_6_an_id_that_was_used_is_replaced_also_when_the_question_was_held() -> None:
    """What a worker asked while somebody had paused the branch is asked later, as said."""
    session = Session(agent(tool("send"), wants=frozenset({"llm.finished"})))
    hold(session, "q")
    session.resume(True, "q")
    session.say()
    session.reply(None, call())
    hold(session)
    proposal = told(session).proposed
    held = question(payload={"toolCallId": "c1"})
    session.answer(*proposal.actions, held, messages=proposal.messages)
    session.resume(True, "hold")

    [fresh] = questions(session)
    assert fresh != "q"
    said = [b.replaced_ids for b in recorded(session, ev.DecisionCompleted) if b.replaced_ids]
    assert said == [{"q": fresh}]


def test_6_answer_by_is_client_unless_the_raiser_says_machine() -> None:
    """Both are recorded."""
    session = asked()
    session.answer(question("q1"), question("q2", answer_by="machine"))
    assert [i.answer_by for i in session.state.control.interrupts] == ["client", "machine"]


# -------------------------------------------------------------------- held call


def test_6_held_call_named_by_payload() -> None:
    """Asked about one call, a worker may hold another that is open."""
    session = gating(call(), call("c2"))
    session.answer(question(payload={"toolCallId": "c2"}))
    assert session.state.control.interrupts[0].tool_call_id == "c2"


def test_6_held_call_is_the_one_that_is_asked_about() -> None:
    """When the payload names none."""
    session = gating()
    session.answer(question())
    assert session.state.control.interrupts[0].tool_call_id == "c1"


def test_6_held_call_named_by_payload_must_be_open() -> None:
    """A name of nothing leaves the call that is asked about."""
    session = gating()
    session.answer(question(payload={"toolCallId": "nobody"}))
    assert session.state.control.interrupts[0].tool_call_id == "c1"


def test_6_held_call_named_by_payload_of_a_client() -> None:
    """Whoever raises it: the call that runs is held from then on."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, call())
    hold(session, payload={"toolCallId": "c1"})
    assert session.state.control.interrupts[0].tool_call_id == "c1"


def test_6_held_call_is_inherited_from_the_interrupt_that_was_answered() -> None:
    """Asking again, in answer to `interrupt.resumed`, is about the same call."""
    session = Session(agent(tool("send"), wants=GATE | {"interrupt.resumed"}))
    session.say()
    session.reply(None, call())
    session.answer(question())
    session.resume("who are you", "q")
    session.answer(question("q2"))
    assert session.state.control.interrupts[0].tool_call_id == "c1"


def test_6_held_calls_one_after_another() -> None:
    """Three parallel calls that need a person, each asked about as it comes up."""
    session = gating(call("c1"), call("c2"), call("c3"))
    ran: list[str] = []
    for number in (1, 2, 3):
        assert isinstance(session.trigger, ToolExecute)
        assert session.trigger.id == f"c{number}"
        session.answer(question(f"q{number}"))
        assert questions(session) == [f"q{number}"]
        ran += started(session.resume(True))
    assert ran == ["c1", "c2", "c3"]


# ----------------------------------------------------------------------- anchor


def test_6_anchor_is_the_last_message_of_the_response() -> None:
    """The messages are recorded first, then the interrupt."""
    session = asked()
    note = SystemMessage(id="n1", content="note")
    happened = session.answer(question(), messages=[user("u1"), note])
    assert names(happened)[1:] == ["message.new", "message.new", "session.interrupted"]
    assert session.state.control.interrupts[0].anchor == "n1"


def test_6_anchor_is_the_input_when_the_answer_to_it_has_no_messages() -> None:
    """The input itself is recorded first."""
    session = asked()
    session.answer(question())
    assert [m.id for m in session.path] == ["u1"]
    assert session.state.control.interrupts[0].anchor == "u1"


def test_6_anchor_is_none_before_any_message() -> None:
    """Every path is paused, also the one of the first message."""
    session = Session()
    hold(session)
    assert session.state.control.interrupts[0].anchor is None
    with pytest.raises(SessionInterrupted):
        session.say()


def test_6_anchor_is_none_when_the_system_raises() -> None:
    """No path can be taken instead, not even by an edit of the first message."""
    session = Session()
    session.say()
    hold(session, caller="system")
    assert session.state.control.interrupts[0].anchor is None
    with pytest.raises(SessionInterrupted):
        session.do(view(user("edit")))


def test_6_anchor_a_reply_that_was_already_there_stays_live() -> None:
    """Paused while another reply was made: the branch of the old reply is not."""
    session = Session()
    session.say()
    session.reply("old")
    old = session.path
    session.do(view(user("u1")))
    hold(session)
    assert is_paused(session.state)
    happened = session.do(view(*old, user("u2")))
    assert "turn.started" in names(happened)
    assert not is_paused(session.state)
    assert questions(session) == ["hold"]


def test_6_anchor_what_is_recorded_below_it_later_is_paused() -> None:
    """A worker's answer that came meanwhile does not free the path."""
    session = asked()
    session.answer(CallModel(), messages=[user("u1")])
    session.reply("one")
    session.say("u2")
    hold(session)
    anchor = session.state.control.interrupts[0].anchor
    session.answer(messages=[user("u2")])
    assert session.state.control.head == "u2"
    assert anchor != "u2"
    assert is_paused(session.state)


def test_6_several_may_be_open_on_one_branch_or_many() -> None:
    """Each pauses its own path."""
    session = gating()
    session.answer(question("q1"))
    hold(session, "q2")
    path = session.path
    session.do(view(user("edit")))
    session.reply(None, call("c2"))
    session.answer(question("q3"))
    assert [i.id for i in pausing(session.state)] == ["q3"]
    come_back(session, path)
    assert [i.id for i in pausing(session.state)] == ["q1", "q2"]


# ------------------------------------------------------------------- on raising


def test_6_on_raising_the_event_says_everything() -> None:
    """Who asks, why, with what, where, about which call, and who may answer."""
    session = gating()
    happened = session.answer(question(payload={"message": "Send?"}, answer_by="machine"))
    assert only(happened, ev.SessionInterrupted) == ev.SessionInterrupted(
        interrupt_id="q",
        origin="worker",
        reason="confirm",
        payload={"message": "Send?"},
        anchor=session.state.control.head,
        tool_call_id="c1",
        answer_by="machine",
    )


def test_6_on_raising_the_model_call_in_flight_is_voided() -> None:
    """In the same commit; its reply is refused, and nothing of it is recorded."""
    session = Session()
    session.say()
    made = session.model_call
    assert names(hold(session)) == ["session.interrupted", "call.voided"]
    late = AssistantMessage(id=made.message_id, content="late")
    with pytest.raises(CallNotOpen):
        session.do(cmd.FinishModelCall(call_id=made.id, attempt=1, message=late))
    assert [m.role for m in session.path] == ["user"]
    assert pending(session.state) == []


def test_6_on_raising_tools_that_started_go_on() -> None:
    """Also those of this branch, a function's and a worker's."""
    session = Session(agent(tool("send"), worker_tool(), wants=GATE))
    session.say()
    session.reply(None, call(), call("c2", "own"))
    session.answer(RunTool())
    hold(session)
    assert {work.kind for work in pending(session.state)} == {"tool", "decision"}
    session.finish("c1")
    session.answer(GiveResult(result="done"))
    assert attempts(session) == {}


def test_6_on_raising_calls_of_other_branches_go_on() -> None:
    """A tool of the branch that was left runs through a pause of this one."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, call())
    hold(session, "q1")
    session.do(view(user("edit")))
    hold(session, "q2")
    assert [work.id for work in pending(session.state)] == ["c1"]
    assert names(session.finish("c1")) == ["tool.call.completed", "decision.waiting"]


def test_6_on_raising_a_call_that_was_not_asked_about_has_not_started() -> None:
    """It waits, and is asked about when the branch is free."""
    session = gating(call(), call("c2"))
    session.answer(question())
    assert attempts(session) == {"c1": 0, "c2": 0}
    assert pending(session.state) == []
    session.resume(True, "q")
    assert isinstance(session.trigger, ToolExecute)
    assert session.trigger.id == "c2"
