"""Approvals beside everything else: workers, gates, other questions, branches, restarts.

Source: `protocol.md` section 10, with sections 4, 6 and 7.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.calls import OUTCOME_UNKNOWN
from engine.core.due import wake_at
from engine.core.env import WORKER_TOOL
from engine.core.errors import SessionInterrupted
from engine.core.worker import (
    CallTool,
    GiveError,
    GiveResult,
    Interrupt,
    ResolveInterrupt,
    ToolExecute,
)
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.calls import (
    NO,
    PICK,
    YES,
    answered,
    approving,
    attempts,
    call,
    come_back,
    hold,
    leave,
    only,
    opened,
    questions,
    read,
    sensitive,
    settle,
    started,
    take,
    take_all,
    told,
    worker_tool,
)

GATE = frozenset({"tool.execute"})
RESUMED = frozenset({"interrupt.resumed"})


def own_sensitive(*, wants: frozenset[str] = GATE, **more: Any) -> Session:
    """A worker's own tool, of which a person approves each call."""
    own = replace(worker_tool(**more), approve=True)
    session = Session(agent(own, wants=wants))
    session.say()
    session.reply(None, call(name="own"))
    return session


def asked_about(session: Session) -> str:
    """The call that the worker is asked about."""
    assert isinstance(session.trigger, ToolExecute)
    return session.trigger.id


# ------------------------------------------------------------------- the worker's part


def test_10_a_worker_can_replace_the_proposal() -> None:
    """It runs the call without a question."""
    session = approving(wants=frozenset({"llm.finished"}))
    proposal = told(session).proposed
    calls = [replace(a, waits=False) for a in proposal.actions if isinstance(a, CallTool)]
    assert started(session.answer(*calls, messages=proposal.messages)) == ["c1"]
    assert questions(session) == []


def test_10_a_worker_can_replace_what_an_answer_leads_to() -> None:
    """Declined, and the worker gives a result of its own."""
    session = approving(wants=RESUMED)
    session.resume(NO)
    session.answer(GiveResult(result="kept as a draft"))
    assert read(session) == {"c1": "kept as a draft"}


@pytest.mark.parametrize(("second", "runs"), [(YES, ["c1"]), (NO, [])], ids=["yes", "no"])
def test_10_a_worker_may_ask_again_about_a_declined_call(second: object, runs: list[str]) -> None:
    """The wrong person had declined: the answer to the new question decides."""
    session = approving(wants=RESUMED)
    session.resume(NO, responder={"channel": "slack", "user": "U1"})
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    session.resume(second, "q")
    assert started(take(session)) == runs


@pytest.mark.parametrize("payload", [NO, {"approved": "yes"}], ids=repr)
def test_10_a_worker_that_adds_nothing_does_not_run_a_declined_call(payload: object) -> None:
    """`{}` to the answer is no approval: only exactly `true` runs the call."""
    session = approving(wants=RESUMED)
    session.resume(payload)
    assert started(session.answer()) == []


def test_10_a_worker_that_wants_everything_and_changes_nothing() -> None:
    """The turn ends as it does without a worker."""
    session = Session(agent(sensitive(), tool("plain"), worker_tool(), wants=None))
    session.say(client=PICK)
    take_all(session)
    session.reply(None, call(), call("c2", "plain"))
    take_all(session)
    assert questions(session) == ["approve:c1"]
    session.resume(YES)
    take_all(session)
    assert attempts(session) == {"c1": 1, "c2": 1}


def test_10_a_gate_is_asked_after_the_approval() -> None:
    """A worker that gates the tool decides when the person has."""
    session = approving(wants=GATE)
    assert started(session.resume(YES)) == []
    assert asked_about(session) == "c1"
    assert started(take(session)) == ["c1"]


def test_10_a_gate_may_refuse_what_a_person_approved() -> None:
    """Its word is the last."""
    session = approving(wants=GATE)
    session.resume(YES)
    session.answer(GiveError(error="outside office hours"))
    assert read(session) == {"c1": "outside office hours"}


def test_10_a_gate_may_ask_a_question_of_its_own() -> None:
    """The call is held a second time, and runs when that is answered, too."""
    session = approving(wants=GATE)
    session.resume(YES)
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    assert attempts(session) == {"c1": 0}
    assert started(session.resume(True, "q")) == ["c1"]


def test_10_a_gate_is_not_asked_about_what_was_declined() -> None:
    """There is nothing to start."""
    session = approving(call("c1"), call("c5"), wants=GATE)
    session.resume(NO, "approve:c1")
    session.resume(YES, "approve:c5")
    assert asked_about(session) == "c5"
    assert "c1" not in attempts(session)


def test_10_a_gate_is_asked_about_one_call_after_the_other() -> None:
    """Approved ones, and those that needed nobody."""
    session = approving(call("c1"), call("c2", "plain"), call("c5"), wants=GATE)
    session.resume(YES, "approve:c1")
    session.resume(YES, "approve:c5")
    order: list[str] = []
    while any(decision.is_out for decision in session.state.control.decisions):
        order.append(asked_about(session))
        take(session)
    assert sorted(order) == ["c1", "c2", "c5"]
    assert attempts(session) == {"c1": 1, "c2": 1, "c5": 1}


def test_10_an_approved_worker_tool_is_its_workers_to_run() -> None:
    """The worker is asked when the person has approved, with the whole time."""
    session = own_sensitive()
    session.wait(days=1)
    session.resume(YES)
    assert asked_about(session) == "c1"
    assert session.out.deadline == session.now + timedelta(seconds=120)
    session.answer(GiveResult(result="done"))
    assert read(session) == {"c1": "done"}


@pytest.mark.parametrize("wants", [GATE, frozenset[str]()], ids=["asked", "not asked"])
def test_10_a_declined_worker_tool_never_reaches_its_worker(wants: frozenset[str]) -> None:
    """It ends as a function tool's call does."""
    session = own_sensitive(wants=wants)
    session.resume({"approved": False, "reason": "no"})
    assert session.state.control.decisions == ()
    assert read(session) == {"c1": "a person declined: no"}


def test_10_an_approved_worker_tool_may_be_left_open() -> None:
    """Its time starts when the worker has left it, not while the person thinks."""
    bound = replace(WORKER_TOOL, total=timedelta(seconds=50))
    session = own_sensitive(left_open=bound)
    assert wake_at(session.state) is None
    session.resume(YES)
    session.answer()
    assert opened(session).deadline == session.now + timedelta(seconds=50)
    settle(session)
    assert read(session) == {"c1": "done"}


# --------------------------------------------------------------- beside other questions


def test_10_a_pause_by_somebody_else_holds_approved_calls() -> None:
    """All that pauses the branch has to be answered first."""
    session = approving()
    hold(session)
    assert started(session.resume(YES, "approve:c1")) == []
    assert started(session.resume(False, "hold")) == ["c1"]


@pytest.mark.parametrize("declined_first", [True, False], ids=["declined first", "last"])
def test_10_another_question_about_a_declined_call_does_not_run_it(
    declined_first: bool,  # noqa: FBT001
) -> None:
    """Somebody else asked about the same call and was told yes: it was declined all the same."""
    session = approving()
    hold(session, payload={"toolCallId": "c1"})
    happened: list[ev.Body] = []
    answers: list[tuple[str, Any]] = [("approve:c1", NO), ("hold", True)]
    for interrupt_id, payload in answers if declined_first else reversed(answers):
        happened += session.resume(payload, interrupt_id)
    assert started(happened) == []


def test_10_another_question_does_not_stand_for_the_approval() -> None:
    """It is asked on another branch, and names the call that waits on the one that was left."""
    session = approving()
    session.do(view(user("edit")))
    hold(session, payload={"toolCallId": "c1"})
    assert started(session.resume(True, "hold")) == []
    assert questions(session) == ["approve:c1"]


def test_10_asked_while_somebody_paused_the_branch() -> None:
    """The worker returns the proposal late: the calls and the questions come with the resume."""
    session = approving(call("c1"), call("c2", "plain"), wants=frozenset({"llm.finished"}))
    hold(session)
    take(session)
    assert attempts(session) == {}
    assert started(session.resume(True, "hold")) == []
    assert questions(session) == ["approve:c1"]
    assert sorted(started(session.resume(YES))) == ["c1", "c2"]


def test_10_new_messages_wait_for_the_answer() -> None:
    """On that path they are refused, and answered together they join the turn."""
    session = approving(call("c1"), call("c5"))
    with pytest.raises(SessionInterrupted):
        session.say("u2")
    one = answered("approve:c1", YES)
    with pytest.raises(SessionInterrupted):
        session.do(view(*session.path, user("u2"), answers=(one,)))
    both = (one, answered("approve:c5", NO))
    session.do(view(*session.path, user("u2"), answers=both))
    happened = session.finish("c1")
    assert names(happened).count("llm.call.requested") == 1
    assert len(session.state.control.turns) == 1


# ------------------------------------------------------------------------- branches


@pytest.mark.parametrize(("payload", "runs"), [(YES, ["c1"]), (NO, [])], ids=["yes", "no"])
def test_10_an_edit_and_back_changes_nothing(payload: object, runs: list[str]) -> None:
    """The question is open again, and its answer does what it would have done."""
    session = approving()
    path = leave(session)
    come_back(session, path)
    assert questions(session) == ["approve:c1"]
    assert started(session.resume(payload)) == runs


def test_10_approved_on_a_branch_nobody_uses_never_runs() -> None:
    """The turn is over, its call ends as in a cancel."""
    session = approving(call("c1"), call("c2", "plain"))
    leave(session)
    happened = session.resume(YES)
    assert started(happened) == []
    error = only(happened, ev.TurnCompleted).error
    assert error is not None
    assert error.code == "abandoned"
    assert attempts(session) == {}


@pytest.mark.parametrize("wants", [frozenset[str](), RESUMED], ids=["alone", "with a worker"])
@pytest.mark.parametrize("how", ["declined", "given up"])
def test_10_declined_on_a_branch_that_comes_back_never_runs(
    how: str, wants: frozenset[str]
) -> None:
    """One of two is answered while the branch is left, the other when it is back."""
    session = approving(call("c1"), call("c5"), wants=wants)
    path = leave(session)
    if how == "declined":
        session.resume(NO, "approve:c1")
    else:
        session.resume(interrupt_id="approve:c1", cancelled=True)
    come_back(session, path)
    session.resume(YES, "approve:c5")
    take_all(session)
    assert attempts(session).get("c1", 0) == 0
    assert "c1" not in started([event.body for event in session.log])


def test_10_a_declined_worker_tool_on_a_branch_that_comes_back_never_runs() -> None:
    """Its worker is not asked to run it."""
    own = replace(worker_tool(), approve=True)
    session = Session(agent(own, wants=GATE))
    session.say()
    session.reply(None, call("c1", "own"), call("c5", "own"))
    path = leave(session)
    session.resume(NO, "approve:c1")
    come_back(session, path)
    session.resume(YES, "approve:c5")
    assert asked_about(session) == "c5"


def test_10_a_worker_on_another_branch_resolves_the_question() -> None:
    """`interrupt.resolve` with an approval: as a resume of a branch nobody uses."""
    session = approving(wants=frozenset({"client.action"}))
    session.do(view(user("edit")))
    session.do(cmd.TakeAction(name="approve"))
    happened = session.answer(ResolveInterrupt(interrupt_id="approve:c1", payload=YES))
    assert "decision.completed" in names(happened)
    assert started(happened) == []
    assert questions(session) == []


# --------------------------------------------------------------- cancel, time, restart


def test_10_a_cancel_ends_the_questions_and_the_calls() -> None:
    """Every call gets its result, and nothing runs later."""
    session = approving(call("c1"), call("c2", "plain"), call("c4", "pick"))
    happened = session.do(cmd.CancelSession())
    assert started(happened) == []
    assert only(happened, ev.SessionInterruptResumed).status == "cancelled"
    assert set(read(session)) == {"c1", "c2", "c4"}
    assert session.resume(YES, "approve:c1") == []
    session.say("u2")
    assert session.model_call.attempt == 1


def test_10_a_restart_changes_nothing() -> None:
    """A question is rows; the answer that comes afterwards runs the call."""
    session = approving(call("c1"), call("c2", "plain"), call("c3", "own"), call("c4", "pick"))
    assert session.do(cmd.Recover()) == []
    session.wait(days=400)
    assert session.do(cmd.PassTime()) == []
    assert started(session.resume(YES))[0] == "c1"


def test_10_approved_calls_have_their_whole_time() -> None:
    """Counted from the answer."""
    session = approving(call("c1"), call("c2", "plain"))
    session.wait(days=3)
    session.resume(YES)
    assert opened(session, "c1").deadline == session.now + timedelta(seconds=120)
    assert opened(session, "c2").deadline == session.now + timedelta(seconds=120)


def test_10_an_approved_call_that_ran_at_a_crash_is_not_run_again() -> None:
    """The approval was for once."""
    session = approving()
    session.resume(YES)
    session.do(cmd.Recover())
    assert read(session) == {"c1": OUTCOME_UNKNOWN}


def test_10_every_call_is_asked_about_anew() -> None:
    """An approval is for one call, not for the tool."""
    session = approving()
    session.resume(YES)
    session.finish("c1")
    session.reply(None, call("c7"))
    assert questions(session) == ["approve:c7"]
    assert attempts(session) == {"c7": 0}
