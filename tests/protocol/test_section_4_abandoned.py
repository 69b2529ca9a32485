"""Parked turns that wait for nothing any more. Source: `protocol.md` section 4."""

from dataclasses import replace

import pytest

from engine.core import commands as cmd
from engine.core.pending import pending
from tests.core.given import names, paused, user, view
from tests.protocol.given import (
    SEND,
    answer,
    error_of,
    new_ids,
    picking,
    recorded,
    restart,
    results,
    roles,
    the_turn,
    turn_of,
)
from tests.protocol.situations import leave, unstarted, working_twice

LIVES = pytest.mark.parametrize("life", ["one process", "restarted"])

# ------------------------------------------------------------------ abandoned


@LIVES
@pytest.mark.parametrize("answered", ["approved", "declined", "given up"])
def test_4_parked_turn_whose_last_question_is_cleared_is_abandoned(
    answered: str, life: str
) -> None:
    """In that commit; what was approved does not run, and its call ends as in a cancel."""
    session = paused()
    turn, path = leave(session)
    session.reply("instead")
    if life == "restarted":
        restart(session)
    head = session.state.control.head
    payload = answered == "approved"
    happened = session.resume(payload, cancelled=answered == "given up")
    assert names(happened)[0] == "session.interrupt_resumed"
    assert names(happened)[-1] == "turn.completed"
    assert error_of(session, turn) == "abandoned"
    assert "call.started" not in names(happened)
    assert "decision.requested" not in names(happened)
    assert session.state.control.head == head
    assert recorded(happened)[0][1] == path[-1].id


def test_4_parked_turn_whose_last_frontend_call_ends_is_abandoned() -> None:
    """No model is called for a branch that nobody uses."""
    session = picking()
    turn, _ = leave(session)
    session.reply("instead")
    happened = session.do(cmd.SettleCall(call_id="c1", result="blue"))
    assert names(happened)[0] == "tool.call.completed"
    assert "llm.call.requested" not in names(happened)
    assert error_of(session, turn) == "abandoned"


def test_4_parked_turn_that_waits_for_more_stays() -> None:
    """One of two questions, one of two calls, a question beside a call."""
    session = paused()
    session.do(cmd.RaiseInterrupt(reason="more", interrupt_id="i2"))
    turn, _ = leave(session)
    assert names(session.resume(True)) == ["session.interrupt_resumed"]
    assert session.state.is_parked(turn)

    session = picking(replace(SEND, id="c2", name="pick"))
    turn, _ = leave(session)
    session.do(cmd.SettleCall(call_id="c1", result="blue"))
    assert session.state.is_parked(turn)

    session = picking()
    session.do(cmd.RaiseInterrupt(reason="more", interrupt_id="i2"))
    turn, _ = leave(session)
    session.resume(True, interrupt_id="i2")
    assert session.state.is_parked(turn)


def test_4_parked_turn_that_is_abandoned_ends_its_calls_as_a_cancel() -> None:
    """The tool that runs is stopped, and each call of the branch has a result there."""
    session = working_twice()
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    turn, path = leave(session)
    session.reply("instead")
    happened = session.resume(True)
    assert names(happened).count("tool.call.errored") == 2
    end = new_ids(happened)[-1]
    branch_now = [n.message for n in session.state.tree.path(end)]
    assert branch_now[: len(path)] == path
    stopped = "cancelled: the turn ended"
    assert sorted(results(branch_now)) == [("c1", stopped), ("c2", stopped)]
    assert error_of(session, turn) == "abandoned"
    assert [work for work in pending(session.state) if work.kind == "tool"] == []


def test_4_parked_turn_is_abandoned_while_another_runs() -> None:
    """The active branch notices nothing."""
    session = paused()
    turn, _ = leave(session)
    running = the_turn(session).id
    head = session.state.control.head
    session.resume(True)
    assert error_of(session, turn) == "abandoned"
    assert (the_turn(session).id, session.state.control.head) == (running, head)
    assert "turn.completed" in names(session.reply("instead"))


def test_4_parked_turn_is_abandoned_by_the_view_that_leaves_it() -> None:
    """The question is given up with the edit: one turn ends, one starts."""
    session = paused()
    turn = the_turn(session).id
    given_up = answer(session.state.control.interrupts[0].id, cancelled=True)
    happened = session.do(view(user("edit"), answers=(given_up,)))
    assert error_of(session, turn) == "abandoned"
    assert names(happened).count("turn.started") == 1
    assert turn_of(session) == the_turn(session).id


def test_4_parked_turn_is_abandoned_when_its_question_expires() -> None:
    """Nobody has to say anything for that."""
    session = paused(expiresAt="2026-01-01T01:00:00Z")
    turn, _ = leave(session)
    session.reply("instead")
    session.wait(hours=2)
    session.do(cmd.PassTime())
    assert error_of(session, turn) == "abandoned"


def test_4_parked_turn_is_not_abandoned_while_it_comes_back() -> None:
    """The answer and its branch in one request: it runs."""
    session = paused()
    turn, path = leave(session)
    session.reply("instead")
    question = session.state.control.interrupts[0].id
    happened = session.do(view(*path, answers=(answer(question),)))
    assert "call.started" in names(happened)
    assert the_turn(session).id == turn


def test_4_parked_turn_that_was_abandoned_leaves_a_branch_that_can_be_used() -> None:
    """A view of it starts a new turn there; the model is sent a valid transcript."""
    session = paused()
    turn, path = leave(session)
    session.reply("instead")
    session.resume(True)
    happened = session.do(view(*path, user("u2")))
    assert names(happened)[:2] == ["head.moved", "turn.started"]
    assert roles(session.path) == ["user", "assistant", "tool", "user"]
    assert the_turn(session).id != turn


def test_4_parked_turn_of_a_worker_that_recorded_an_unstarted_call() -> None:
    """The call has no end yet and gets one, on its branch."""
    session = unstarted()
    turn, _ = leave(session)
    session.resume(True)
    assert error_of(session, turn) == "abandoned"
    [end] = session.state.tree.children("x")
    assert results([end.message]) == [("c1", "cancelled: the turn ended")]
