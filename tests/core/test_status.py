"""What things are doing, and the tables of their lives (`protocol.md` 4 to 8)."""

from collections import Counter
from typing import get_args

import pytest

from engine.core import commands as cmd
from engine.core import status as st
from engine.core.events import Body, TurnCompleted, TurnStarted
from engine.core.messages import ToolCall
from engine.core.worker import InterruptStatus, RunTool
from engine.store.codec import type_of
from tests.core.given import Session, agent, paused, tool, user, view
from tests.histories.judge import walk, walk_log

WORDS: dict[st.Kind, set[str]] = {
    "turn": {"queued", *get_args(st.TurnStatus)},
    "call": set(get_args(st.CallStatus)),
    "interrupt": {"open"},
    "decision": set(get_args(st.DecisionStatus)),
}
"""What something may be doing while it is not over."""

ENDS: dict[st.Kind, set[str]] = {
    "turn": {"completed", "dropped"},
    "call": {"completed", "errored", "voided"},
    "interrupt": set(get_args(InterruptStatus)),
    "decision": {"made", "dropped", "failed"},
}

every_kind = pytest.mark.parametrize("kind", get_args(st.Kind))

# ------------------------------------------------------------- the tables


@every_kind
def test_a_row_is_there_once(kind: st.Kind) -> None:
    """What an event makes of a thing has one row."""
    rows = Counter((step.before, step.event, step.after) for step in st.LIVES[kind])
    assert [row for row, times in rows.items() if times > 1] == []


@every_kind
def test_a_table_speaks_of_every_word_and_of_no_other(kind: st.Kind) -> None:
    """Each state is reached, each but the last ones is left, and nothing leaves those."""
    steps = st.LIVES[kind]
    moves = [step for step in steps if step.before != step.after]
    assert {step.after for step in moves} == WORDS[kind] | ENDS[kind]
    assert {step.before for step in moves} == WORDS[kind] | {None}


@every_kind
def test_a_table_names_events_that_exist(kind: st.Kind) -> None:
    """By their names on the wire, and says when in a few words."""
    types = {type_of(body) for body in get_args(Body)}
    for step in st.LIVES[kind]:
        assert step.event in types
        assert 0 < len(step.when) <= 60, step


# ------------------------------------------------------------------ by id


def test_what_never_was_is_nothing() -> None:
    """The words are there for every id, whatever it is."""
    state = Session().state
    assert st.status_of_turn(state, "nobody") is None
    assert st.status_of_turn(state, None) is None
    assert st.status_of_call(state, "nobody") is None
    assert st.status_of_interrupt(state, "nobody") is None
    assert st.status_of_decision(state, "nobody") is None
    assert st.open_things(state) == {}


def test_everything_open_says_what_it_is_doing() -> None:
    """By id, and all at once."""
    session = paused()
    [turn] = session.state.control.turns
    [question] = session.state.control.interrupts
    state = session.state
    assert st.status_of_turn(state, turn.id) == "paused"
    assert st.status_of_call(state, "c1") == "open"
    assert st.status_of_interrupt(state, question.id) == "open"
    assert st.open_things(state) == {
        ("turn", turn.id): "paused",
        ("call", "c1"): "open",
        ("interrupt", question.id): "open",
    }

    session.resume(True)
    assert st.status_of_turn(session.state, turn.id) == "running"
    assert st.status_of_call(session.state, "c1") == "running"
    assert st.status_of_interrupt(session.state, question.id) is None


def test_a_turn_in_the_queue_is_queued() -> None:
    """It has not started, and has an id already."""
    session = Session()
    session.say("u1")
    session.do(cmd.AppendMessages(messages=(user("u2"),), queue=True, turn_id="next"))
    assert st.status_of_turn(session.state, "next") == "queued"
    session.reply()
    assert st.status_of_turn(session.state, "next") == "running"


def test_a_turn_that_is_left_is_parked() -> None:
    """The one that took its place is the active one."""
    session = paused()
    [turn] = session.state.control.turns
    session.do(view(user("edit")))
    active = st.active_turn(session.state)
    assert active is not None
    assert st.status_of_turn(session.state, turn.id) == "parked"
    assert st.status_of_turn(session.state, active.id) == "running"


def test_a_turn_that_only_waits_for_the_page_waits() -> None:
    """Until something is to be decided."""
    session = Session(agent(wants=frozenset({"client.action"})))
    page = cmd.ClientContext(tools=({"name": "pick", "description": ""},))
    session.say("u1", client=page)
    session.reply(None, ToolCall(id="c1", name="pick"))
    [turn] = session.state.control.turns
    assert st.status_of_turn(session.state, turn.id) == "waiting"
    session.do(cmd.TakeAction(name="press"))
    assert st.status_of_turn(session.state, turn.id) == "running"


def test_a_decision_waits_is_out_or_is_held() -> None:
    """Held: its worker has answered, and what it starts waits for a person."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say("u1")
    asked = [ToolCall(id=name, name="send", arguments='{"to": "a"}') for name in ("c1", "c2")]
    session.reply(None, *asked)
    first, second = (d.id for d in session.state.control.decisions)
    assert st.status_of_decision(session.state, first) == "out"
    assert st.status_of_decision(session.state, second) == "waiting"

    session.do(cmd.RaiseInterrupt(reason="hold"))
    session.answer(RunTool())
    assert st.status_of_decision(session.state, first) == "held"
    session.resume("go on")
    assert st.status_of_decision(session.state, first) is None
    assert st.status_of_decision(session.state, second) == "out"


# -------------------------------------------------------------- the judge


def test_a_life_can_be_walked_in_parts() -> None:
    """The rows of a log are those of its parts, wherever it is cut."""
    session = paused()
    session.resume(True)
    session.finish("c1")
    session.reply("sent")
    whole = walk_log(session.log)
    for cut in range(len(session.log) + 1):
        first = Session(log=session.log[:cut])
        assert walk_log(first.log) | walk(first.refolded(), session.log[cut:]) == whole
    assert any(step.after == "completed" for kind, step in whole if kind == "turn")


def test_only_an_event_that_can_end_something_has_a_last_word() -> None:
    """The last words of all types of events are the ends of the tables."""
    words = {
        step.after for steps in st.LIVES.values() for step in steps if step.before != step.after
    }
    assert st.ending(TurnCompleted()) == "completed"
    assert st.ending(TurnStarted()) is None
    assert words - set().union(*WORDS.values()) == set().union(*ENDS.values())
