"""Input that waits its turn. Source: `protocol.md` section 4, the first rule."""

from dataclasses import replace
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import TurnAlreadyActive
from engine.core.messages import ClientContext
from engine.core.worker import ClientMessages, Done, Error
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.given import (
    PICK,
    SEND,
    append,
    by_turn,
    error_of,
    ids,
    is_queued,
    picking,
    recorded,
    refuse,
    restart,
    said,
    sent,
    the_turn,
    turn_of,
)

LIVES = pytest.mark.parametrize("life", ["one process", "restarted"])


def busy(*queued: str, life: str = "one process", **more: Any) -> Session:
    """A tool runs for u1, and messages wait behind the turn."""
    session = Session(agent(tool("send"), **more))
    session.do(append(user("u1"), turn_id="first"))
    session.reply(None, SEND)
    for message_id in queued:
        session.do(append(user(message_id), queue=True, turn_id=f"turn {message_id}"))
    if life == "restarted":
        restart(session)
    return session


def end(session: Session) -> list[ev.Body]:
    """Let the running turn end well; return its last commit."""
    release(session)
    return session.reply("ok")


def release(session: Session) -> None:
    """Let the tool end, unless a restart has ended it."""
    if session.state.call("c1") is not None:
        session.finish("c1")


def waiting(session: Session) -> list[str]:
    """Return the turns in the queue."""
    return [queued.id for queued in session.state.control.queue]


def test_4_queue_lets_input_wait_and_says_so() -> None:
    """Nothing of it is recorded in the tree yet; the reply has the id of the turn to come."""
    session = busy()
    happened = session.do(append(user("u2"), queue=True))
    assert names(happened) == ["turn.queued"]
    assert is_queued(session)
    assert waiting(session) == [turn_of(session)]
    assert ids(session.path)[0] == "u1"
    assert "u2" not in session.state.tree


def test_4_queue_is_not_needed_when_nothing_runs() -> None:
    """The turn starts at once, and the reply does not say queued."""
    session = said()
    happened = session.do(append(user("u2"), queue=True))
    assert "turn.started" in names(happened)
    assert not is_queued(session)


def test_4_queue_must_be_asked_for() -> None:
    """Without it such input is refused, also when others wait already."""
    session = busy("u2")
    refuse(session, append(user("u3")), TurnAlreadyActive)
    assert waiting(session) == ["turn u2"]


def test_4_queue_is_not_for_views() -> None:
    """A view of a running turn with something new is refused whatever waits."""
    session = busy("u2")
    refuse(session, view(*session.path, user("u3")), TurnAlreadyActive)
    refuse(session, view(*session.path, user("u2"), user("u3")), TurnAlreadyActive)


@LIVES
def test_4_queue_starts_in_the_commit_that_ends_the_running_turn(life: str) -> None:
    """Directly behind `turn.completed`, with its input recorded at the head."""
    session = busy("u2", life=life)
    happened = end(session)
    assert names(happened) == [
        "llm.call.completed",
        "message.new",
        "turn.completed",
        "turn.started",
        "message.new",
        "llm.call.requested",
    ]
    assert recorded(happened)[-1] == ("u2", recorded(happened)[0][0])
    assert by_turn(session, ev.TurnStarted, ev.TurnCompleted) == [
        ("turn.started", "first"),
        ("turn.completed", "first"),
        ("turn.started", "turn u2"),
    ]
    assert session.state.control.queue == ()


@LIVES
def test_4_queue_starts_in_order_of_arrival(life: str) -> None:
    """One turn after the other; what came later waits behind what came before it."""
    session = busy("u2", "u3", "u4", life=life)
    end(session)
    assert waiting(session) == ["turn u3", "turn u4"]
    session.do(append(user("u5"), queue=True, turn_id="turn u5"))
    if life == "restarted":
        restart(session)
    for _ in range(4):
        session.reply("ok")
    started = [turn_id for _, turn_id in by_turn(session, ev.TurnStarted)]
    assert started == ["first", "turn u2", "turn u3", "turn u4", "turn u5"]
    assert [m.id for m in session.path if m.role == "user"] == ["u1", "u2", "u3", "u4", "u5"]


def test_4_queue_keeps_what_a_client_sent_beside_its_message() -> None:
    """Its tools and context are those of the turn that starts later."""
    session = busy()
    session.do(append(user("u2"), queue=True, client=PICK))
    end(session)
    assert the_turn(session).client == PICK
    session.do(append(user("u3"), queue=True))
    session.reply("ok")
    assert the_turn(session).client == ClientContext()


def test_4_queue_keeps_several_messages_together() -> None:
    """One input is one turn."""
    session = busy()
    session.do(append(user("u2"), user("u3"), queue=True))
    happened = end(session)
    assert [message_id for message_id, _ in recorded(happened)][1:] == ["u2", "u3"]
    assert names(happened).count("turn.started") == 1


def test_4_queue_is_known_to_views() -> None:
    """A page that shows what it has sent adds nothing with it."""
    session = busy("u2")
    assert session.do(view(*session.path, user("u2"))) == []
    assert session.do(append(user("u2"), queue=True)) == []
    assert turn_of(session) == "turn u2"


def test_4_queue_asks_the_worker_about_its_input() -> None:
    """`client.messages` in the new turn, with the place of the new messages on the path."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.do(append(user("u1"), turn_id="first"))
    session.do(append(user("u2"), queue=True, turn_id="second"))
    happened = session.answer(Done(), messages=[user("u1")])
    assert names(happened)[-2:] == ["turn.started", "decision.requested"]
    trigger = session.trigger
    assert isinstance(trigger, ClientMessages)
    assert (session.out.turn_id, trigger.new_from, ids(trigger.messages)) == ("second", 1, ["u2"])


@pytest.mark.parametrize("how", ["done", "worker_error", "provider_error"])
def test_4_queue_starts_however_the_turn_ends_by_itself(how: str) -> None:
    """An error of the turn before is no reason to throw input away."""
    session = Session(
        agent(wants=frozenset({"client.messages"} if how != "provider_error" else ()))
    )
    session.do(append(user("u1"), turn_id="first"))
    session.do(append(user("u2"), queue=True, turn_id="second"))
    error = Error(code=how, message="x")
    match how:
        case "done":
            session.answer(Done())
        case "worker_error":
            session.do(cmd.FailDecision(decision_id=session.out.id, attempt=1, error=error))
        case _:
            session.do(cmd.FailCall(call_id=session.model_call.id, attempt=1, error=error))
    assert error_of(session, "first") == (None if how == "done" else how)
    assert the_turn(session).id == "second"


@LIVES
def test_4_queue_is_dropped_when_the_turn_is_cancelled(life: str) -> None:
    """Each is named; nothing of them starts then or later, and their messages are not known."""
    session = busy("u2", "u3", life=life)
    session.do(cmd.CancelSession())
    assert by_turn(session, ev.TurnDropped) == [
        ("turn.dropped", "turn u2"),
        ("turn.dropped", "turn u3"),
    ]
    assert session.state.control.queue == ()
    session.say("u9")
    session.reply("ok")
    assert session.state.control.turns == ()
    assert [m.id for m in session.path if m.role == "user"] == ["u1", "u9"]
    assert "turn.started" in names(session.do(append(user("u2"))))


def test_4_queue_behind_a_queued_turn_that_is_cancelled_is_dropped() -> None:
    """They waited for the one that runs now."""
    session = busy("u2", "u3")
    end(session)
    assert the_turn(session).id == "turn u2"
    session.do(cmd.CancelSession())
    assert by_turn(session, ev.TurnDropped) == [("turn.dropped", "turn u3")]


def test_4_queue_waits_through_a_pause() -> None:
    """A question does not start it, nor its answer; the end of the turn does."""
    session = busy("u2")
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    session.finish("c1")
    assert waiting(session) == ["turn u2"]
    session.resume(True)
    assert waiting(session) == ["turn u2"]
    assert "turn.started" in names(session.reply("ok"))
    assert ids(sent(session))[-1] == "u2"


def test_4_queue_waits_through_a_wait_for_the_frontend() -> None:
    """Other input joins meanwhile; what was queued still comes after the turn."""
    session = picking(replace(SEND, id="c2"))
    session.do(append(user("u2"), queue=True, turn_id="second"))
    session.finish("c2")
    session.do(view(*session.path, user("u3")))
    assert waiting(session) == ["second"]
    session.reply("ok")
    assert [m.id for m in session.path if m.role == "user"] == ["u1", "u3", "u2"]


def left(life: str = "one process") -> Session:
    """u2 waits behind a turn that is paused, and whose branch was left."""
    session = busy("u2", life=life)
    release(session)
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    session.do(view(user("edit")))
    return session


@LIVES
def test_4_queue_stays_with_a_turn_that_is_parked(life: str) -> None:
    """Neither does another turn's end start it, nor does it keep others from starting."""
    session = left()
    path = session.state.tree.path(session.state.end_of("first"))
    session.do(append(user("u9"), queue=True, turn_id="other"))
    if life == "restarted":
        restart(session)
    assert "turn.started" in names(session.reply("instead"))
    assert the_turn(session).id == "other"
    session.reply("ok")
    assert waiting(session) == ["turn u2"]
    assert session.state.control.turns[0].id == "first"

    session.do(view(*(node.message for node in path)))
    assert waiting(session) == ["turn u2"]
    session.resume(True)
    happened = session.reply("ok")
    assert names(happened)[-3:] == ["turn.started", "message.new", "llm.call.requested"]
    assert [m.id for m in session.path if m.role == "user"] == ["u1", "u2"]


@LIVES
def test_4_queue_is_dropped_when_the_turn_is_abandoned(life: str) -> None:
    """In the commit that abandons it; the turn on the other branch is not touched."""
    session = left(life)
    session.do(append(user("u9"), queue=True, turn_id="other"))
    session.resume(True, interrupt_id="i1")
    assert error_of(session, "first") == "abandoned"
    assert by_turn(session, ev.TurnDropped) == [("turn.dropped", "turn u2")]
    assert waiting(session) == ["other"]


def test_4_queue_of_several_turns_is_dropped_by_a_cancel() -> None:
    """Behind the parked turn and behind the active one."""
    session = left()
    session.do(append(user("u9"), queue=True, turn_id="other"))
    session.do(cmd.CancelSession())
    dropped = {turn_id for _, turn_id in by_turn(session, ev.TurnDropped)}
    assert dropped == {"turn u2", "other"}
    assert session.state.control.queue == ()


def test_4_queue_survives_a_worker_that_records_its_message() -> None:
    """An id that waits is known: the turn behind it starts all the same, and it stands once."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished"})))
    session.do(append(user("u1"), turn_id="first"))
    session.reply(None, SEND)
    session.do(append(user("u2"), turn_id="second", queue=True))
    session.finish("c1")
    session.answer(messages=[user("u2")])
    if any(decision.is_out for decision in session.state.control.decisions):
        session.answer()
    assert the_turn(session).id == "second"
    assert ids(session.path).count("u2") == 1
