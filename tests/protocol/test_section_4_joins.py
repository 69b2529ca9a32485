"""Input that joins an open turn. Source: `protocol.md` section 4, the last rule."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import SessionInterrupted
from engine.core.messages import UserMessage
from engine.core.worker import (
    CallModel,
    ClientMessages,
    Done,
    Error,
    Interrupt,
    InterruptResumed,
    RunTool,
)
from tests.core.given import Session, agent, names, paused, tool, user, view
from tests.protocol.given import (
    CHOOSE,
    PICK,
    SEND,
    answer,
    append,
    by_turn,
    error_of,
    ids,
    new_ids,
    picked,
    picking,
    refuse,
    restart,
    results,
    roles,
    said,
    sent,
    the_turn,
    turn_of,
)

LIVES = pytest.mark.parametrize("life", ["one process", "restarted"])
NOT_ANSWERED = "not answered"


def question(session: Session) -> str:
    """Return the id of the oldest open question."""
    return session.state.control.interrupts[0].id


def approved() -> Session:
    """An answer lets a tool run, and u2 came with the answer."""
    session = paused()
    session.do(view(*session.path, user("u2"), answers=(answer(question(session)),)))
    return session


# ---------------------------------------------------------- what may join


def test_4_joins_a_view_that_clears_what_pauses_its_branch() -> None:
    """No second turn: the message belongs to the one that goes on."""
    session = paused()
    turn = the_turn(session).id
    happened = session.do(view(*session.path, user("u2"), answers=(answer(question(session)),)))
    assert turn_of(session) == turn
    assert by_turn(session, ev.TurnStarted) == [("turn.started", turn)]
    assert names(happened)[-1] == "decision.waiting"


def test_4_joins_only_when_all_that_pauses_is_cleared() -> None:
    """One question of two leaves the branch paused: refused, and the answer too."""
    session = paused()
    session.do(cmd.RaiseInterrupt(reason="more", interrupt_id="i2"))
    more = view(*session.path, user("u2"), answers=(answer("i2"),))
    assert len(refuse(session, more, SessionInterrupted).interrupt_ids) == 1
    both = (answer("i2"), answer(question(session)))
    session.do(view(*session.path, user("u2"), answers=both))
    assert turn_of(session) == the_turn(session).id


@pytest.mark.parametrize("how", ["view", "append", "append with queue"])
def test_4_joins_any_message_for_a_turn_that_waits_for_its_frontend(how: str) -> None:
    """In whatever input it comes."""
    session = picking()
    turn = the_turn(session).id
    happened = session.do(
        view(*session.path, user("u2"))
        if how == "view"
        else append(user("u2"), queue=how == "append with queue")
    )
    assert turn_of(session) == turn
    assert "turn.started" not in names(happened)
    assert "turn.queued" not in names(happened)
    assert ids(session.path)[-1] == "u2"


def test_4_joins_a_parked_turn_that_comes_back_with_its_answer() -> None:
    """The branch, its answer and a message in one request: the old turn, no other."""
    session = paused()
    turn, path = the_turn(session).id, session.path
    session.do(view(user("edit")))
    session.reply("instead")
    happened = session.do(view(*path, user("u2"), answers=(answer(question(session)),)))
    assert names(happened)[:2] == ["head.moved", "session.interrupt_resumed"]
    assert turn_of(session) == turn
    session.finish("c1")
    assert ids(session.path)[-1] == "u2"
    assert ids(session.path)[:2] == ids(path)


# ------------------------------------------------------ answers go first


def test_4_joins_behind_the_answers() -> None:
    """The worker hears of the answer before it hears of the message."""
    wants = frozenset({"interrupt.resumed", "client.messages", "tool.execute"})
    session = Session(agent(tool("send"), wants=wants))
    session.say("u1")
    session.answer(CallModel(), messages=[user("u1")])
    session.reply(None, SEND)
    session.answer(Interrupt(reason="confirm"))
    turn = the_turn(session).id
    given_up = answer(question(session), cancelled=True)
    session.do(view(*session.path, user("u2"), answers=(given_up,)))
    assert isinstance(session.trigger, InterruptResumed)
    session.answer(RunTool())
    session.finish("c1")
    trigger = session.trigger
    assert isinstance(trigger, ClientMessages)
    assert (session.out.turn_id, ids(trigger.messages)) == (turn, ["u2"])


def test_4_joins_and_tells_the_worker_where_the_messages_will_stand() -> None:
    """`new_from` counts what stands before them when the worker is asked, not when they came."""
    session = Session(agent(tool("send"), wants=frozenset({"client.messages", "tool.execute"})))
    session.say("u1")
    session.answer(CallModel(), messages=[user("u1")])
    session.reply(None, SEND)
    session.answer(Interrupt(reason="confirm"))
    session.do(view(*session.path, user("u2"), answers=(answer(question(session)),)))
    session.finish("c1")
    trigger = session.trigger
    assert isinstance(trigger, ClientMessages)
    assert trigger.new_from == len(session.path) == 3


@LIVES
def test_4_joins_when_no_call_of_the_turn_is_open(life: str) -> None:
    """Until then it is accepted and not recorded; then it is, behind the result."""
    session = approved()
    assert "u2" not in session.state.tree
    happened = restart(session) if life == "restarted" else session.finish("c1")
    assert names(happened).count("llm.call.requested") == 1
    assert roles(session.path) == ["user", "assistant", "tool", "user"]
    assert new_ids(happened)[-1] == "u2"


def test_4_joins_with_one_model_call() -> None:
    """The proposal is to record the messages and then to call the model once, for all of it."""
    session = approved()
    session.finish("c1")
    assert len(by_turn(session, ev.LlmCallRequested)) == 2
    assert ids(sent(session))[-1] == "u2"
    assert names(session.reply("done"))[-1] == "turn.completed"


def test_4_joins_through_another_question() -> None:
    """Asked again meanwhile, the message waits for the second answer as well."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute", "interrupt.resumed"})))
    session.say("u1")
    session.reply(None, SEND)
    session.answer(Interrupt(reason="confirm"))
    session.do(view(*session.path, user("u2"), answers=(answer(question(session)),)))
    session.answer(Interrupt(reason="are you sure"))
    assert "u2" not in session.state.tree
    assert session.do(view(*session.path, user("u2"))) == []
    session.resume(True)
    session.answer(RunTool())
    session.finish("c1")
    assert ids(session.path)[-1] == "u2"


def test_4_joins_with_what_its_frontend_sent_beside_it() -> None:
    """The model call for it has the tools of the new input."""
    session = picking()
    fresh = cmd.ClientContext(tools=({"name": "other", "description": ""},))
    session.do(view(*session.path, user("u2"), client=fresh))
    assert session.model_call.client == fresh


def test_4_joins_as_several_messages() -> None:
    """All of one input, in its order."""
    session = picking()
    session.do(view(*session.path, user("u2"), user("u3")))
    assert ids(session.path)[-2:] == ["u2", "u3"]


# ---------------------------------------------------- calls it passes over


def test_4_joins_and_voids_client_calls_it_leaves_unanswered() -> None:
    """The model reads that nobody answered; a later result is refused like any late one."""
    session = picking(replace(CHOOSE, id="c2"))
    session.do(view(*session.path, picked("t2", "c2"), user("u2")))
    assert sorted(results(sent(session))) == [("c1", NOT_ANSWERED), ("c2", "blue")]
    assert session.state.call("c1") is None
    assert ids(session.path)[-1] == "u2"


def test_4_joins_and_voids_client_calls_beside_an_answer_too() -> None:
    """The answer frees the branch, the message passes over the call."""
    session = picking()
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    session.do(view(*session.path, user("u2"), answers=(answer("i1"),)))
    assert results(sent(session)) == [("c1", NOT_ANSWERED)]
    assert ids(session.path)[-1] == "u2"


def test_4_joins_and_leaves_other_calls_running() -> None:
    """Only the frontend's calls are passed over."""
    session = picking(replace(SEND, id="c2"))
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    session.do(view(*session.path, user("u2"), answers=(answer("i1"),)))
    assert session.state.call("c1") is None
    assert session.state.call("c2") is not None
    assert "u2" not in session.state.tree
    session.finish("c2")
    assert ids(session.path)[-1] == "u2"


# -------------------------------------------------- the turn ends before it


def end_by_done() -> Session:
    """The worker ends the turn when the tool has ended."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished"})))
    session.say("u1")
    session.reply(None, SEND)
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    session.do(view(*session.path, user("u2"), answers=(answer("i1"),)))
    session.finish("c1")
    session.answer(Done())
    return session


def end_by_cancel() -> Session:
    """Somebody stops the turn while the tool runs."""
    session = approved()
    session.do(cmd.CancelSession())
    return session


def end_by_error() -> Session:
    """The worker fails for good."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished"})))
    session.say("u1")
    session.reply(None, SEND)
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    session.do(view(*session.path, user("u2"), answers=(answer("i1"),)))
    session.finish("c1")
    error = Error(code="worker_error", message="x")
    session.do(cmd.FailDecision(decision_id=session.out.id, attempt=1, error=error))
    return session


def end_by_an_error_about_it() -> Session:
    """The worker fails for good when it is asked about the message itself."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say("u1", client=PICK)
    session.answer(CallModel(), messages=[user("u1")])
    session.reply(None, CHOOSE)
    session.do(view(*session.path, user("u2")))
    error = Error(code="worker_error", message="x")
    session.do(cmd.FailDecision(decision_id=session.out.id, attempt=1, error=error))
    return session


@pytest.mark.parametrize(
    "given",
    [end_by_done, end_by_cancel, end_by_error, end_by_an_error_about_it],
    ids=["done", "cancel", "worker_error", "worker_error about it"],
)
def test_4_joins_a_turn_that_ends_before_and_is_recorded_below_it(
    given: Callable[[], Session],
) -> None:
    """What a person wrote is not lost: it is the last message of the turn, and starts nothing."""
    session = given()
    assert session.state.control.turns == ()
    assert ids(session.path)[-1] == "u2"
    assert len(by_turn(session, ev.TurnStarted)) == 1
    assert session.state.control.calls == ()


def test_4_joins_a_turn_that_is_abandoned_and_is_recorded_on_its_branch() -> None:
    """Where it would have been recorded; the active branch has nothing of it."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute", "interrupt.resumed"})))
    session.say("u1")
    session.reply(None, SEND)
    session.answer(Interrupt(reason="confirm"))
    session.do(view(*session.path, user("u2"), answers=(answer(question(session)),)))
    session.answer(Interrupt(reason="are you sure", interrupt_id="i2"))
    turn, end = the_turn(session).id, session.path[-1].id
    session.do(view(user("edit")))
    session.reply("instead")
    session.resume(cancelled=True, interrupt_id="i2")
    assert error_of(session, turn) == "abandoned"
    assert "u2" not in ids(session.path)
    assert "u2" in session.state.tree
    assert session.state.tree.is_on_path(end, "u2")


# ----------------------------------------------------- no turn to join


def test_4_joins_nothing_and_starts_a_turn() -> None:
    """A question outside any turn is answered, and the message has a turn of its own."""
    session = said()
    session.do(cmd.RaiseInterrupt(reason="check", interrupt_id="i1"))
    happened = session.do(view(*session.path, user("u2"), answers=(answer("i1"),)))
    assert names(happened)[:2] == ["session.interrupt_resumed", "turn.started"]
    assert "llm.call.requested" in names(happened)
    assert ids(session.path)[-1] == "u2"


def test_4_joins_nothing_when_the_answer_ended_no_turn() -> None:
    """Old answers beside a message: the message starts a turn as if they were not there."""
    session = said()
    happened = session.do(view(*session.path, user("u2"), answers=(answer("old"),)))
    assert names(happened) == ["turn.started", "message.new", "llm.call.requested"]


def test_4_joins_with_a_message_that_is_an_edit_instead() -> None:
    """Above the call it is another branch, and no input for the turn that waits."""
    session = picking()
    session.do(view(user("edit"), client=PICK))
    assert isinstance(session.path[0], UserMessage)
    assert ids(session.path) == ["edit"]
    assert session.state.call("c1") is not None
