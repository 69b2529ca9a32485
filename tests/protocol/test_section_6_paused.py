"""While a branch is paused: who may still answer, whose clock stands still, what is refused.

Source: `protocol.md` section 6, "On raising" (its end), "No clock runs", "While paused" and
"The rest of the tree stays live".
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.due import wake_at
from engine.core.env import FUNCTION_TOOL, WORKER_TOOL
from engine.core.errors import SessionInterrupted
from engine.core.interrupts import is_paused
from engine.core.messages import SystemMessage, ToolCall
from engine.core.pending import pending
from engine.core.worker import (
    Action,
    CallModel,
    CallTool,
    Done,
    Error,
    GiveError,
    GiveResult,
    Interrupt,
    RunTool,
)
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.calls import (
    PICK,
    attempts,
    call,
    come_back,
    gating,
    hold,
    leave,
    left_open,
    opened,
    questions,
    recorded,
    running_own,
    settle,
    started,
    told,
    worker_tool,
)

GATE = frozenset({"tool.execute"})


def out_and_paused(*, wants: frozenset[str] = GATE, calls: Sequence[ToolCall] = ()) -> Session:
    """The worker is asked about something when somebody else pauses the branch."""
    session = Session(agent(tool("send"), wants=wants))
    session.say(client=PICK)
    session.reply(None, *(calls or (call(),)))
    hold(session)
    return session


# --------------------------------------------- a decision that is out may still answer


@pytest.mark.parametrize(
    ("action", "later"),
    [
        (RunTool(), "call.started"),
        (CallTool(name="send", id="c9", arguments='{"to": "x"}'), "tool.call.requested"),
        (CallModel(), "llm.call.requested"),
        (Done(), "turn.completed"),
    ],
    ids=lambda value: getattr(value, "type", value),
)
def test_6_out_decision_what_it_starts_waits_for_the_resume(action: Action, later: str) -> None:
    """Nothing begins while paused; it does when the branch is free, without asking again."""
    session = out_and_paused()
    asked = session.out.id
    assert later not in names(session.answer(action))
    happened = session.resume(True, "hold")
    assert later in names(happened)
    again = [b.decision_id for b in happened if isinstance(b, ev.DecisionRequested)]
    assert asked not in again


def test_6_out_decision_what_it_records_is_applied() -> None:
    """Messages and state are in the log at once."""
    session = out_and_paused()
    note = SystemMessage(id="n1", content="note")
    happened = names(session.answer(RunTool(), messages=[note], state={"n": 1}))
    assert happened == ["decision.completed", "message.new", "state.updated"]


def test_6_out_decision_the_calls_it_ends_are_ended() -> None:
    """What follows from the result waits."""
    session = out_and_paused()
    assert names(session.answer(GiveResult(result="by hand"))) == [
        "decision.completed",
        "tool.call.completed",
        "decision.waiting",
    ]


def test_6_out_decision_may_ask_a_person_itself() -> None:
    """Its question is open beside the other; both have to be answered."""
    session = out_and_paused()
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    assert questions(session) == ["hold", "q"]
    assert started(session.resume(True, "hold")) == []
    assert started(session.resume(True, "q")) == ["c1"]


def test_6_out_decision_that_breaks_a_rule_is_refused_whole() -> None:
    """Also where only what would wait is wrong; asked again when the branch is free."""
    session = out_and_paused()
    note = SystemMessage(id="n1", content="note")
    happened = session.answer(RunTool(id="nobody"), messages=[note])
    assert names(happened) == ["decision.errored"]
    assert "n1" not in session.state.tree


@pytest.mark.parametrize("how", ["fails", "lapses", "crash", "refused"])
def test_6_out_decision_that_failed_is_asked_again_when_the_branch_is_free(how: str) -> None:
    """Not before, and the pause outlives it."""
    session = out_and_paused()
    decision = session.out
    if how == "fails":
        error = Error(code="worker_error", message="bug")
        session.do(cmd.FailDecision(decision_id=decision.id, attempt=1, error=error))
    elif how == "lapses":
        session.wait(seconds=20)
        session.do(cmd.PassTime())
    elif how == "crash":
        session.do(cmd.Recover())
    else:
        session.answer(Interrupt(reason=""))
    assert pending(session.state) == []
    assert is_paused(session.state)
    session.resume(True, "hold")
    assert session.out.id == decision.id


@pytest.mark.parametrize("with_messages", [True, False], ids=["with messages", "without"])
def test_6_out_decision_a_question_about_a_call_that_waits_is_asked(
    with_messages: bool,  # noqa: FBT001
) -> None:
    """The call is started with the question that holds it, never without."""
    session = Session(agent(tool("send"), wants=frozenset({"client.messages"})))
    session.say()
    hold(session)
    session.answer(
        CallTool(name="send", id="c9", arguments='{"to": "x"}'),
        Interrupt(reason="confirm", interrupt_id="q", payload={"toolCallId": "c9"}),
        messages=[user("u1")] if with_messages else [],
    )
    happened = session.resume(True, "hold")
    assert questions(session) == ["q"]
    assert started(happened) == []
    assert started(session.resume(True, "q")) == ["c9"]


def test_6_out_decision_a_call_beside_its_question_starts_at_the_resume() -> None:
    """Of two calls that waited, the one that the question does not hold starts."""
    session = out_and_paused(wants=frozenset({"llm.finished"}), calls=[call(), call("c2")])
    proposal = told(session).proposed
    ask = Interrupt(reason="confirm", interrupt_id="q", payload={"toolCallId": "c1"})
    session.answer(*proposal.actions, ask, messages=proposal.messages)
    assert started(session.resume(True, "hold")) == ["c2"]
    assert questions(session) == ["q"]


# ------------------------------------------------- no clock runs against a person


def test_6_no_clock_runs_against_a_person() -> None:
    """Held before it started, a call has no deadline, and gets the whole time when it starts."""
    session = gating()
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    assert wake_at(session.state) is None
    session.wait(days=400)
    assert session.do(cmd.PassTime()) == []
    session.resume(True, "q")
    assert opened(session).deadline == session.now + FUNCTION_TOOL.run


def test_6_no_clock_runs_for_a_call_that_is_held_while_it_runs() -> None:
    """Clearing starts its deadlines anew: this attempt's and the total."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, call())
    hold(session, payload={"toolCallId": "c1"})
    assert wake_at(session.state) is None
    session.wait(days=1)
    assert session.do(cmd.PassTime()) == []
    session.resume(True, "hold")
    assert opened(session).deadline == session.now + FUNCTION_TOOL.run
    assert opened(session).expires == session.now + FUNCTION_TOOL.total
    assert opened(session).attempt == 1


def test_6_no_clock_runs_until_the_last_question_about_a_call_is_answered() -> None:
    """Two hold it; the first answer starts nothing."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, call())
    hold(session, "q1", payload={"toolCallId": "c1"})
    hold(session, "q2", payload={"toolCallId": "c1"})
    session.wait(days=1)
    session.resume(True, "q1")
    assert wake_at(session.state) is None
    session.wait(days=1)
    session.resume(True, "q2")
    assert opened(session).deadline == session.now + FUNCTION_TOOL.run


def test_6_no_clock_runs_for_a_call_that_its_worker_left_open() -> None:
    """An async tool with a deadline of its own."""
    bound = replace(WORKER_TOOL, total=timedelta(seconds=50))
    session = left_open(worker_tool(left_open=bound))
    hold(session, payload={"toolCallId": "c1"})
    session.wait(days=1)
    assert session.do(cmd.PassTime()) == []
    session.resume(True, "hold")
    assert opened(session).deadline == session.now + timedelta(seconds=50)


def test_6_no_clock_runs_for_a_workers_tool_that_is_held_while_it_runs() -> None:
    """Being asked is running it: the held call has no deadline, so its attempt does not lapse."""
    session = running_own()
    hold(session, payload={"toolCallId": "c1"})
    session.wait(days=1)
    assert session.do(cmd.PassTime()) == []
    session.answer(GiveResult(result="done"))
    assert session.state.call("c1") is None


@pytest.mark.parametrize("kind", ["function", "worker", "async"])
def test_6_no_clock_runs_for_a_call_whose_question_expires(kind: str) -> None:
    """Only the question's own time was up: the call has all of its time from then on."""
    if kind == "function":
        session = Session(agent(tool("send")))
        session.say()
        session.reply(None, call())
    else:
        bound = replace(WORKER_TOOL, total=timedelta(seconds=50))
        own = worker_tool(left_open=bound)
        session = running_own(own) if kind == "worker" else left_open(own)
    hold(session, payload={"toolCallId": "c1", "expiresAt": "2026-01-01T01:00:00Z"})
    session.wait(hours=1)
    session.do(cmd.PassTime())
    assert questions(session) == []
    assert list(attempts(session)) == ["c1"]
    seconds = {"function": 120, "worker": 120, "async": 50}[kind]
    assert wake_at(session.state) == session.now + timedelta(seconds=seconds)


@pytest.mark.parametrize("attempt", [1, 2])
def test_6_a_workers_tool_that_was_held_is_not_begun_again(attempt: int) -> None:
    """The attempt that runs is the same one after the answer, with new time."""
    session = running_own(worker_tool(attempts=2))
    if attempt == 2:
        session.answer(GiveError(error="busy", retryable=True))
        session.wait(seconds=10)
    running = pending(session.state)
    hold(session, payload={"toolCallId": "c1"})
    session.resume(True, "hold")
    assert pending(session.state) == running
    assert session.out.deadline == session.now + timedelta(seconds=120)


def test_6_no_clock_runs_for_triggers_that_wait() -> None:
    """They get a deadline when they go out."""
    session = gating(call(), call("c2"))
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    session.wait(days=1)
    assert session.do(cmd.PassTime()) == []
    session.resume(True, "q")
    assert session.out.deadline == session.now + timedelta(seconds=20)


def test_6_a_call_that_is_not_held_keeps_its_deadline() -> None:
    """The pause of the branch alone is no reason to wait for it longer."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, call())
    hold(session)
    session.wait(seconds=120)
    assert names(session.do(cmd.PassTime())) == ["tool.call.errored", "decision.waiting"]


# ----------------------------------------------------------------- while paused


@pytest.mark.parametrize(
    ("kind", "queue"),
    [("append", False), ("append", True), ("view", False)],
    ids=["append", "queue", "view"],
)
def test_6_while_paused_messages_are_refused(kind: str, queue: bool) -> None:  # noqa: FBT001
    """On that path; the refusal lists what is open, and nothing changes."""
    session = gating()
    session.answer(Interrupt(reason="confirm", interrupt_id="q1"))
    hold(session, "q2")
    appended = cmd.AppendMessages(messages=(user("u2"),), queue=queue)
    with pytest.raises(SessionInterrupted) as refused:
        session.do(appended if kind == "append" else view(*session.path, user("u2")))
    assert refused.value.interrupt_ids == ["q1", "q2"]


def test_6_while_paused_input_on_another_path_is_accepted() -> None:
    """The turn that was left is parked; the question stays where it was."""
    session = gating()
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    [turn] = session.state.control.turns
    happened = names(session.do(view(user("edit"))))
    assert "turn.parked" in happened
    assert "turn.started" in happened
    assert session.state.is_parked(turn.id)
    assert questions(session) == ["q"]


def test_6_while_paused_going_back_finds_it_paused_again() -> None:
    """Same turn, same question."""
    session = gating()
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    [turn] = session.state.control.turns
    path = leave(session)
    come_back(session, path)
    assert is_paused(session.state)
    assert session.state.control.turns == (turn,)
    with pytest.raises(SessionInterrupted):
        session.say("u2")


def test_6_while_paused_work_that_ends_an_open_call_is_recorded() -> None:
    """A tool that ran, a call that was left open, a client's own."""
    session = Session(agent(tool("send"), worker_tool(), wants=GATE))
    session.say(client=PICK)
    session.reply(None, call("c1"), call("c2", "own"), call("c3", "pick"))
    session.answer(RunTool())
    session.answer()
    hold(session)
    session.finish("c1")
    settle(session, "c2")
    session.do(cmd.SettleCall(call_id="c3", result="blue"))
    assert attempts(session) == {}
    assert session.do(cmd.PassTime()) == []


def test_6_while_paused_no_decision_goes_out() -> None:
    """Triggers wait, whatever happens."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished", "client.action"})))
    session.say()
    session.reply(None, call())
    hold(session)
    session.finish("c1")
    session.do(cmd.TakeAction(name="refresh"))
    assert not any(decision.is_out for decision in session.state.control.decisions)
    assert len(session.state.control.decisions) == 2


def test_6_while_paused_no_turn_completes() -> None:
    """Nothing is left to do, and yet the turn stays open."""
    session = Session(agent(tool("send"), wants=frozenset({"client.messages"})))
    session.say()
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    session.do(cmd.PassTime())
    session.do(cmd.Recover())
    assert len(session.state.control.turns) == 1
    assert recorded(session, ev.TurnCompleted) == []


def test_6_a_pause_costs_only_rows() -> None:
    """Nothing runs, nothing is due, and a restart changes nothing."""
    session = gating()
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    assert pending(session.state) == []
    assert wake_at(session.state) is None
    assert session.do(cmd.Recover()) == []
