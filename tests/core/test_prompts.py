"""Prompts: choices, schemas, who may answer, and until when (`protocol.md` 6)."""

from datetime import timedelta

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.due import wake_at
from engine.core.errors import Forbidden, InvalidAnswer, InvalidInput
from engine.core.worker import Interrupt
from tests.core.given import Session, agent, names, paused

OPTIONS = [{"label": "Yes", "value": "yes"}, {"label": "Never", "value": {"never": True}}]


def test_a_choice_is_answered_by_an_offered_value_only() -> None:
    """Nothing that was not offered can be sent; the question stays open."""
    session = paused(message="Send?", metadata={"options": OPTIONS})
    with pytest.raises(InvalidAnswer):
        session.resume("maybe")
    with pytest.raises(InvalidAnswer):
        session.resume({"never": 1})
    assert len(session.state.control.interrupts) == 1


def test_the_record_of_a_choice_names_the_value_and_the_responder() -> None:
    """`status`, `payload` and `responder` are the engine's and the channel's word."""
    session = paused(metadata={"options": OPTIONS})
    responder = {"channel": "ag-ui", "user": "ada"}
    happened = session.resume({"never": True}, responder=responder)

    resumed = happened[0]
    assert isinstance(resumed, ev.SessionInterruptResumed)
    assert resumed.payload == {
        "status": "resolved",
        "payload": {"never": True},
        "responder": responder,
    }
    assert resumed.responder == responder


def test_a_requester_cannot_say_who_answered() -> None:
    """A top-level `responder` in a payload is removed; a payload proves nothing."""
    session = paused()
    happened = session.resume({"approved": True, "responder": {"user": "root"}})

    resumed = happened[0]
    assert isinstance(resumed, ev.SessionInterruptResumed)
    assert resumed.payload == {"approved": True}
    assert resumed.responder is None


def test_a_schema_is_enforced() -> None:
    """A mismatch leaves the interrupt open, and says where."""
    session = paused(responseSchema={"type": "object", "properties": {"n": {"type": "integer"}}})
    with pytest.raises(InvalidAnswer, match="n: 'x' is not of type 'integer'"):
        session.resume({"n": "x"})
    assert "session.interrupt_resumed" in names(session.resume({"n": 1}))


def test_a_question_for_machines_is_not_a_clients_to_answer() -> None:
    """403 at the border; it stays open."""
    session = Session()
    session.do(cmd.RaiseInterrupt(reason="r", answer_by="machine", caller="machine"))
    with pytest.raises(Forbidden):
        session.resume(True)
    with pytest.raises(Forbidden):
        session.resume(cancelled=True)
    answer = cmd.Answer(interrupt_id=session.state.control.interrupts[0].id, payload=1)
    happened = session.do(cmd.ResumeInterrupt(answer=answer, caller="machine"))
    assert names(happened) == ["session.interrupt_resumed"]


# ------------------------------------------------------------------- expiry


SOON = "2026-01-01T01:00:00+01:00"
"""An hour east of it: the moment the tests start at, so everything later is too late."""

LATER = "2026-01-01T00:00:10Z"


def test_a_question_is_taken_back_by_the_engines_own_clock() -> None:
    """Status `expired`; the held call is declined and the turn goes on."""
    session = paused(message="Send?", expiresAt=LATER)
    assert wake_at(session.state) == session.now + timedelta(seconds=10)
    session.wait(seconds=10)
    happened = session.do(cmd.PassTime())

    resumed = happened[0]
    assert isinstance(resumed, ev.SessionInterruptResumed)
    assert (resumed.status, resumed.payload) == ("expired", {"status": "expired"})
    assert "call.started" not in names(happened)
    assert "llm.call.requested" in names(happened)


def test_an_answer_that_comes_too_late_meets_an_old_id() -> None:
    """Also when the engine was down at that time: it is cleared first."""
    session = paused(expiresAt=LATER)
    session.wait(days=1)
    happened = session.resume(True)
    assert names(happened).count("session.interrupt_resumed") == 1
    assert "call.started" not in names(happened)
    assert session.receipt is not None
    assert session.receipt.cleared == ()


@pytest.mark.parametrize(
    "said", ["tomorrow", "2026-01-01T00:00:10", "9999-12-31T23:59:59-12:00", 5, ""], ids=repr
)
def test_an_expiry_that_is_no_moment_is_refused(said: object) -> None:
    """When raised: a worker is asked again, a client is told."""
    session = Session()
    with pytest.raises(InvalidInput):
        session.do(cmd.RaiseInterrupt(reason="r", payload={"expiresAt": said}))
    worker = Session(agent(wants=frozenset({"client.messages"})))
    worker.say()
    happened = worker.answer(Interrupt(reason="r", payload={"expiresAt": said}))
    assert names(happened) == ["decision.errored"]


def test_an_expiry_in_the_past_is_over_at_the_next_command() -> None:
    """Whatever its offset says."""
    session = paused(expiresAt=SOON)
    assert names(session.do(cmd.PassTime()))[0] == "session.interrupt_resumed"
