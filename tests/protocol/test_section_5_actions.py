"""Actions that a client calls by name. Source: `protocol.md` section 5, the triggers."""

from dataclasses import replace
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import InvalidInput
from engine.core.request import decision_request
from engine.core.status import active_turn
from engine.core.worker import CallModel, ClientAction, ClientMessages, DecisionResponse, Done
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.given import (
    SEND,
    append,
    by_turn,
    error_of,
    ids,
    late,
    picking,
    refuse,
    restart,
    said,
    the_turn,
    turn_of,
)

LIVES = pytest.mark.parametrize("life", ["one process", "restarted"])


def act(session: Session, name: str = "press", args: Any = None) -> list[ev.Body]:
    """A client calls an action."""
    return session.do(cmd.TakeAction(name=name, args=args))


def acting(*more: str) -> Session:
    """A session whose worker decides on actions, and on more."""
    return Session(agent(tool("send"), wants=frozenset({"client.action", *more})))


# ------------------------------------------------------------ outside a turn


def test_5_client_action_reaches_the_worker_with_its_name_and_arguments() -> None:
    """As a decision outside any turn, whose proposal is nothing."""
    session = acting()
    session.say()
    session.reply("hi")
    happened = act(session, args={"n": 1})
    assert names(happened) == ["decision.requested"]
    assert session.trigger == ClientAction(name="press", args={"n": 1})
    assert session.out.turn_id is None
    request = decision_request(session.state, session._env(), session.out)
    assert request.proposed == DecisionResponse()


def test_5_client_action_without_a_worker_does_nothing() -> None:
    """The engine's own proposal is nothing, so nothing is recorded."""
    session = said()
    assert act(session) == []
    assert turn_of(session) is None


def test_5_client_action_needs_a_name() -> None:
    """There is nothing to ask about without one."""
    refuse(acting(), cmd.TakeAction(name=""), InvalidInput)


def test_5_client_action_may_begin_a_session() -> None:
    """Before any message; refused only by nobody."""
    session = acting()
    assert names(act(session)) == ["session.created", "decision.requested"]


def test_5_client_action_answered_by_a_model_call_opens_a_turn() -> None:
    """The turn has the id that its events carry, and ends as every other."""
    session = acting()
    session.say()
    session.reply("hi")
    act(session)
    happened = session.answer(CallModel())
    assert names(happened) == ["decision.completed", "turn.started", "llm.call.requested"]
    session.reply("pressed")
    assert session.state.control.turns == ()
    assert len(by_turn(session, ev.TurnCompleted)) == 2


def test_5_client_action_answered_by_nothing_opens_no_turn() -> None:
    """Values may be written all the same."""
    session = acting()
    act(session)
    assert names(session.answer(state={"n": 1})) == ["decision.completed", "state.updated"]
    assert session.state.control.turns == ()


def test_5_client_actions_are_asked_about_one_at_a_time() -> None:
    """In the order they came."""
    session = acting()
    act(session, "one")
    assert names(act(session, "two")) == ["decision.waiting"]
    assert names(session.answer()) == ["decision.completed", "decision.requested"]
    assert session.trigger == ClientAction(name="two")


# ------------------------------------------------------------- during a turn


@LIVES
def test_5_client_action_waits_among_the_triggers_of_the_turn(life: str) -> None:
    """It belongs to the turn, and goes out when the decision before it is made."""
    session = acting("client.messages")
    session.say("u1")
    turn = the_turn(session).id
    assert names(act(session)) == ["decision.waiting"]
    assert turn_of(session) == turn
    if life == "restarted":
        restart(session)
    session.answer(CallModel(), messages=[user("u1")])
    assert session.trigger == ClientAction(name="press")
    assert session.out.turn_id == turn


def test_5_client_action_keeps_its_turn_open() -> None:
    """The reply is recorded, and the turn ends when the action has been decided."""
    session = acting()
    session.say("u1")
    act(session)
    assert "turn.completed" not in names(session.reply("hi"))
    assert names(session.answer())[-1] == "turn.completed"


def test_5_client_action_does_not_keep_the_model_from_being_called() -> None:
    """A tool ends while the action waits: somebody has to go on."""
    session = acting("tool.finished")
    session.say("u1")
    session.reply(None, SEND)
    session.finish("c1")
    act(session)
    request = decision_request(session.state, session._env(), session.out)
    assert [action.type for action in request.proposed.actions] == ["llm.call"]


def test_5_client_action_while_a_frontend_is_asked_belongs_to_that_turn() -> None:
    """The call stays open, and the turn waits for it again afterwards."""
    session = picking(wants=frozenset({"client.action"}))
    act(session)
    assert session.out.turn_id == the_turn(session).id
    session.answer()
    assert session.state.call("c1") is not None
    assert len(session.state.control.turns) == 1


def test_5_client_action_while_paused_waits_for_the_answer() -> None:
    """No decision goes out on a paused branch."""
    session = acting()
    session.say("u1")
    session.do(cmd.RaiseInterrupt(reason="hold"))
    assert names(act(session)) == ["decision.waiting"]
    session.resume(True)
    assert session.trigger == ClientAction(name="press")


def test_5_client_action_of_a_parked_turn_waits_with_it() -> None:
    """On the branch where it was called; the other branch is not held up."""
    session = acting("client.messages")
    session.say("u1")
    session.answer(CallModel(), messages=[user("u1")])
    session.do(cmd.RaiseInterrupt(reason="hold"))
    act(session)
    path = session.path
    session.do(view(user("edit")))
    assert isinstance(session.trigger, ClientMessages)
    session.answer(Done())
    session.do(view(*path))
    session.resume(True)
    assert session.trigger == ClientAction(name="press")


@LIVES
def test_5_client_action_that_waits_outlives_a_turn_that_is_done(life: str) -> None:
    """A person pressed it: the worker hears of it outside the turn."""
    session = acting("client.messages")
    session.say("u1")
    turn = the_turn(session).id
    act(session)
    if life == "restarted":
        restart(session)
    happened = session.answer(Done())
    assert error_of(session, turn) is None
    assert "decision.dropped" not in names(happened)
    assert session.trigger == ClientAction(name="press")
    assert session.out.turn_id is None
    assert active_turn(session.state) is None


def test_5_client_action_that_outlives_its_turn_goes_before_queued_input() -> None:
    """It came first; the queued turn starts in the same commit and waits for it."""
    session = acting("client.messages")
    session.do(append(user("u1"), turn_id="first"))
    act(session)
    session.do(append(user("u2"), turn_id="second", queue=True))
    session.answer(Done(), messages=[user("u1")])
    assert session.trigger == ClientAction(name="press")
    assert the_turn(session).id == "second"
    session.answer()
    assert isinstance(session.trigger, ClientMessages)
    assert ids(session.trigger.messages) == ["u2"]


# --------------------------------------------------------------------- cancel


@LIVES
def test_7_step_4_waiting_client_actions_are_dropped(life: str) -> None:
    """Those of the turn, whether asked about or in line; a late answer does nothing."""
    session = acting("client.messages")
    session.say("u1")
    act(session)
    act(session, "again")
    decision = session.out
    if life == "restarted":
        restart(session)
    happened = session.do(cmd.CancelSession())
    assert names(happened).count("decision.dropped") == 3
    assert session.state.control.decisions == ()
    assert late(session, decision.id, 1, CallModel()) == []


def test_7_step_4_client_actions_outside_the_turn_are_dropped_too() -> None:
    """One that waits in line behind another while a turn runs."""
    session = acting()
    act(session, "one")
    act(session, "two")
    session.answer(CallModel())
    happened = session.do(cmd.CancelSession())
    assert "decision.dropped" in names(happened)
    assert session.state.control.decisions == ()
    assert session.state.control.turns == ()


def test_7_step_4_client_actions_of_a_parked_turn_are_dropped() -> None:
    """On whatever branch they wait."""
    session = acting()
    session.say("u1")
    session.reply(None, SEND, replace(SEND, id="c2"))
    session.do(cmd.RaiseInterrupt(reason="hold"))
    act(session)
    session.do(view(user("edit")))
    session.do(cmd.CancelSession())
    assert session.state.control.decisions == ()
