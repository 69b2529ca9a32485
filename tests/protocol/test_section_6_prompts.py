"""Answering a prompt: choices, schemas, plain questions, and who answered.

Source: `protocol.md` section 6, "The rest of the tree" and "Answer a prompt".
"""

from collections.abc import Sequence
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import InvalidAnswer
from engine.core.interrupts import is_paused
from engine.core.worker import Interrupt, InterruptResumed
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.calls import (
    NO,
    YES,
    answered,
    as_machine,
    attempts,
    call,
    come_back,
    gating,
    leave,
    only,
    questions,
    started,
)

OPTIONS = [
    {"label": "Approve", "value": {"decision": "approve"}, "style": "primary"},
    {"label": "Later", "value": 1},
    {"label": "Never", "value": False},
]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SLACK = {"channel": "slack", "user": "U1", "label": "Approve", "style": "primary"}


def asked(*, wants: frozenset[str] = frozenset(), **payload: Any) -> Session:
    """Somebody asks a person `q` while a worker is about to run a function tool."""
    session = gating(wants=frozenset({"tool.execute"}) | wants)
    session.answer(Interrupt(reason="confirm", interrupt_id="q", payload=payload))
    return session


def ended(happened: Sequence[ev.Body]) -> ev.SessionInterruptResumed:
    """How the question ended."""
    return only(happened, ev.SessionInterruptResumed)


# ---------------------------------------------------------------------- a choice


@pytest.mark.parametrize("value", [{"decision": "approve"}, 1, False], ids=repr)
def test_6_prompt_a_choice_is_one_of_the_values_offered(value: object) -> None:
    """What is recorded is the value, and that it was chosen."""
    happened = asked(metadata={"options": OPTIONS}).resume(value, "q")
    assert ended(happened).payload == {"status": "resolved", "payload": value}


@pytest.mark.parametrize(
    "value",
    [
        {"decision": "destroy"},
        {"decision": "approve", "and": "more"},
        {},
        "Approve",
        True,
        0,
        None,
        {"status": "resolved", "payload": 1},
    ],
    ids=repr,
)
def test_6_prompt_nothing_that_was_not_offered_can_be_sent(value: object) -> None:
    """By a client; the question stays open. `1` is not `true`, nor `0` `false`."""
    session = asked(metadata={"options": OPTIONS})
    with pytest.raises(InvalidAnswer) as refused:
        session.resume(value, "q")
    assert refused.value.interrupt_id == "q"
    assert questions(session) == ["q"]


@pytest.mark.parametrize("value", ["anything", None, {"decision": "destroy"}], ids=repr)
@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["no schema", "schema"])
def test_6_prompt_a_machines_answer_to_a_choice_is_free(schema: Any, value: object) -> None:
    """A backend may say what was not offered; a schema beside the options binds nobody."""
    more = {} if schema is None else {"responseSchema": schema}
    session = asked(metadata={"options": OPTIONS}, **more)
    happened = as_machine(session, value)
    assert ended(happened).status == "resolved"


def test_6_prompt_a_schema_beside_options_does_not_bind_the_choice() -> None:
    """The values that were offered are the answers."""
    session = asked(metadata={"options": OPTIONS}, responseSchema=SCHEMA)
    assert ended(session.resume(1, "q")).status == "resolved"


def test_6_prompt_the_channel_stamps_the_responder() -> None:
    """Who answered is in the event, in its payload, and in the trigger."""
    session = asked(wants=frozenset({"interrupt.resumed"}), metadata={"options": OPTIONS})
    who = {"channel": "slack", "user": "U1"}
    resumed = ended(session.resume(1, "q", responder=who))
    assert resumed.responder == who
    assert resumed.payload == {"status": "resolved", "payload": 1, "responder": who}
    assert isinstance(session.trigger, InterruptResumed)
    assert session.trigger.responder == who


@pytest.mark.parametrize("prompt", ["choice", "plain"])
def test_6_prompt_label_and_style_are_not_recorded(prompt: str) -> None:
    """They are for the channel's display: the engine drops them when the question is resolved."""
    payload = {"metadata": {"options": OPTIONS}} if prompt == "choice" else {"message": "Send?"}
    session = asked(wants=frozenset({"interrupt.resumed"}), **payload)
    resumed = ended(session.resume(1, "q", responder=SLACK))
    assert resumed.responder == {"channel": "slack", "user": "U1"}
    assert "style" not in repr(resumed.payload)
    assert isinstance(session.trigger, InterruptResumed)
    assert session.trigger.responder == {"channel": "slack", "user": "U1"}


def test_6_prompt_a_second_click_does_nothing() -> None:
    """Whatever it says."""
    session = asked(metadata={"options": OPTIONS})
    session.resume(1, "q")
    assert session.resume({"decision": "approve"}, "q") == []


# ---------------------------------------------------- a message, and nothing else


@pytest.mark.parametrize(("payload", "runs"), [(YES, True), (NO, False)], ids=["yes", "no"])
def test_6_prompt_a_message_is_approved_or_declined(payload: Any, runs: bool) -> None:  # noqa: FBT001
    """Without options and schema the plain payload is recorded as it is."""
    session = asked(message="Send the email?")
    happened = session.resume(payload, "q")
    assert ended(happened).payload == payload
    assert (started(happened) == ["c1"]) is runs


# ----------------------------------------------------------------------- a schema


@pytest.mark.parametrize("caller", ["client", "machine"])
def test_6_prompt_a_schema_without_options_is_enforced(caller: Any) -> None:
    """A mismatch leaves the question open, whoever answers; what fits is taken as it is."""
    session = asked(responseSchema=SCHEMA)
    for wrong in ({}, {"n": "x"}, 7, None):
        with pytest.raises(InvalidAnswer):
            session.do(cmd.ResumeInterrupt(answer=answered("q", wrong), caller=caller))
    assert questions(session) == ["q"]
    happened = session.do(cmd.ResumeInterrupt(answer=answered("q", {"n": 1}), caller=caller))
    assert ended(happened).payload == {"n": 1}


def test_6_prompt_giving_up_is_no_answer_to_a_schema() -> None:
    """Cancelling is always possible."""
    session = asked(responseSchema=SCHEMA, metadata={"options": OPTIONS})
    assert ended(session.resume(interrupt_id="q", cancelled=True)).payload == {
        "status": "cancelled"
    }


# ----------------------------------------------------------------- a worker's rules


def test_6_prompt_a_worker_may_have_its_own_rules() -> None:
    """The wrong person answered: it asks again, about the same call, and nothing runs."""
    session = asked(wants=frozenset({"interrupt.resumed"}), message="Send?")
    session.resume(YES, "q", responder={"channel": "slack", "user": "U1"})
    assert isinstance(session.trigger, InterruptResumed)
    assert session.trigger.responder == {"channel": "slack", "user": "U1"}
    session.answer(Interrupt(reason="confirm", interrupt_id="q", payload={"message": "The boss?"}))
    [again] = session.state.control.interrupts
    assert (again.id != "q", again.tool_call_id) == (True, "c1")
    assert attempts(session) == {"c1": 0}


# ----------------------------------------------------- the rest of the tree stays live


@pytest.mark.parametrize("how", ["edit", "other reply"])
def test_6_live_a_view_that_branches_above_the_anchor_leaves_the_pause(how: str) -> None:
    """Its messages are accepted and a new turn runs; the question stays on its branch."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply("hi")
    first = session.path
    session.say("u2")
    session.reply(None, call())
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    paused_path = session.path
    happened = session.do(view(*first, user("u3")) if how == "edit" else view(user("edit")))

    assert "turn.started" in names(happened)
    assert questions(session) == ["q"]
    session.reply("instead")
    come_back(session, paused_path)
    assert is_paused(session.state)
    assert started(session.resume(True, "q")) == ["c1"]


def test_6_live_an_answer_brings_its_branch_along() -> None:
    """A view of the paused branch with the answer: back, and on, in the same turn."""
    session = asked(message="Send?")
    [turn] = session.state.control.turns
    path = leave(session)
    happened = session.do(view(*path, answers=(answered("q", YES),)))
    assert started(happened) == ["c1"]
    assert [t.id for t in session.state.control.turns] == [turn.id]
