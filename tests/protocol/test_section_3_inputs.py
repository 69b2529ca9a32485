"""The inputs at the head, and what a model is sent. Source: `protocol.md` section 3."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.core import commands as cmd
from engine.core.messages import (
    NO_RESULT,
    AssistantMessage,
    Message,
    ToolCall,
    in_call_order,
    transcript,
)
from engine.core.request import decision_request
from engine.core.worker import CallModel
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.given import (
    SEND,
    append,
    branched,
    ids,
    is_queued,
    new_ids,
    picked,
    picking,
    recorded,
    results,
    roles,
    said,
    sent,
    system,
    the_turn,
    thought,
    turn_of,
)

# ------------------------------------------------- client.message, client.append


def test_3_message_is_recorded_at_the_head() -> None:
    """One message, below whatever the active path ends with."""
    session = said()
    last = session.path[-1].id
    happened = session.do(append(user("u2")))
    assert names(happened) == ["turn.started", "message.new", "llm.call.requested"]
    assert recorded(happened) == [("u2", last)]


def test_3_message_may_begin_a_session() -> None:
    """There is no path yet; the message is its first one."""
    happened = Session().do(append(user("u1")))
    assert names(happened)[0] == "session.created"
    assert recorded(happened) == [("u1", None)]


def test_3_append_records_several_messages_in_their_order() -> None:
    """Whatever their roles, in one turn."""
    session = said()
    last = session.path[-1].id
    more: list[Message] = [
        system("s1"),
        AssistantMessage(id="x1", content="imported"),
        thought("r1"),
        user("u2"),
    ]
    happened = session.do(append(*more))
    assert recorded(happened) == [("s1", last), ("x1", "s1"), ("r1", "x1"), ("u2", "r1")]
    assert names(happened).count("turn.started") == 1


def test_3_append_never_branches() -> None:
    """Messages of another branch among it do not move the head there."""
    session, old, new = branched()
    happened = session.do(append(*old, user("u2")))
    assert "head.moved" not in names(happened)
    assert recorded(happened) == [("u2", new[-1].id)]


@pytest.mark.parametrize("where", ["on the path", "on another branch", "accepted only"])
def test_3_append_drops_ids_that_are_recorded_already(where: str) -> None:
    """Alone they do nothing; beside new messages those are taken."""
    session, old, new = branched()
    known = {"on the path": new[-1], "on another branch": old[-1], "accepted only": user("q1")}
    if where == "accepted only":
        session.say("u2")
        session.do(append(user("q1"), queue=True))
    assert session.do(append(known[where], queue=True)) == []
    happened = session.do(append(known[where], user("u9"), queue=True))
    assert is_queued(session) is (where == "accepted only")
    assert "q1" not in new_ids(happened)


def test_3_append_takes_one_id_once() -> None:
    """Twice in one input is once."""
    assert new_ids(Session().do(append(user("u1"), user("u1", "again")))) == ["u1"]


def test_3_append_of_nothing_does_nothing() -> None:
    """It belongs to no turn."""
    session = said()
    assert session.do(append()) == []
    assert turn_of(session) is None


def test_3_append_of_a_frontends_result_ends_its_call() -> None:
    """The turn goes on with it, recorded under its own id."""
    session = picking()
    turn = the_turn(session)
    happened = session.do(append(picked("mine")))
    assert new_ids(happened) == ["mine"]
    assert turn_of(session) == turn.id
    assert "llm.call.requested" in names(happened)


def test_3_append_of_a_result_for_a_call_of_another_branch_starts_nothing() -> None:
    """Nothing new came: the call is not on the path, and no turn begins without a message."""
    session = picking()
    session.do(view(user("edit")))
    session.reply("instead")
    assert session.do(append(picked())) == []


# ------------------------------------------------------ what a model is sent


def both(*finish: str) -> Session:
    """Two calls in one reply, which end in the order given."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND, replace(SEND, id="c2"))
    for call_id in finish:
        session.finish(call_id, f"done {call_id}")
    return session


@pytest.mark.parametrize("order", [("c1", "c2"), ("c2", "c1")], ids=["in order", "reversed"])
def test_3_results_stand_behind_their_calls_in_a_model_request(order: tuple[str, str]) -> None:
    """In the order of the calls, not in the order they came."""
    session = both(*order)
    assert [call_id for call_id, _ in results(session.path)] == list(order)
    assert results(sent(session)) == [("c1", "done c1"), ("c2", "done c2")]


@pytest.mark.parametrize("order", [("c1", "c2"), ("c2", "c1")], ids=["in order", "reversed"])
def test_3_results_stand_behind_their_calls_in_a_snapshot(order: tuple[str, str]) -> None:
    """A page is shown them as the model is."""
    assert [call_id for call_id, _ in results(in_call_order(both(*order).path))] == ["c1", "c2"]


def test_3_results_stand_directly_behind_the_message_that_asked() -> None:
    """Also when something was recorded between them."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished"})))
    session.say("u1")
    session.reply(None, SEND, replace(SEND, id="c2"))
    session.finish("c2")
    session.answer(messages=[user("note"), picked("t2", "c2")])
    session.finish("c1")
    session.answer(CallModel(), messages=[picked("t1")])
    assert roles(session.path) == ["user", "assistant", "user", "tool", "tool"]
    for shown in (sent(session), in_call_order(session.path)):
        assert ids(shown)[2:] == ["t1", "t2", "note"]


def test_3_results_stand_behind_their_calls_in_what_a_worker_sees() -> None:
    """`messages` of a decision request is what the model sees."""
    session = Session(agent(tool("send"), wants=frozenset({"client.messages"})))
    session.say("u1")
    session.answer(CallModel(), messages=[user("u1")])
    session.reply(None, SEND, replace(SEND, id="c2"))
    session.finish("c2")
    session.finish("c1")
    session.reply("sent")
    session.say("u2")
    request = decision_request(session.state, session._env(), session.out)
    assert [call_id for call_id, _ in results(request.messages)] == ["c1", "c2"]


def test_3_a_call_without_a_result_is_followed_by_no_result() -> None:
    """A worker recorded the reply and never started its call: what the model is sent is valid."""
    session = Session(agent(tool("send"), wants=frozenset({"llm.finished"})))
    session.say("u1")
    asked = AssistantMessage(id="x", tool_calls=(SEND, replace(SEND, id="c2")))
    session.reply("hm")
    session.answer(CallModel(), messages=[asked])
    assert results(session.path) == []
    assert results(sent(session)) == [("c1", NO_RESULT), ("c2", NO_RESULT)]
    assert NO_RESULT == "no result"


@pytest.mark.parametrize(
    "given",
    [
        lambda: both("c2"),
        both,
        picking,
        lambda: picking(ToolCall(id="c2", name="nobody")),
    ],
    ids=["one of two", "none of two", "a frontend's", "undeclared"],
)
def test_3_what_a_model_would_be_sent_is_always_valid(given: Callable[[], Session]) -> None:
    """In the middle of a turn each call has exactly one message behind it."""
    session = given()
    [asked] = [m for m in session.path if isinstance(m, AssistantMessage)]
    shown = transcript(session.path)
    behind = results(shown[shown.index(asked) + 1 :])
    assert [call_id for call_id, _ in behind] == [call.id for call in asked.tool_calls]


def test_3_what_a_model_is_sent_below_a_call_is_valid() -> None:
    """A view that ends on the call and adds a message has the results before that message."""
    session = both("c2", "c1")
    session.do(cmd.CancelSession())
    session.do(view(*session.path[:2], user("u2")))
    assert roles(sent(session)) == ["user", "assistant", "tool", "tool", "user"]
    assert results(sent(session)) == [("c1", "done c1"), ("c2", "done c2")]
