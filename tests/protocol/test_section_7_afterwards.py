"""What a cancel leaves behind. Source: `protocol.md` section 7, its last paragraph."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.core import commands as cmd
from engine.core.messages import NO_RESULT, AssistantMessage
from tests.core.given import Session, agent, names, paused, user, view
from tests.protocol.given import (
    append,
    ids,
    picking,
    restart,
    results,
    said,
    sent,
    system,
    the_turn,
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

OPEN: dict[str, Callable[[], Session]] = {
    "a model call": calling,
    "two tools": working_twice,
    "a question to the worker": deciding,
    "a worker's call": left_open,
    "a call that never started": unstarted,
    "a call of the frontend": picking,
    "a paused turn": paused,
    "a parked turn": left_twice,
    "a queued turn": queued,
}
EVERYTHING = pytest.mark.parametrize("given", OPEN.values(), ids=OPEN.keys())

# ------------------------------------------------------------------- one commit


@EVERYTHING
def test_7_in_one_commit_nothing_is_left_open(given: Callable[[], Session]) -> None:
    """Whatever was open; and the log folds to a session at rest."""
    session = given()
    cancel(session)
    control = session.refolded().control
    assert control.turns == control.queue == ()
    assert control.calls == control.decisions == ()
    assert control.interrupts == ()


# ------------------------------------------------------------------- afterwards


@EVERYTHING
def test_7_the_session_stays_usable(given: Callable[[], Session]) -> None:
    """The next message starts a new turn, and what the model is sent for it is valid."""
    session = given()
    cancel(session)
    worker_free = replace(session.spec, wants=frozenset[str]())
    session.spec = worker_free
    happened = session.say("next")
    assert "turn.started" in names(happened)
    transcript = sent(session)
    assert NO_RESULT not in [content for _, content in results(transcript)]
    for index, message in enumerate(transcript):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            behind = transcript[index + 1 : index + 1 + len(message.tool_calls)]
            assert [i for i, _ in results(behind)] == [call.id for call in message.tool_calls]
    assert session.reply("fine")[-1].type == "turn.completed"


@EVERYTHING
def test_7_twice_is_once(given: Callable[[], Session]) -> None:
    """The second cancel finds nothing open; after a restart neither."""
    session = given()
    assert cancel(session) != []
    assert cancel(session) == []
    restart(session)
    assert cancel(session) == []


def stopped() -> Session:
    """A session whose only turn was stopped."""
    session = Session()
    session.do(view(system("s1"), user("u1")))
    cancel(session)
    return session


NOTHING: dict[str, Callable[[], Session]] = {
    "a new session": Session,
    "an idle one": said,
    "one whose only turn was stopped": stopped,
}


@pytest.mark.parametrize("given", NOTHING.values(), ids=NOTHING.keys())
def test_7_nothing_open_is_no_event(given: Callable[[], Session]) -> None:
    """A session without an open turn, queue or question is not changed."""
    session = given()
    log = list(session.log)
    assert cancel(session) == []
    assert session.log == log


def test_7_nothing_open_leaves_an_action_alone() -> None:
    """A client's action outside any turn is no open turn, queue or question."""
    session = Session(agent(wants=frozenset({"client.action"})))
    session.do(cmd.TakeAction(name="press"))
    assert cancel(session) == []
    assert session.out.turn_id is None


def test_7_a_question_alone_is_open() -> None:
    """Beside an action that waits for it: both end."""
    session = Session(agent(wants=frozenset({"client.action"})))
    session.do(cmd.RaiseInterrupt(reason="check"))
    session.do(cmd.TakeAction(name="press"))
    assert sorted(names(cancel(session))) == ["decision.dropped", "session.interrupt_resumed"]


def test_7_a_cancelled_turn_is_not_taken_up_again() -> None:
    """Its id is used; a view of the same words is a new turn."""
    session = Session()
    session.do(append(user("u1"), turn_id="first"))
    cancel(session)
    assert session.do(append(user("u9"), turn_id="first")) == []
    session.do(view(user("u1")))
    assert the_turn(session).id != "first"
    assert ids(session.path) == ["u1"]
