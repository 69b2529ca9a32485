"""Clearing an interrupt: each row of the table, and what is proposed.

Source: `protocol.md` section 6, "Resume", its table, and "`proposed` for".
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.due import wake_at
from engine.core.errors import Forbidden, InvalidInput
from engine.core.messages import ToolCall
from engine.core.worker import Interrupt, InterruptResumed
from tests.core.given import Session, agent, names, tool
from tests.protocol.calls import (
    PICK,
    answered,
    as_machine,
    attempts,
    call,
    come_back,
    gating,
    hold,
    leave,
    only,
    questions,
    running_own,
    started,
    take_all,
    told,
    worker_tool,
)

RESUMED = frozenset({"interrupt.resumed"})
GATE = frozenset({"tool.execute"})


def question(interrupt_id: str = "q", **more: Any) -> Interrupt:
    """What a worker asks a person."""
    return Interrupt(reason="confirm", interrupt_id=interrupt_id, **more)


def asked(*, wants: frozenset[str] = GATE | RESUMED, calls: Sequence[ToolCall] = ()) -> Session:
    """A worker that gates a call has asked a person about it: `q`, which holds `c1`."""
    session = Session(agent(tool("send"), worker_tool(), wants=wants))
    session.say(client=PICK)
    session.reply(None, *(calls or (call(),)))
    session.answer(question())
    return session


def resumed(session: Session) -> InterruptResumed:
    """The answer that the worker is told."""
    assert isinstance(session.trigger, InterruptResumed)
    return session.trigger


# ------------------------------------------------------- status, payload, answer


def test_6_resume_is_recorded_with_status_payload_and_responder() -> None:
    """The payload is what was sent; who sent it is the channel's word."""
    session = asked()
    happened = session.resume({"n": 1}, "q", responder={"channel": "slack", "user": "U1"})
    ended = only(happened, ev.SessionInterruptResumed)
    assert (ended.interrupt_id, ended.status) == ("q", "resolved")
    assert ended.payload == {"n": 1}
    assert ended.responder == {"channel": "slack", "user": "U1"}


@pytest.mark.parametrize("caller", ["client", "machine"])
def test_6_resume_a_payloads_own_responder_is_removed(caller: Any) -> None:
    """A payload proves nothing about who answered, in the event and in the trigger."""
    session = asked()
    claimed = answered("q", {"n": 1, "status": "expired", "responder": {"user": "root"}})
    session.do(cmd.ResumeInterrupt(answer=claimed, caller=caller))
    trigger = resumed(session)
    assert trigger.payload == {"n": 1, "status": "expired"}
    assert (trigger.status, trigger.responder) == ("resolved", None)


def test_6_resume_answer_is_the_payload() -> None:
    """Of a question without a choice."""
    session = asked()
    session.resume({"n": 1}, "q")
    assert resumed(session).answer == {"n": 1}


def test_6_resume_answer_is_the_chosen_value() -> None:
    """Of a choice, where the payload also says how it was resolved."""
    session = gating(wants=GATE | RESUMED)
    options = [{"label": "Yes", "value": ["a", 1]}]
    session.answer(question(payload={"metadata": {"options": options}}))
    session.resume(["a", 1], "q")
    trigger = resumed(session)
    assert trigger.answer == ["a", 1]
    assert trigger.payload == {"status": "resolved", "payload": ["a", 1]}


@pytest.mark.parametrize("how", ["cancelled", "expired"])
def test_6_resume_answer_is_null_unless_resolved(how: str) -> None:
    """Given up, or taken back: there is no answer, and the payload says why."""
    session = gating(wants=GATE | RESUMED)
    session.answer(question(payload={"expiresAt": "2026-01-01T00:00:10Z"}))
    if how == "cancelled":
        session.resume(interrupt_id="q", cancelled=True, payload={"approved": True})
    else:
        session.wait(seconds=10)
        session.do(cmd.PassTime())
    trigger = resumed(session)
    assert (trigger.status, trigger.answer) == (how, None)
    assert trigger.payload == {"status": how}


@pytest.mark.parametrize("said", [False, 0, "", None, [], {}], ids=repr)
def test_6_resume_the_presence_of_an_answer_decides(said: object) -> None:
    """What Python finds empty is an answer all the same."""
    session = asked()
    session.resume(said, "q")
    trigger = resumed(session)
    assert (trigger.status, trigger.answer) == ("resolved", said)
    assert questions(session) == []


# ------------------------------------------------------------------- the rows


def test_6_resume_row_1_open_and_pauses_the_active_branch() -> None:
    """Cleared; the worker is told, in the same turn."""
    session = asked()
    [turn] = session.state.control.turns
    happened = names(session.resume(True, "q"))
    assert happened == ["session.interrupt_resumed", "decision.requested"]
    assert session.out.turn_id == turn.id


def test_6_resume_row_2_other_interrupts_still_pause_the_branch() -> None:
    """Cleared; its trigger waits."""
    session = asked()
    hold(session)
    happened = names(session.resume(True, "q"))
    assert happened == ["session.interrupt_resumed", "decision.waiting"]
    assert questions(session) == ["hold"]


def test_6_resume_row_2_the_answers_go_out_first_in_their_order() -> None:
    """Then what was held, as it came."""
    both = frozenset({"tool.finished", "client.action", "interrupt.resumed"})
    session = Session(agent(tool("send"), wants=both))
    session.say()
    session.reply(None, call())
    for interrupt_id in ("q1", "q2", "q3"):
        hold(session, interrupt_id)
    session.finish("c1")
    session.do(cmd.TakeAction(name="refresh"))
    for interrupt_id in ("q3", "q1", "q2"):
        session.resume(True, interrupt_id)
    order: list[str] = []
    while session.state.control.decisions:
        trigger = session.trigger
        is_answer = isinstance(trigger, InterruptResumed)
        order.append(trigger.interrupt_id if is_answer else trigger.type)
        session.answer()
    assert order == ["q3", "q1", "q2", "tool.finished", "client.action"]


def test_6_resume_row_2_paused_again_in_between_holds_the_rest_again() -> None:
    """The worker asks again in answer to the first."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished", *RESUMED})))
    session.say()
    session.reply(None, call())
    hold(session, "q1")
    session.finish("c1")
    session.resume(True, "q1")
    session.answer(question("q2"))
    assert not any(decision.is_out for decision in session.state.control.decisions)
    session.resume(True, "q2")
    assert resumed(session).interrupt_id == "q2"
    session.answer()
    assert session.trigger.type == "tool.finished"


def test_6_resume_row_3_on_a_branch_that_is_not_active() -> None:
    """Cleared; nothing is sent, and the turn that waited for it is over."""
    session = asked()
    leave(session)
    happened = session.resume(True, "q")
    assert questions(session) == []
    assert started(happened) == []
    assert "decision.requested" not in names(happened)
    error = only(happened, ev.TurnCompleted).error
    assert error is not None
    assert error.code == "abandoned"


@pytest.mark.parametrize("answer", [True, False], ids=["approved", "declined"])
@pytest.mark.parametrize("wants", [GATE, GATE | RESUMED], ids=["gate", "gate and answers"])
def test_6_resume_row_3_the_turn_still_ends_when_its_branch_comes_back(
    wants: frozenset[str],
    answer: bool,  # noqa: FBT001
) -> None:
    """One of two questions is answered meanwhile, the other on coming back: no call hangs."""
    session = asked(wants=wants)
    hold(session)
    path = leave(session)
    session.resume(answer, "q")
    come_back(session, path)
    session.resume(True, "hold")
    for _ in range(9):
        if not session.state.control.turns:
            break
        take_all(session)
        if attempts(session).get("c1"):
            session.finish("c1")
        elif session.state.control.calls and session.state.control.calls[0].kind == "llm":
            session.reply("done")
    assert session.state.control.turns == ()


def test_6_resume_row_3_a_workers_own_call_does_not_hang_when_its_branch_comes_back() -> None:
    """Its worker had asked a person; the answer came while the branch was left."""
    session = running_own()
    session.answer(question())
    hold(session)
    path = leave(session)
    session.resume("tomorrow", "q")
    come_back(session, path)
    session.resume(True, "hold")
    is_asked = any(decision.is_out for decision in session.state.control.decisions)
    assert is_asked or attempts(session) == {}


@pytest.mark.parametrize("how", ["declined", "given up"])
def test_6_resume_row_3_a_call_that_was_declined_meanwhile_does_not_run(how: str) -> None:
    """Two calls were asked about; one answer came while the branch was left."""
    session = Session(agent(tool("send"), wants=frozenset({"llm.finished"})))
    session.say()
    session.reply(None, call(), call("c2"))
    proposal = told(session).proposed
    asks = [question(f"q{n}", payload={"toolCallId": f"c{n}"}) for n in (1, 2)]
    session.answer(*proposal.actions, *asks, messages=proposal.messages)
    path = leave(session)
    session.resume(False, "q1", cancelled=how == "given up")
    come_back(session, path)
    assert started(session.resume(True, "q2")) == ["c2"]


@pytest.mark.parametrize("interrupt_id", ["nobody", "q"], ids=["unknown", "already resumed"])
def test_6_resume_row_4_old_and_unknown_ids(interrupt_id: str) -> None:
    """Nothing happens and nothing is recorded; the reply says that it cleared nothing."""
    session = asked()
    session.resume(True, "q")
    assert session.receipt is not None
    assert session.receipt.cleared == ("q",)
    assert session.resume(False, interrupt_id) == []
    assert session.receipt.cleared == ()


@pytest.mark.parametrize("late", ["the clock", "the answer"])
def test_6_resume_row_5_past_its_expiry(late: str) -> None:
    """Cleared first, as expired, also when nobody was there at that time."""
    session = gating()
    session.answer(question(payload={"expiresAt": "2026-01-01T00:00:10Z"}))
    assert wake_at(session.state) == session.now + timedelta(seconds=10)
    session.wait(days=30)
    happened = session.do(cmd.PassTime()) if late == "the clock" else session.resume(True, "q")
    ended = only(happened, ev.SessionInterruptResumed)
    assert (ended.status, ended.payload) == ("expired", {"status": "expired"})
    assert started(happened) == []
    assert session.receipt is not None
    assert session.receipt.cleared == ()


@pytest.mark.parametrize(
    "said",
    [
        "tomorrow",
        "",
        5,
        "2026-02-01",
        "2026-02-01T00:00:00",
        "2026-02-01T00:00Z",
        "20260201T000000Z",
        "2026-W06-1T00:00:00Z",
        "2026-02-01T00:00:00+01",
        "2026-02-01T00:00:00+00:00:30",
        "2026-02-01T00:00:00,5Z",
    ],
    ids=repr,
)
def test_6_resume_row_5_an_expiry_that_is_not_rfc_3339_is_refused(said: object) -> None:
    """When it is raised: no offset, no seconds, another notation, no moment at all."""
    session = Session()
    with pytest.raises(InvalidInput) as refused:
        hold(session, payload={"expiresAt": said})
    assert refused.value.field == "payload.expiresAt"


@pytest.mark.parametrize("said", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_6_resume_row_5_an_expiry_at_the_end_of_the_calendar_is_taken_or_refused(said: str) -> None:
    """It is no reason to break down."""
    session = Session()
    with suppress(InvalidInput):
        hold(session, payload={"expiresAt": said})


@pytest.mark.parametrize(
    "said",
    ["2026-02-01T00:00:00Z", "2026-02-01T01:00:00+01:00", "2026-01-31T23:00:00.000-01:00"],
)
def test_6_resume_row_5_an_expiry_in_rfc_3339_is_taken(said: str) -> None:
    """Whatever its offset, it is the same moment."""
    session = Session()
    hold(session, payload={"expiresAt": said})
    assert wake_at(session.state) == datetime(2026, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize("given_up", [True, False], ids=["given up", "answered"])
def test_6_resume_row_6_answerable_by_a_higher_caller_only(
    given_up: bool,  # noqa: FBT001
) -> None:
    """A client may neither answer nor give it up; a machine may."""
    session = gating()
    session.answer(question(answer_by="machine"))
    with pytest.raises(Forbidden):
        session.resume(True, "q", cancelled=given_up)
    assert questions(session) == ["q"]
    as_machine(session, True)
    assert questions(session) == []


def test_6_resume_row_5_past_its_expiry_on_a_branch_that_was_left() -> None:
    """Taken back all the same; nothing is sent, and the turn that waited is over."""
    session = gating()
    session.answer(question(payload={"expiresAt": "2026-01-01T00:00:10Z"}))
    leave(session)
    session.wait(seconds=10)
    happened = session.do(cmd.PassTime())
    assert only(happened, ev.SessionInterruptResumed).status == "expired"
    assert "decision.requested" not in names(happened)
    assert only(happened, ev.TurnCompleted).error is not None
