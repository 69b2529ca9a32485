"""Where a view lands that was matched. Source: `protocol.md` section 3, rules 3 and 4."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.core import commands as cmd
from engine.core.errors import TurnAlreadyActive
from engine.core.messages import Message, ToolMessage
from engine.core.status import active_turn
from engine.core.worker import Interrupt
from tests.core.given import Session, agent, names, paused, tool, user, view
from tests.protocol.given import (
    CHOOSE,
    PICK,
    SEND,
    answer,
    branched,
    ids,
    new_ids,
    picked,
    picking,
    recorded,
    refuse,
    said,
    talked,
    the_turn,
    thought,
    turn_of,
)

REGENERATED = ["head.moved", "turn.started", "llm.call.requested"]

# --------------------------------------------------------------------- rule 3


def test_3_rule_3_a_view_that_ends_inside_the_tree_moves_the_head_there() -> None:
    """Nothing is recorded; the branch that was left stays."""
    session, old, new = branched()
    assert names(session.do(view(*old))) == ["head.moved"]
    assert session.path == old
    assert names(session.do(view(*new))) == ["head.moved"]
    assert session.path == new


def test_3_rule_3_a_view_that_ends_on_the_head_moves_nothing() -> None:
    """A reply that is shown as it is asks for nothing."""
    session = said()
    assert session.do(view(*session.path)) == []


def test_3_rule_3_a_view_that_ends_on_an_assistant_message_starts_nothing() -> None:
    """In the middle of a branch as at its end: the client looks elsewhere, that is all."""
    session = said()
    middle = session.path
    session.say("u2")
    session.reply("two")
    assert names(session.do(view(*middle))) == ["head.moved"]
    assert turn_of(session) is None


def test_3_rule_3_a_view_that_ends_on_a_users_message_asks_for_another_reply() -> None:
    """The new reply stands beside the old one."""
    session = said()
    old = session.path
    assert names(session.do(view(user("u1")))) == REGENERATED
    happened = session.reply("another")
    assert [parent for _, parent in recorded(happened)] == ["u1"]
    assert [n.message.id for n in session.state.tree.children("u1")] == [
        old[1].id,
        session.path[-1].id,
    ]


def test_3_rule_3_a_view_that_ends_on_a_result_asks_for_another_reply() -> None:
    """The call and its result stay, what the model said about it is said again."""
    session = talked()
    old = session.path
    assert names(session.do(view(*old[:-1]))) == REGENERATED
    happened = session.reply("another")
    assert [parent for _, parent in recorded(happened)] == [old[2].id]


def test_3_rule_3_a_view_of_a_message_without_a_reply_is_answered() -> None:
    """After a cancel the person's message is the head: nothing moves, the model is called."""
    session = Session()
    session.say("u1")
    session.do(cmd.CancelSession())
    assert names(session.do(view(user("u1")))) == REGENERATED[1:]


def test_3_rule_3_what_counts_is_the_last_message_as_it_was_sent() -> None:
    """A result that is taken out still asks, a thought behind a person's message does not."""
    session = said()
    invented = ToolMessage(id="x", tool_call_id="c1", content="again")
    session = talked()
    assert "turn.started" in names(session.do(view(*session.path, invented)))

    session = said()
    assert names(session.do(view(user("u1"), thought("x")))) == ["head.moved"]


# ------------------------------------------------------------- rule 4: a turn


def held() -> Session:
    """One turn is over; the second one is paused behind its call."""
    session = said()
    session.say("u2")
    session.reply(None, SEND)
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    return session


def choosing() -> Session:
    """One turn is over; the second one waits for its frontend."""
    session = said()
    session.say("u2", client=PICK)
    session.reply(None, CHOOSE)
    return session


@pytest.mark.parametrize("shown", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("given", [held, choosing], ids=["paused", "waiting"])
def test_3_rule_4_a_view_on_or_above_the_head_of_an_open_turn_changes_nothing(
    given: Callable[[], Session], shown: int
) -> None:
    """However much of the path a page shows, it lands at the end of it, and asks for nothing."""
    session = given()
    assert len(session.path) == 4
    assert session.do(view(*session.path[:shown])) == []
    assert turn_of(session) is None


def running() -> Session:
    """One turn is over; the second one runs a tool."""
    session = said()
    session.say("u2")
    session.reply(None, SEND)
    return session


@pytest.mark.parametrize("shown", [3, 4], ids=["its input", "its head"])
def test_3_rule_4_a_view_from_the_input_of_a_running_turn_on_changes_nothing(shown: int) -> None:
    """The page lags behind."""
    session = running()
    assert session.do(view(*session.path[:shown])) == []


@pytest.mark.parametrize("shown", [1, 2])
def test_3_rule_4_a_view_above_the_input_of_a_running_turn_is_refused(shown: int) -> None:
    """It wants to be somewhere else, and the turn runs."""
    session = running()
    refusal = refuse(session, view(*session.path[:shown]), TurnAlreadyActive)
    assert refusal.turn_id == the_turn(session).id


def test_3_rule_4_another_reply_asked_for_twice_is_one_turn() -> None:
    """The second view ends on the head of the turn that the first one started."""
    session = said()
    session.do(view(user("u1")))
    assert session.do(view(user("u1"))) == []


def test_3_rule_4_the_input_of_a_regenerating_turn_is_the_message_it_answers() -> None:
    """Also when the turn has recorded something below it, and runs a tool."""
    session = said()
    session.do(view(user("u1")))
    session.reply(None, SEND)
    assert session.do(view(user("u1"))) == []


def test_3_rule_4_a_result_of_a_frontend_adds() -> None:
    """Such a view changes something, although it brings no other message."""
    session = picking()
    assert new_ids(session.do(view(*session.path, picked()))) == ["t1"]


def test_3_rule_4_a_view_with_new_messages_is_no_such_view() -> None:
    """Behind the head of a waiting turn they join it."""
    session = choosing()
    assert "u3" in new_ids(session.do(view(*session.path, user("u3"))))


# ------------------------------------------------- rule 4: a parked turn


def parked() -> tuple[Session, list[Message]]:
    """A paused turn whose branch was left; return the session and that branch."""
    session = held()
    old = session.path
    session.do(view(user("edit")))
    session.reply("instead")
    return session, old


@pytest.mark.parametrize("shown", [3, 4], ids=["its input", "its end"])
def test_3_rule_4_a_view_on_a_message_of_a_parked_turn_brings_it_back(shown: int) -> None:
    """The head moves to the end of its branch, and nothing else happens."""
    session, old = parked()
    [turn] = session.state.control.turns
    assert names(session.do(view(*old[:shown]))) == ["head.moved"]
    assert session.path == old
    assert the_turn(session).id == turn.id


def test_3_rule_4_a_view_above_a_parked_turn_is_another_branch() -> None:
    """Its first two messages are of an older turn: the head goes there and the turn stays."""
    session, old = parked()
    assert names(session.do(view(*old[:2]))) == ["head.moved"]
    assert session.path == old[:2]
    assert active_turn(session.state) is None


# ------------------------------------------------ rule 4: named interrupts


def two_questions() -> tuple[Session, list[Message], list[Message]]:
    """Two branches, each paused by its own question: i1 on the left one, i2 on the active one."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say("u1")
    session.reply(None, SEND)
    session.answer(Interrupt(reason="confirm", interrupt_id="i1"))
    first = session.path
    session.do(view(user("edit")))
    session.reply(None, replace(SEND, id="c2"))
    session.answer(Interrupt(reason="confirm", interrupt_id="i2"))
    return session, first, session.path


@pytest.mark.parametrize("shown", [0, 1, 2])
def test_3_rule_4_a_view_above_a_named_question_lands_on_its_branch(shown: int) -> None:
    """Also when it is empty: the answer says where the person is."""
    session, first, _ = two_questions()
    happened = session.do(view(*first[:shown], answers=(answer("i1"),)))
    assert names(happened)[:3] == ["turn.parked", "head.moved", "session.interrupt_resumed"]
    assert session.path[:2] == first
    assert session.state.call("c1") is not None


def test_3_rule_4_a_named_question_wins_over_the_open_turn_of_the_active_branch() -> None:
    """The view ends above both; the question that is answered decides."""
    session = held()
    old = session.path
    session.do(view(*old[:3], user("beside")))
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i2"))
    session.do(view(*old[:3], answers=(answer("i1"),)))
    assert ids(session.path)[:4] == ids(old)


def test_3_rule_4_of_several_named_questions_the_one_on_the_active_branch_decides() -> None:
    """Even if it is named last. The other one is cleared where it is."""
    session, _, second = two_questions()
    happened = session.do(view(answers=(answer("i1"), answer("i2"))))
    assert "head.moved" not in names(happened)
    assert session.path[:2] == second
    assert session.state.control.interrupts == ()
    assert session.state.call("c2") is not None
    assert session.state.call("c1") is None


@pytest.mark.parametrize("first", ["i1", "i2"])
def test_3_rule_4_of_several_named_questions_elsewhere_the_first_decides(first: str) -> None:
    """None of them is on the active branch."""
    session, one, two = two_questions()
    session.do(view(user("third")))
    session.reply("free")
    other = "i2" if first == "i1" else "i1"
    session.do(view(answers=(answer(first), answer(other))))
    assert session.path[:2] == (one if first == "i1" else two)


def test_3_rule_4_a_view_that_is_not_above_the_named_question_lands_where_it_ends() -> None:
    """The answer clears the question there and delivers nothing."""
    session, _, second = two_questions()
    happened = session.do(view(*second, answers=(answer("i1"),)))
    assert "head.moved" not in names(happened)
    assert session.path[:2] == second
    assert session.state.call("c1") is None


# ---------------------------------------------- rule 4: answers, empty views


@pytest.mark.parametrize("where", ["the whole branch", "its first message", "nothing"])
def test_3_rule_4_old_answers_are_never_a_wish_for_another_reply(where: str) -> None:
    """A page sends its answer again, with more or less of what it shows: nothing starts."""
    session = paused()
    interrupt_id = session.state.control.interrupts[0].id
    session.resume(True)
    session.finish("c1")
    session.reply("done")
    path = session.path
    shown = {"the whole branch": path[:-1], "its first message": path[:1], "nothing": []}[where]
    happened = session.do(view(*shown, answers=(answer(interrupt_id),)))
    assert set(names(happened)) <= {"head.moved"}
    assert turn_of(session) is None


def test_3_rule_4_answers_that_are_not_all_old_are_no_wish_for_another_reply() -> None:
    """The question goes on; the view ends on a person's message and starts no second turn."""
    session = paused()
    interrupt_id = session.state.control.interrupts[0].id
    happened = session.do(view(user("u1"), answers=(answer("old"), answer(interrupt_id))))
    assert names(happened) == ["session.interrupt_resumed", "call.started"]


@pytest.mark.parametrize("answers", [(), ("old",)], ids=["alone", "beside an old answer"])
def test_3_rule_4_an_empty_view_lands_on_the_active_branch(answers: tuple[str, ...]) -> None:
    """It moves nothing, whatever is there: no turn, a paused one, a running one."""
    for session in (said(), held(), choosing(), running()):
        head = session.state.control.head
        assert session.do(view(answers=tuple(answer(i) for i in answers))) == []
        assert session.state.control.head == head
