"""How a view is matched against the tree. Source: `protocol.md` section 3, rules 1 and 2."""

from dataclasses import replace

import pytest

from engine.core import commands as cmd
from engine.core.errors import InvalidView
from engine.core.messages import (
    ActivityMessage,
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    in_call_order,
)
from engine.core.worker import CallModel
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.given import (
    CHOOSE,
    SEND,
    answer,
    append,
    ids,
    recorded,
    refuse,
    replies,
    said,
    system,
    talked,
    the_turn,
    thought,
    turn_of,
)

NOTE = ActivityMessage(id="x", activity_type="note", content={})

# --------------------------------------------------------------------- rule 1


def rich() -> Session:
    """Every role is recorded: s1, d1, u1, thought, call c1, its result, note, reply with text."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished"})))
    session.do(view(system("s1"), system("d1", "developer"), user("u1")))
    call = session.model_call
    reply = AssistantMessage(id=call.message_id, tool_calls=(SEND,))
    done = cmd.FinishModelCall(
        call_id=call.id, attempt=1, message=reply, reasoning=(thought("r1"),)
    )
    session.do(done)
    session.finish("c1")
    result = ToolMessage(id="t1", tool_call_id="c1", content="done")
    session.answer(CallModel(), messages=[result, replace(NOTE, id="n1")])
    session.reply("sent")
    return session


def test_3_a_view_is_matched_by_id_and_never_by_content() -> None:
    """The same words under other ids are other messages, and the same ids are no new ones."""
    session = said()
    same_words = [replace(message, id=f"{message.id}b") for message in session.path]
    happened = session.do(view(*same_words, user("u2")))
    assert [message_id for message_id, _ in recorded(happened)] == [
        *ids(same_words),
        "u2",
    ]


@pytest.mark.parametrize("order", [(1, 0), (0, 3, 2, 1)], ids=["reversed", "later turns first"])
def test_3_rule_1_known_ids_in_another_order_are_no_prefix(order: tuple[int, ...]) -> None:
    """The run of leading messages ends where one does not stand below the one before it."""
    session = said()
    session.say("u2")
    session.reply("two")
    path = session.path
    shown = [path[index] for index in order]
    refuse(session, view(*shown, user("u3")), InvalidView)


@pytest.mark.parametrize(
    "missing",
    [("t1",), ("r1",), ("n1",), ("s1",), ("d1",), ("msg3",), ("s1", "d1", "r1", "msg3", "t1")],
    ids=["tool", "reasoning", "activity", "system", "developer", "reply without text", "all"],
)
def test_3_rule_1_what_may_be_missing(missing: tuple[str, ...]) -> None:
    """A client need not show results, thoughts, notes, instructions and replies that are calls."""
    session = rich()
    path = session.path
    assert {"s1", "d1", "u1", "r1", "t1", "n1"} <= set(ids(path))
    calls = next(m.id for m in replies(path) if m.tool_calls)
    gone = {calls if name == "msg3" else name for name in missing}
    shown = [message for message in path if message.id not in gone]
    happened = session.do(view(*shown, user("u2")))
    assert recorded(happened) == [("u2", path[-1].id)]
    assert "head.moved" not in names(happened)


def chained(text: str | None = None) -> Session:
    """Two replies with a call each, the second one maybe with text, then a last reply."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND)
    session.finish("c1")
    session.reply(text, replace(SEND, id="c2"))
    session.finish("c2")
    session.reply("both sent")
    return session


def merged(session: Session) -> list[Message]:
    """The path as a client shows it that puts both calls on the first reply."""
    first, second, _ = replies(session.path)
    both = replace(first, tool_calls=(*first.tool_calls, *second.tool_calls))
    return [both if m.id == first.id else m for m in session.path if m.id != second.id]


@pytest.mark.parametrize("text", [None, "and now bob"], ids=["only a call", "with text"])
def test_3_rule_1_a_reply_whose_calls_are_shown_on_another_may_be_missing(text: str | None) -> None:
    """Merging two replies into one is no edit."""
    session = chained(text)
    last = session.path[-1].id
    happened = session.do(view(*merged(session), user("u2")))
    assert recorded(happened) == [("u2", last)]


def test_3_rule_1_a_reply_with_text_whose_calls_are_not_shown_may_not_be_missing() -> None:
    """Its words were left out: an edit, which here shows recorded messages behind the gap."""
    session = chained("and now bob")
    _, second, last = replies(session.path)
    shown = [m for m in session.path if m.id != second.id]
    refusal = refuse(session, view(*shown, user("u2")), InvalidView)
    assert refusal.message_id == last.id


def test_3_rule_1_leaving_out_a_users_message_is_an_edit() -> None:
    """The view continues above it, on a new branch."""
    session = said()
    reply = session.path[-1].id
    session.say("u2")
    session.reply("two")
    happened = session.do(view(*session.path[:2], user("u2b")))
    assert recorded(happened) == [("u2b", reply)]


def test_3_rule_1_leaving_out_a_reply_with_text_is_an_edit() -> None:
    """Behind the person's message nothing is passed over."""
    session = said()
    happened = session.do(view(user("u1"), user("u2")))
    assert recorded(happened) == [("u2", "u1")]
    assert "head.moved" in names(happened)


@pytest.mark.parametrize("shown", ["as recorded", "in the order of the calls"])
def test_3_rule_1_results_may_be_shown_in_either_order(shown: str) -> None:
    """The tree has them as they came, a snapshot as they were asked for: neither is an edit."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND, replace(SEND, id="c2"))
    session.finish("c2")
    session.finish("c1")
    session.reply("both sent")
    path = session.path
    messages = path if shown == "as recorded" else in_call_order(path)
    assert (messages == path) is (shown == "as recorded")
    happened = session.do(view(*messages, user("u2")))
    assert recorded(happened) == [("u2", path[-1].id)]


@pytest.mark.parametrize("new", [(), (user("u2"),)], ids=["lands there", "goes below them"])
def test_3_rule_1_results_behind_the_last_matched_message_are_passed_over(
    new: tuple[Message, ...],
) -> None:
    """A view that ends on a call ends behind its result; the reply after it is left out."""
    session = rich()
    path = session.path
    shown = path[: ids(path).index("t1")]
    session.do(view(*shown, *new))
    assert ids(session.path) == [*ids(path[: ids(path).index("n1") + 1]), *ids(new)]


def test_3_rule_1_merged_replies_at_the_end_are_passed_over() -> None:
    """The reply whose call is shown on the one before, and both results, belong to the prefix."""
    session = chained()
    last = session.path[-2]
    assert last.role == "tool"
    shown = merged(session)[:2]
    happened = session.do(view(*shown, user("u2")))
    assert recorded(happened) == [("u2", last.id)]


@pytest.mark.parametrize("new", [(), (user("u2"),)], ids=["lands there", "goes below it"])
def test_3_rule_1_behind_a_users_message_nothing_is_passed_over(new: tuple[Message, ...]) -> None:
    """The thought below it belongs to the reply that is left out."""
    session = rich()
    path = session.path
    shown = path[: ids(path).index("u1") + 1]
    session.do(view(*shown, *new))
    assert ids(session.path) == [*ids(shown), *ids(new)]


def test_3_rule_1_instructions_behind_the_last_matched_message_are_not_passed_over() -> None:
    """Only results, thoughts and notes belong to what stands before them."""
    session = said()
    path = session.path
    session.do(view(*path, system("s1"), user("u2")))
    session.reply("two")
    happened = session.do(view(*path, user("u3")))
    assert recorded(happened) == [("u3", path[-1].id)]


@pytest.mark.parametrize("how", ["asked", "queued", "joined"])
def test_3_rule_1_input_that_is_not_recorded_yet_is_known(how: str) -> None:
    """Sent again it changes nothing, whatever it waits for."""
    session = Session(
        agent(tool("send"), wants=frozenset({"client.messages"} if how == "asked" else ()))
    )
    session.do(view(user("u1")))
    if how != "asked":
        session.reply(None, SEND)
    if how == "queued":
        session.do(append(user("u2"), queue=True))
    if how == "joined":
        session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
        session.do(view(*session.path, user("u2"), answers=(answer("i1"),)))
    shown: list[Message] = [user("u1")] if how == "asked" else [*session.path, user("u2")]
    assert "u2" not in ids(session.path)
    assert session.do(view(*shown)) == []


def test_3_rule_1_input_is_not_counted_as_waiting_once_it_is_recorded() -> None:
    """A worker recorded it while the branch was paused; what comes next stands below it."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say("u1")
    session.answer(CallModel(), messages=[user("u1")])
    session.reply("hi")
    session.say("u2")
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    session.answer(CallModel(), messages=[user("u2")])
    turn, path = the_turn(session), session.path
    assert ids(path)[-1] == "u2"
    happened = session.do(view(*path, user("u3"), answers=(answer("i1"),)))
    assert "head.moved" not in names(happened)
    assert turn_of(session) == turn.id


# --------------------------------------------------------------------- rule 2


def test_3_rule_2_the_remainder_is_recorded_below_the_prefix() -> None:
    """Several new messages stand one below the other, in the order of the view."""
    session = said()
    last = session.path[-1].id
    happened = session.do(view(*session.path, user("u2"), user("u3")))
    assert recorded(happened) == [("u2", last), ("u3", "u2")]


def test_3_rule_2_where_something_follows_a_new_branch_begins_and_the_old_one_stays() -> None:
    """The head moves to the prefix first; nothing of the old branch is lost."""
    session = talked()
    old = session.path
    happened = session.do(view(user("u1"), user("edit")))
    assert names(happened)[0] == "head.moved"
    assert recorded(happened) == [("edit", "u1")]
    assert [n.message for n in session.state.tree.path(old[-1].id)] == old
    assert [n.message.id for n in session.state.tree.children("u1")] == [old[1].id, "edit"]


def test_3_rule_2_an_assistant_message_keeps_only_the_calls_that_the_log_knows() -> None:
    """A call that nobody recorded is dropped, a recorded one stays."""
    session = talked()
    foreign = replace(SEND, id="c9")
    shown = AssistantMessage(id="x", content="both", tool_calls=(SEND, foreign))
    session.do(view(user("u1"), shown, user("u2")))
    [reply] = replies(session.path)
    assert [call.id for call in reply.tool_calls] == ["c1"]


def test_3_rule_2_an_assistant_message_is_recorded_without_unknown_calls() -> None:
    """Its text stays."""
    session = said()
    foreign = AssistantMessage(id="x", content="well", tool_calls=(replace(SEND, id="c9"),))
    session.do(view(*session.path, foreign, user("u2")))
    assert session.path[-2] == AssistantMessage(id="x", content="well")


@pytest.mark.parametrize("position", [0, 1], ids=["a user's", "a reply's"])
@pytest.mark.parametrize("where", ["behind a new message", "of another branch"])
def test_3_rule_2_a_known_id_in_the_remainder_is_refused(position: int, where: str) -> None:
    """The refusal names the message, and nothing of the view is recorded."""
    session = said()
    stray = session.path[position]
    shown: list[Message] = [user("x1")]
    if where == "of another branch":
        session.do(view(user("root2")))
        session.reply("hi")
        shown = list(session.path)
    refusal = refuse(session, view(*shown, stray, user("x2")), InvalidView)
    assert (refusal.code, refusal.message_id) == ("invalid_view", stray.id)


def test_3_rule_2_of_a_cancelled_reply_only_the_text_is_taken() -> None:
    """What the person saw before the stop is taken, without calls and thoughts."""
    session = Session(agent(tool("send")))
    session.say("u1")
    partial = AssistantMessage(
        id=session.model_call.message_id,
        content="I will se",
        tool_calls=(ToolCall(id="c1", name="send"),),
    )
    session.do(cmd.CancelSession())
    session.do(view(user("u1"), thought("r1"), partial, user("u2")))
    assert session.path[1:2] == [replace(partial, tool_calls=())]
    assert ids(session.path) == ["u1", partial.id, "u2"]


def test_3_rule_2_a_cancelled_reply_without_text_is_nothing() -> None:
    """There is no text to take."""
    session = Session(agent(tool("send")))
    session.say("u1")
    partial = AssistantMessage(id=session.model_call.message_id, tool_calls=(CHOOSE,))
    session.do(cmd.CancelSession())
    session.do(view(user("u1"), partial, user("u2")))
    assert ids(session.path) == ["u1", "u2"]
