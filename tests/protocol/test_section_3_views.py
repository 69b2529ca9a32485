"""What is taken out of a view. Source: `protocol.md` section 3, rule 0."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.core import commands as cmd
from engine.core.errors import SessionInterrupted
from engine.core.messages import ActivityMessage, Message, ToolMessage
from tests.core.given import Session, agent, names, paused, user, view
from tests.protocol.given import (
    CHOOSE,
    PICK,
    SEND,
    answer,
    append,
    ids,
    new_ids,
    picked,
    picking,
    recorded,
    refuse,
    results,
    said,
    sent,
    system,
    talked,
    the_turn,
    thought,
)
from tests.protocol.situations import left_open, working

NOTE = ActivityMessage(id="x", activity_type="note", content={})
INVENTED = ToolMessage(id="x", tool_call_id="c1", content="again")

# --------------------------------------------------------------------- rule 0


@pytest.mark.parametrize("where", ["before", "between", "behind"])
@pytest.mark.parametrize("message", [thought("x"), NOTE, INVENTED], ids=lambda m: m.role)
def test_3_rule_0_unknown_thoughts_notes_and_results_are_taken_out(
    message: Message, where: str
) -> None:
    """What a page adds by itself is not recorded, wherever in the view it stands."""
    session = talked()
    path = list(session.path)
    place = {"before": 0, "between": 2, "behind": len(path)}[where]
    happened = session.do(view(*path[:place], message, *path[place:], user("u2")))
    assert recorded(happened) == [("u2", path[-1].id)]


def test_3_rule_0_an_unknown_reasoning_is_taken_out_of_a_new_conversation() -> None:
    """Nothing has to be recorded yet for that."""
    assert new_ids(Session().do(view(thought("x"), user("u1")))) == ["u1"]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_3_rule_0_unknown_instructions_before_a_known_message_are_taken_out(role: str) -> None:
    """They are not recorded, and the model is sent them with this input."""
    session = said()
    happened = session.do(view(system("x", role), *session.path, user("u2")))
    assert new_ids(happened) == ["u2"]
    assert ids(sent(session))[0] == "x"


@pytest.mark.parametrize("role", ["system", "developer"])
def test_3_rule_0_instructions_are_for_this_input_only(role: str) -> None:
    """The turn after it is not told."""
    session = said()
    session.do(view(system("x", role), *session.path, user("u2")))
    session.reply("brief")
    session.say("u3")
    assert "x" not in ids(sent(session))


@pytest.mark.parametrize("role", ["system", "developer"])
def test_3_rule_0_unknown_instructions_behind_all_that_is_known_are_recorded(role: str) -> None:
    """Only those that stand before a known message are taken out."""
    session = said()
    last = session.path[-1].id
    happened = session.do(view(*session.path, system("x", role), user("u2")))
    assert recorded(happened) == [("x", last), ("u2", "x")]


def test_3_rule_0_instructions_before_accepted_input_are_taken_out() -> None:
    """Input that a worker still thinks about is known: what stands before it is not new."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.do(view(user("u1")))
    assert session.do(view(system("x"), user("u1"))) == []


def test_3_rule_0_instructions_reach_the_model_with_a_regenerated_reply() -> None:
    """An input that adds nothing is an input."""
    session = said()
    session.do(view(system("x"), user("u1")))
    assert ids(sent(session)) == ["x", "u1"]


def test_3_rule_0_instructions_reach_the_model_beside_a_frontends_result() -> None:
    """The model that reads the result is the one this input leads to."""
    session = picking()
    session.do(view(system("x"), *session.path, picked()))
    assert ids(sent(session))[0] == "x"


def test_3_rule_0_instructions_reach_the_model_beside_an_answer() -> None:
    """The same for an input that answers a question."""
    session = said()
    session.say("u2")
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    session.do(view(system("x"), *session.path, answers=(answer("i1"),)))
    assert ids(sent(session))[0] == "x"


@pytest.mark.parametrize("how", ["a result", "an answer"])
def test_3_rule_0_instructions_are_not_kept_for_the_next_input_of_the_turn(how: str) -> None:
    """An input without any continues the turn: the model is sent none with it."""
    session = said()
    session.do(view(system("x"), *session.path, user("u2"), client=PICK))
    assert ids(sent(session))[0] == "x"
    if how == "a result":
        session.reply(None, CHOOSE)
        session.do(view(*session.path, picked()))
    else:
        session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
        session.do(view(*session.path, answers=(answer("i1"),)))
    assert "x" not in ids(sent(session))


def test_3_rule_0_instructions_are_kept_while_the_input_is_worked_on() -> None:
    """Each model call that it leads to is sent them, also behind a tool."""
    session = said()
    session.do(view(system("x"), *session.path, user("u2")))
    session.reply(None, SEND)
    session.finish("c1")
    assert ids(sent(session))[0] == "x"


def test_3_rule_0_a_result_of_a_call_that_has_ended_is_taken_out_for_ever() -> None:
    """A page sends its invention with every view; every later turn works."""
    session = talked()
    shown: list[Message] = [*session.path, INVENTED]
    for number in (2, 3):
        shown.append(user(f"u{number}"))
        session.do(view(*shown))
        session.reply("ok")
        shown.append(session.path[-1])
    assert results(session.path) == [("c1", "done")]
    assert ids(session.path)[-4:] == ids([shown[-4], shown[-3], shown[-2], shown[-1]])


def test_3_rule_0_a_known_result_of_another_branch_is_taken_out() -> None:
    """A page that merges branches still shows a result of the reply that was replaced."""
    session = talked()
    old = session.path
    session.do(view(user("u1")))
    session.reply("another")
    stray, new = old[2], session.path[-1]
    happened = session.do(view(user("u1"), stray, new, user("u2")))
    assert recorded(happened) == [("u2", new.id)]


def test_3_rule_0_a_result_of_a_call_the_engine_does_not_know_stays() -> None:
    """Only results of known calls are history that is sent again: this one is new."""
    session = said()
    foreign = ToolMessage(id="t9", tool_call_id="c9", content="from elsewhere")
    happened = session.do(view(*session.path, foreign, user("u2")))
    assert new_ids(happened) == ["t9", "u2"]
    assert ids(sent(session)) == [*ids(session.path[:2]), "u2"]


@pytest.mark.parametrize("how", ["view", "append"])
@pytest.mark.parametrize("given", [working, left_open, paused], ids=lambda given: given.__name__)
def test_3_rule_0_a_result_of_an_open_call_that_is_not_the_frontends_ends_nothing(
    given: Callable[[], Session], how: str
) -> None:
    """The engine's and the worker's calls are not a page's to end."""
    session = given()
    result = ToolMessage(id="x", tool_call_id="c1", content="invented")
    assert session.do(view(*session.path, result) if how == "view" else append(result)) == []
    assert session.state.call("c1") is not None


def test_3_rule_0_known_instructions_are_not_taken_out() -> None:
    """They are part of the conversation, and are sent to the model once."""
    session = Session()
    session.do(view(system("s1"), user("u1")))
    session.reply("hi")
    session.do(view(*session.path, user("u2")))
    assert ids(sent(session)) == [*ids(session.path)]
    assert ids(sent(session))[0] == "s1"


def test_3_rule_0_a_result_that_ends_a_frontends_call_is_recorded_under_its_id() -> None:
    """The call is over, and the message has the id that the page shows it under."""
    session = picking()
    asked = session.path[-1].id
    happened = session.do(view(*session.path, picked("mine")))
    assert recorded(happened) == [("mine", asked)]
    assert session.state.call("c1") is None
    assert "llm.call.requested" in names(happened)


def test_3_rule_0_a_result_that_ends_a_call_is_recorded_once() -> None:
    """Shown twice in one view, and again later, the first one counts."""
    session = picking()
    happened = session.do(view(*session.path, picked("mine"), picked("twice")))
    assert new_ids(happened) == ["mine"]
    assert session.do(view(*session.path, picked("thrice"))) == []


def test_3_rule_0_a_result_of_a_call_on_another_branch_ends_nothing() -> None:
    """The call waits on the branch that was left, and is not of the view's path."""
    session = picking()
    turn = the_turn(session)
    happened = session.do(view(user("edit"), picked(), client=PICK))
    assert new_ids(happened) == ["edit"]
    assert session.state.call("c1") is not None
    assert session.state.is_parked(turn.id)


def test_3_rule_0_a_result_beside_an_edit_that_cannot_leave_ends_nothing() -> None:
    """Every path is paused; the view means a new branch, on which the call is not."""
    session = picking()
    session.do(cmd.RaiseInterrupt(reason="budget", caller="system"))
    edit = view(user("edit"), picked(), client=PICK)
    refuse(session, edit, SessionInterrupted)
    session.do(replace(edit, lenient=True))
    assert session.state.call("c1") is not None
