"""Leaving a branch that waits, and coming back (`protocol.md` 3, 4 and 6)."""

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import SessionInterrupted, TurnAlreadyActive
from engine.core.messages import ToolCall, ToolMessage
from engine.core.pending import pending
from engine.core.status import active_turn, status
from engine.core.worker import Interrupt
from tests.core.given import Session, agent, names, paused, tool, user, view

PICK = cmd.ClientContext(tools=({"name": "pick", "description": ""},))


def left() -> Session:
    """A paused branch that the client has left by an edit; the new branch's turn is over."""
    session = paused(message="Send?")
    session.do(view(user("edit")))
    session.reply("instead")
    return session


def test_an_edit_above_the_anchor_leaves_the_question_open() -> None:
    """The rest of the tree stays live: a new turn runs, the old one is parked."""
    session = paused()
    [old] = session.state.control.turns
    happened = session.do(view(user("edit")))

    assert names(happened) == [
        "turn.parked",
        "head.moved",
        "turn.started",
        "message.new",
        "llm.call.requested",
    ]
    assert len(session.state.control.interrupts) == 1
    assert status(session.state, session.state.control.turns[0]) == "parked"
    assert active_turn(session.state) is not None
    assert session.state.end_of(old.id) != session.state.control.head


def test_coming_back_finds_it_paused_again() -> None:
    """On a message of the parked turn, with nothing new: its branch is active again."""
    session = paused()
    old = session.path
    [turn] = session.state.control.turns
    session.do(view(user("edit")))
    session.reply("instead")
    happened = session.do(view(*old[:1], *old[1:]))

    assert names(happened) == ["head.moved"]
    assert [m.id for m in session.path] == [m.id for m in old]
    assert active_turn(session.state) == session.state.turn(turn.id)
    with pytest.raises(SessionInterrupted):
        session.do(view(*old, user("more")))


def test_an_answer_with_its_branch_brings_it_back_and_runs() -> None:
    """Case 17a: one request, while the server's head is on another branch."""
    session = paused()
    old = session.path
    [interrupt] = session.state.control.interrupts
    session.do(view(user("edit")))
    session.reply("instead")
    answer = cmd.Answer(interrupt_id=interrupt.id, payload=True)
    happened = session.do(view(*old, answers=(answer,)))

    assert names(happened) == ["head.moved", "session.interrupt_resumed", "call.started"]


def test_an_answer_alone_finds_its_branch() -> None:
    """An empty view that names an open interrupt lands on that branch."""
    session = left()
    [interrupt] = session.state.control.interrupts
    answer = cmd.Answer(interrupt_id=interrupt.id, payload=True)
    assert "call.started" in names(session.do(view(answers=(answer,))))


def test_what_is_approved_on_a_branch_nobody_uses_never_runs() -> None:
    """Cleared there, it sends nothing; the parked turn waits for nothing: abandoned."""
    session = left()
    [turn] = session.state.control.turns
    head = session.state.control.head
    happened = session.resume(True)

    assert names(happened) == [
        "session.interrupt_resumed",
        "tool.call.errored",
        "message.new",
        "turn.completed",
    ]
    completed = happened[-1]
    assert isinstance(completed, ev.TurnCompleted)
    assert completed.error is not None
    assert completed.error.code == "abandoned"
    assert session.state.control.head == head
    assert session.state.turn(turn.id) is None


def test_a_second_question_keeps_the_parked_turn() -> None:
    """It still waits for somebody."""
    session = paused()
    session.do(cmd.RaiseInterrupt(reason="another"))
    session.do(view(user("edit")))
    session.reply("instead")
    assert names(session.resume(True)) == ["session.interrupt_resumed"]
    assert len(session.state.control.turns) == 1


def test_giving_up_with_the_edit_starts_one_turn() -> None:
    """`cancelled` for a branch that is left in the same request: abandoned, and the edit runs."""
    session = paused()
    [interrupt] = session.state.control.interrupts
    answer = cmd.Answer(interrupt_id=interrupt.id, cancelled=True)
    happened = session.do(view(user("edit"), answers=(answer,)))

    assert names(happened).count("turn.started") == 1
    assert names(happened).count("turn.completed") == 1
    assert session.path[-1].id == "edit"


def test_tools_of_a_parked_turn_go_on_and_their_decisions_wait() -> None:
    """They are recorded; nobody else waits for them; coming back they go out."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, ToolCall(id="c1", name="send", arguments='{"to": "a"}'))
    session.do(cmd.RaiseInterrupt(reason="hold"))
    old = session.path
    session.do(view(user("edit")))
    assert names(session.finish("c1")) == ["tool.call.completed", "decision.waiting"]
    assert names(session.reply("instead"))[-1] == "turn.completed"

    session.do(view(*old))
    happened = names(session.resume(True))
    assert "llm.call.requested" in happened
    assert any(isinstance(m, ToolMessage) for m in session.path)


def test_a_decision_that_is_out_is_asked_again_when_the_branch_is_back() -> None:
    """Leaving puts it back in line; its late answer is ignored."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say("u1")
    session.reply(None, ToolCall(id="c1", name="send", arguments='{"to": "a"}'))
    decision = session.out
    session.do(cmd.RaiseInterrupt(reason="hold"))
    old = session.path
    happened = session.do(view(user("edit")))
    assert names(happened)[:3] == ["decision.waiting", "turn.parked", "head.moved"]
    assert not [work for work in pending(session.state) if work.kind == "decision"]
    late = cmd.AnswerDecision(decision_id=decision.id, attempt=1, response=cmd.DecisionResponse())
    assert session.do(late) == []

    session.reply("instead")
    session.do(view(*old))
    assert "decision.requested" in names(session.resume(True))
    assert session.out.id == decision.id


def test_waiting_for_a_frontend_tool_can_be_left_too() -> None:
    """An edit while a client call is open parks its turn; its answer alone ends it abandoned."""
    session = Session()
    session.do(view(user("u1"), client=PICK))
    session.reply(None, ToolCall(id="c1", name="pick"))
    assert names(session.do(view(user("edit"), client=PICK)))[0] == "turn.parked"
    session.reply("instead")
    assert len(session.state.control.turns) == 1


def test_an_interrupt_without_an_anchor_pauses_every_branch() -> None:
    """Raised before any message, or by the system: none can be left."""
    session = Session()
    session.say("u1")
    session.reply("hi")
    session.do(cmd.RaiseInterrupt(reason="budget", caller="system"))
    with pytest.raises(SessionInterrupted):
        session.do(view(user("edit")))
    assert session.path[-1].role == "assistant"


def test_a_regenerated_reply_that_asks_does_not_pause_the_old_one() -> None:
    """Case 17i: what stands below the anchor and is older than the question stays live."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply("old")
    old = session.path
    session.do(view(user("u1")))
    session.do(cmd.RaiseInterrupt(reason="hold"))
    assert session.state.control.interrupts[0].anchor == "u1"

    session.do(view(*old))
    assert "turn.started" in names(session.do(view(*old, user("u2"))))


def test_the_running_turn_is_not_left() -> None:
    """Rule 5: only a turn that is paused or waits can be."""
    session = left()
    session.say("u9")
    with pytest.raises(TurnAlreadyActive):
        session.do(view(user("u1")))


def test_a_cancel_ends_parked_turns_too() -> None:
    """In one commit; results on the branch of their call; the head does not move."""
    session = left()
    head = session.state.control.head
    happened = names(session.do(cmd.CancelSession()))
    assert happened == [
        "tool.call.errored",
        "message.new",
        "session.interrupt_resumed",
        "turn.completed",
    ]
    assert session.state.control.head == head
    assert session.state.control.turns == ()


def test_several_questions_on_several_branches() -> None:
    """Each keeps its own; answering one leaves the other."""
    session = paused()
    first = session.state.control.interrupts[0].id
    session.do(view(user("edit")))
    session.reply(None, ToolCall(id="c2", name="send", arguments='{"to": "b"}'))
    session.answer(Interrupt(reason="confirm"))
    second = session.state.control.interrupts[1].id
    assert [i.tool_call_id for i in session.state.control.interrupts] == ["c1", "c2"]

    assert "call.started" in names(session.resume(True, interrupt_id=second))
    assert session.state.interrupt(first) is not None


def test_giving_up_what_pauses_every_branch_lets_the_edit_go() -> None:
    """The answer in the same request frees the path; the turn that is left is over."""
    session = Session()
    session.say("u1")
    session.do(cmd.RaiseInterrupt(reason="everything", caller="system"))
    [interrupt] = session.state.control.interrupts
    answer = cmd.Answer(interrupt_id=interrupt.id, cancelled=True)
    happened = names(session.do(view(user("edit"), answers=(answer,))))

    assert happened.count("turn.completed") == 1
    assert happened.count("turn.started") == 1
    assert session.state.control.interrupts == ()


def test_a_turn_that_has_recorded_nothing_comes_back_too() -> None:
    """Another reply was wished for and asked a question first: its branch ends on old ground."""
    session = Session()
    session.say("u1")
    session.reply("old")
    old = session.path
    session.do(view(user("u1")))
    turn = active_turn(session.state)
    session.do(cmd.RaiseInterrupt(reason="hold"))
    assert names(session.do(view(*old))) == ["turn.parked", "head.moved"]

    assert names(session.do(view(user("u1")))) == ["head.moved"]
    back = active_turn(session.state)
    assert turn is not None
    assert back is not None
    assert back.id == turn.id
    assert names(session.resume(True)) == ["session.interrupt_resumed", "llm.call.requested"]
