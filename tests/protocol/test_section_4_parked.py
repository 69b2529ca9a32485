"""Turns whose branch was left. Source: `protocol.md` section 4."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import TurnAlreadyActive
from engine.core.messages import ToolCall
from engine.core.pending import pending
from engine.core.status import active_turn, status
from engine.core.worker import CallModel, Done, Error, Interrupt, RunTool
from tests.core.given import Session, agent, names, paused, tool, user, view
from tests.protocol.given import (
    CHOOSE,
    PICK,
    SEND,
    answer,
    append,
    branch,
    branched,
    by_turn,
    error_of,
    ids,
    late,
    picked,
    picking,
    recorded,
    refuse,
    restart,
    results,
    roles,
    said,
    the_turn,
    turn_of,
)
from tests.protocol.situations import leave, on_hold

LIVES = pytest.mark.parametrize("life", ["one process", "restarted"])


LEAVABLE = pytest.mark.parametrize(
    "given", [paused, on_hold, picking], ids=["paused", "paused beside a tool", "waiting"]
)


# ------------------------------------------------------------------- leaving


@LEAVABLE
def test_4_parked_by_leaving_its_branch_while_another_turn_starts(
    given: Callable[[], Session],
) -> None:
    """The event says so; the old turn is open, and the new one is the active one."""
    session = given()
    turn = the_turn(session)
    happened = session.do(view(user("edit")))
    assert names(happened)[:3] == ["turn.parked", "head.moved", "turn.started"]
    assert by_turn(session, ev.TurnParked) == [("turn.parked", turn.id)]
    assert status(session.state, session.state.control.turns[0]) == "parked"
    assert turn_of(session) == the_turn(session).id != turn.id


@pytest.mark.parametrize("asked", [CHOOSE, SEND], ids=["waiting", "paused"])
def test_4_parked_by_looking_at_another_branch(asked: ToolCall) -> None:
    """A view that only changes branches parks too, and starts nothing."""
    session, old, _ = branched()
    session.say("u2", client=PICK)
    session.reply(None, asked)
    if asked is SEND:
        session.do(cmd.RaiseInterrupt(reason="hold"))
    assert names(session.do(view(*old))) == ["turn.parked", "head.moved"]
    assert active_turn(session.state) is None
    assert session.path == old


def test_4_parked_is_not_a_turn_that_runs() -> None:
    """Only one that waits for somebody can be left."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND)
    refuse(session, view(user("edit")), TurnAlreadyActive)
    assert by_turn(session, ev.TurnParked) == []


# ------------------------------------------------ while it is parked


@LIVES
def test_4_parked_calls_go_on_and_are_recorded(life: str) -> None:
    """The end of the tool is in the log; its message waits for the branch."""
    session = on_hold()
    turn, _ = leave(session)
    assert ("tool", "c1") in [(work.kind, work.id) for work in pending(session.state)]
    happened = restart(session) if life == "restarted" else session.finish("c1")
    ended = "tool.call.errored" if life == "restarted" else "tool.call.completed"
    assert ended in names(happened)
    assert "decision.waiting" in names(happened)
    assert session.state.calls_of(turn) == []


def test_4_parked_triggers_wait() -> None:
    """No worker is asked about a branch that nobody looks at."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished"})))
    session.say("u1")
    session.reply(None, SEND)
    session.do(cmd.RaiseInterrupt(reason="hold"))
    leave(session)
    session.finish("c1")
    assert not [d for d in session.state.control.decisions if d.is_out]


def test_4_parked_decisions_that_are_out_wait_again() -> None:
    """The late answer of that asking is ignored, and it is asked anew when the branch is back."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say("u1")
    session.reply(None, SEND)
    session.do(cmd.RaiseInterrupt(reason="hold"))
    decision = session.out
    _, path = leave(session)
    assert late(session, decision.id, 1, RunTool()) == []
    session.reply("instead")
    session.do(view(*path))
    assert "decision.requested" in names(session.resume(True))
    assert session.out.id == decision.id


def test_4_parked_calls_hold_nobody_up() -> None:
    """The other branch calls its model and ends, and starts again."""
    session = on_hold()
    leave(session)
    assert names(session.reply("instead"))[-1] == "turn.completed"
    session.say("u2")
    session.reply(None, replace(SEND, id="c2"))
    assert "llm.call.requested" in names(session.finish("c2"))


def test_4_parked_triggers_hold_nobody_up() -> None:
    """A worker is asked about the other branch while a trigger of this one waits."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished", "client.messages"})))
    session.say("u1")
    session.answer(CallModel(), messages=[user("u1")])
    session.reply(None, SEND)
    session.do(cmd.RaiseInterrupt(reason="hold"))
    leave(session)
    assert session.out.turn_id == the_turn(session).id
    session.finish("c1")
    assert "turn.completed" in names(session.answer(Done()))


@LIVES
def test_4_parked_turns_may_be_many(life: str) -> None:
    """Each has its own branch and its own question."""
    session = paused()
    first, one = leave(session, "edit1")
    session.reply(None, replace(SEND, id="c2"))
    session.answer(Interrupt(reason="confirm"))
    second, two = leave(session, "edit2")
    session.reply("free")
    if life == "restarted":
        restart(session)
    assert [t.id for t in session.state.control.turns if t.parked] == [first, second]
    for turn, path in ((second, two), (first, one)):
        session.do(view(*path))
        assert (the_turn(session).id, session.path) == (turn, path)


# --------------------------------------------------------------- coming back


@LIVES
@LEAVABLE
def test_4_parked_comes_back_as_what_it_was(given: Callable[[], Session], life: str) -> None:
    """Its branch, its status, its questions; one move of the head and nothing else."""
    session = given()
    was = status(session.state, the_turn(session))
    questions = session.state.control.interrupts
    turn, path = leave(session)
    session.reply("instead")
    if life == "restarted":
        restart(session)
    assert names(session.do(view(*path))) == ["head.moved"]
    assert (the_turn(session).id, session.path) == (turn, path)
    assert status(session.state, the_turn(session)) == was
    assert session.state.control.interrupts == questions


def test_4_parked_comes_back_although_it_has_recorded_nothing() -> None:
    """It was to say something else and asked first: its branch ends on an older message."""
    session = said()
    old = session.path
    session.do(view(user("u1")))
    session.do(cmd.RaiseInterrupt(reason="hold"))
    turn = the_turn(session).id
    session.do(view(*old))
    assert session.state.is_parked(turn)
    assert names(session.do(view(user("u1")))) == ["head.moved"]
    assert the_turn(session).id == turn


def test_4_parked_comes_back_to_its_end_below_the_question() -> None:
    """A result was recorded while it was paused: the answer alone leads there, not above it."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished"})))
    session.say("u1")
    session.reply(None, SEND)
    session.finish("c1")
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    session.answer(CallModel(), messages=[picked("t1")])
    turn, path = leave(session)
    assert ids(path)[-1] == "t1"
    session.reply("instead")
    happened = session.do(view(answers=(answer("i1"),)))
    assert session.path == path
    assert the_turn(session).id == turn
    assert "llm.call.requested" in names(happened)


def test_4_parked_comes_back_with_new_messages_at_its_end() -> None:
    """A message below a waiting branch is one for the turn that waits there."""
    session = picking()
    turn, path = leave(session)
    session.reply("instead")
    happened = session.do(view(*path, user("u2")))
    assert names(happened)[0] == "head.moved"
    assert turn_of(session) == turn
    assert roles(session.path) == ["user", "assistant", "tool", "user"]


def test_4_parked_comes_back_with_its_frontends_result() -> None:
    """The result belongs to the branch that the view shows."""
    session = picking()
    turn, path = leave(session)
    session.reply("instead")
    happened = session.do(view(*path, picked()))
    assert names(happened)[:2] == ["head.moved", "tool.call.completed"]
    assert turn_of(session) == turn
    assert "llm.call.requested" in names(happened)


@LIVES
def test_4_parked_work_that_ended_meanwhile_goes_on(life: str) -> None:
    """What waited is decided when the branch is free again."""
    session = on_hold()
    turn, path = leave(session)
    session.finish("c1", "done")
    session.reply("instead")
    if life == "restarted":
        restart(session)
    session.do(view(*path))
    happened = session.resume(True)
    assert results(session.path) == [("c1", "done")]
    assert "llm.call.requested" in names(happened)
    session.reply("sent")
    assert error_of(session, turn) is None


def test_4_parked_a_new_message_above_its_end_is_another_branch() -> None:
    """It leaves the turn where it is."""
    session = picking()
    turn, path = leave(session)
    session.reply("instead")
    happened = session.do(view(path[0], user("beside")))
    assert recorded(happened) == [("beside", "u1")]
    assert session.state.is_parked(turn)


def test_4_parked_turn_ends_in_an_error_of_its_own_only_when_it_is_back() -> None:
    """A worker that fails is asked on the active branch; nobody asks it about this one."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say("u1")
    session.reply(None, SEND)
    session.do(cmd.RaiseInterrupt(reason="hold"))
    failed = cmd.FailDecision(
        decision_id=session.out.id, attempt=1, error=Error(code="worker_error", message="x")
    )
    turn, _ = leave(session)
    assert session.do(failed) == []
    assert session.state.is_parked(turn)
    assert ids(branch(session, turn))[0] == "u1"


def test_4_parked_is_kept_by_append_at_the_other_head() -> None:
    """Messages at the head are for the active branch."""
    session = picking()
    turn, _ = leave(session)
    session.reply("instead")
    session.do(append(user("u2")))
    assert session.state.is_parked(turn)
