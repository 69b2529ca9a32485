"""Stopping everything. Source: `protocol.md` section 7."""

from collections.abc import Callable

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import CallNotOpen
from engine.core.messages import AssistantMessage
from engine.core.pending import pending
from engine.core.worker import CallModel, GiveResult, InterruptResumed
from tests.core.given import Session, agent, names, paused, tool, user, view
from tests.protocol.given import (
    SEND,
    answer,
    by_turn,
    error_of,
    late,
    new_ids,
    picking,
    recorded,
    refuse,
    restart,
    results,
    said,
)
from tests.protocol.situations import (
    calling,
    cancel,
    deciding,
    left_open,
    left_twice,
    queued,
    unstarted,
    working_twice,
)

LIVES = pytest.mark.parametrize("life", ["one process", "restarted"])
STOPPED = "cancelled: the turn ended"


# --------------------------------------------------------------------- step 1


@LIVES
def test_7_step_1_model_calls_are_voided(life: str) -> None:
    """Nothing is left to run, so the provider's stream is closed; a late reply is refused."""
    session = calling()
    if life == "restarted":
        restart(session)
    call = session.model_call
    happened = cancel(session)
    assert names(happened) == ["call.voided", "turn.completed"]
    assert pending(session.state) == []
    reply = AssistantMessage(id=call.message_id, content="late")
    finished = cmd.FinishModelCall(call_id=call.id, attempt=call.attempt, message=reply)
    refuse(session, finished, CallNotOpen)


def test_7_step_1_tools_that_the_engine_runs_are_stopped() -> None:
    """No work is asked for any more; what they bring later is refused."""
    session = working_twice()
    assert len(pending(session.state)) == 2
    cancel(session)
    assert pending(session.state) == []
    for call_id in ("c1", "c2"):
        refuse(session, cmd.FinishToolCall(call_id=call_id, attempt=1, result="x"), CallNotOpen)


def test_7_step_1_calls_of_parked_turns_are_stopped() -> None:
    """A tool that goes on behind a question is stopped on whatever branch."""
    session = working_twice()
    session.do(cmd.RaiseInterrupt(reason="hold"))
    session.do(view(user("edit")))
    assert len(pending(session.state)) == 3
    cancel(session)
    assert pending(session.state) == []


# --------------------------------------------------------------------- step 2


@pytest.mark.parametrize(
    ("given", "call_ids"),
    [
        (working_twice, ["c1", "c2"]),
        (deciding, ["c1", "c2"]),
        (left_open, ["c1"]),
        (unstarted, ["c1"]),
        (picking, ["c1"]),
        (paused, ["c1"]),
    ],
    ids=["running", "asked about", "left open", "never started", "the frontend's", "held"],
)
@LIVES
def test_7_step_2_every_call_without_a_result_gets_one(
    given: Callable[[], Session], call_ids: list[str], life: str
) -> None:
    """The model reads that the turn ended, whatever the call was waiting for."""
    session = given()
    if life == "restarted" and given is not working_twice:
        restart(session)
    cancel(session)
    assert results(session.path) == [(call_id, STOPPED) for call_id in call_ids]


def test_7_step_2_a_result_that_is_recorded_stays() -> None:
    """Only calls without one are ended."""
    session = working_twice()
    session.finish("c1", "sent")
    cancel(session)
    assert results(session.path) == [("c1", "sent"), ("c2", STOPPED)]


@pytest.mark.parametrize("where", ["on the active branch", "on a branch that was left"])
def test_7_step_2_a_result_that_nobody_has_looked_at_is_recorded(where: str) -> None:
    """The tool ran to its end before the cancel: the model reads what it came to."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished"})))
    session.say("u1")
    session.reply(None, SEND)
    if where == "on a branch that was left":
        session.do(cmd.RaiseInterrupt(reason="hold"))
        session.do(view(user("edit")))
    session.finish("c1", "sent")
    happened = cancel(session)
    messages = [body.message for body in happened if isinstance(body, ev.MessageNew)]
    assert results(messages) == [("c1", "sent")]


def test_7_step_2_a_worker_is_not_told_and_its_result_is_refused() -> None:
    """No decision goes out; settling the call afterwards is an error."""
    session = left_open()
    happened = cancel(session)
    assert "decision.requested" not in names(happened)
    for caller in ("machine", "system"):
        late_result = cmd.SettleCall(call_id="c1", result="late", caller=caller)
        refuse(session, late_result, CallNotOpen)
    assert results(session.path) == [("c1", STOPPED)]


def test_7_step_2_a_workers_answer_that_comes_late_is_ignored() -> None:
    """It was asked about the call; the question is gone."""
    session = deciding()
    decision = session.out
    cancel(session)
    assert late(session, decision.id, 1, GiveResult(id="c1", result="late")) == []


def test_7_step_2_calls_of_earlier_turns_are_left_alone() -> None:
    """They ended long ago, one way or the other."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND)
    session.finish("c1", "sent")
    session.reply("ok")
    session.say("u2")
    cancel(session)
    assert results(session.path) == [("c1", "sent")]


# --------------------------------------------------------------------- step 4


@LIVES
def test_7_step_4_waiting_decisions_are_dropped(life: str) -> None:
    """The one that is out and the one in line."""
    session = deciding()
    if life == "restarted":
        restart(session)
    happened = cancel(session)
    assert names(happened).count("decision.dropped") == 2
    assert session.state.control.decisions == ()


@LIVES
def test_7_step_4_queued_turns_are_dropped(life: str) -> None:
    """They have an event of their own, and never start."""
    session = queued()
    if life == "restarted":
        restart(session)
    cancel(session)
    assert by_turn(session, ev.TurnDropped) == [("turn.dropped", "second")]
    assert session.state.control.queue == ()
    assert len(by_turn(session, ev.TurnStarted)) == 1


def test_7_step_4_a_held_answer_is_dropped() -> None:
    """What a worker wanted to start behind the question never starts."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say("u1")
    session.reply(None, SEND)
    session.do(cmd.RaiseInterrupt(reason="hold"))
    session.answer(CallModel())
    happened = cancel(session)
    assert "llm.call.requested" not in names(happened)
    assert session.state.control.decisions == ()


# --------------------------------------------------------------------- step 5


@LIVES
def test_7_step_5_each_open_interrupt_ends_as_cancelled(life: str) -> None:
    """With the status and the payload that say so, on every branch, each once."""
    session = paused()
    session.do(cmd.RaiseInterrupt(reason="more", interrupt_id="i2"))
    session.do(view(user("edit")))
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i3"))
    open_ids = [interrupt.id for interrupt in session.state.control.interrupts]
    if life == "restarted":
        restart(session)
    ended = [b for b in cancel(session) if isinstance(b, ev.SessionInterruptResumed)]
    assert sorted(body.interrupt_id for body in ended) == sorted(open_ids)
    assert {body.status for body in ended} == {"cancelled"}
    assert [body.payload for body in ended] == [{"status": "cancelled"}] * 3
    assert session.state.control.interrupts == ()


@pytest.mark.parametrize("caller", ["client", "machine", "system"])
def test_7_step_5_interrupts_that_no_turn_raised_end_too(caller: cmd.Caller) -> None:
    """A session that only waits for a person is freed."""
    session = said()
    session.do(cmd.RaiseInterrupt(reason="check", caller=caller, answer_by="machine"))
    assert names(cancel(session)) == ["session.interrupt_resumed"]


def test_7_step_5_no_worker_hears_of_it() -> None:
    """`interrupt.resumed` is for answers."""
    session = Session(agent(tool("send"), wants=None))
    session.say("u1")
    session.answer()
    session.answer(CallModel(), messages=[user("u1")])
    session.do(cmd.RaiseInterrupt(reason="hold"))
    happened = cancel(session)
    triggers = [
        b.trigger for b in happened if isinstance(b, ev.DecisionRequested | ev.DecisionWaiting)
    ]
    assert [t for t in triggers if isinstance(t, InterruptResumed)] == []
    assert session.state.control.decisions == ()


def test_7_step_5_a_late_answer_meets_an_old_id() -> None:
    """Nothing happens, and nothing is refused."""
    session = paused()
    interrupt_id = session.state.control.interrupts[0].id
    cancel(session)
    assert session.resume(True, interrupt_id=interrupt_id) == []
    assert session.do(view(*session.path, answers=(answer(interrupt_id),))) == []


# --------------------------------------------------------------------- step 6


@LIVES
def test_7_step_6_every_open_turn_completes_as_cancelled(life: str) -> None:
    """Parked ones too, each once, and no other."""
    session = left_twice()
    turns = [turn.id for turn in session.state.control.turns]
    assert len(turns) == 2
    if life == "restarted":
        restart(session)
    cancel(session)
    assert [turn_id for _, turn_id in by_turn(session, ev.TurnCompleted)] == turns
    assert [error_of(session, turn_id) for turn_id in turns] == ["cancelled", "cancelled"]
    assert session.receipt is not None
    assert list(session.receipt.ended) == turns


@LIVES
def test_7_step_6_results_are_recorded_on_the_branch_of_their_call(life: str) -> None:
    """Below the end of each branch, and the head stays on its own."""
    session = left_twice()
    first, _ = session.state.control.turns
    left, here = session.state.end_of(first.id), session.state.control.head
    if life == "restarted":
        restart(session)
    happened = cancel(session)
    assert "head.moved" not in names(happened)
    assert sorted(parent or "" for _, parent in recorded(happened)) == sorted(
        [left or "", here or ""]
    )
    assert results(session.path) == [("c2", STOPPED)]
    [end] = [n for n in session.state.tree.children(left) if n.message.role == "tool"]
    assert results([end.message]) == [("c1", STOPPED)]


def test_7_step_6_the_head_does_not_move_when_the_active_branch_is_idle() -> None:
    """Only a branch that is not shown gets a message."""
    session = paused()
    session.do(view(user("edit")))
    session.reply("instead")
    path = session.path
    happened = cancel(session)
    assert len(new_ids(happened)) == 1
    assert session.path == path


def test_7_step_6_usage_of_the_turn_is_told() -> None:
    """A turn that is stopped has cost what it has cost."""
    session = working_twice()
    [completed] = [b for b in cancel(session) if isinstance(b, ev.TurnCompleted)]
    assert completed.usage == ()
    assert completed.error is not None
