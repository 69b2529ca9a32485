"""Where a view lands (`protocol.md` 3), as far as one branch at a time goes."""

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import InvalidView, TurnAlreadyActive
from engine.core.messages import (
    ActivityMessage,
    AssistantMessage,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    in_call_order,
)
from tests.core.given import Session, agent, names, tool, user, view

SEND = ToolCall(id="c1", name="send", arguments='{"to": "ada"}')


def talked() -> Session:
    """u1 → reply with a call → its result → a reply with text."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND)
    session.finish("c1")
    session.reply("sent")
    return session


def recorded(happened: list[ev.Body]) -> list[tuple[str, str | None]]:
    """Return what was recorded: message id, and its parent."""
    return [(b.message.id, b.parent_id) for b in happened if isinstance(b, ev.MessageNew)]


def test_history_that_is_sent_again_is_not_recorded_again() -> None:
    """Only what is new is recorded, below what is known."""
    session = talked()
    last = session.path[-1].id
    happened = session.do(view(*session.path, user("u2")))
    assert recorded(happened) == [("u2", last)]


@pytest.mark.parametrize(
    "left_out",
    [{"tool"}, {"assistant call"}, {"tool", "assistant call"}],
    ids=["a result", "a reply without text", "both"],
)
def test_what_clients_leave_out_is_no_edit(left_out: set[str]) -> None:
    """Results, and replies that were only calls, may be missing."""
    session = talked()
    kinds = {
        m.id: "assistant call" if isinstance(m, AssistantMessage) and not m.content else m.role
        for m in session.path
    }
    shown = [m for m in session.path if kinds[m.id] not in left_out]
    happened = session.do(view(*shown, user("u2")))
    assert recorded(happened) == [("u2", session.path[-2].id)]
    assert "head.moved" not in names(happened)


def test_what_clients_invent_is_taken_out() -> None:
    """Case 17d: results under fresh ids, thoughts and activity of their own."""
    session = talked()
    invented: list[Message] = [
        ToolMessage(id="t9", tool_call_id="c1", content="again"),
        ReasoningMessage(id="r9", content="hm"),
        ActivityMessage(id="a9", activity_type="x", content={}),
    ]
    happened = session.do(view(*session.path, *invented, user("u2")))
    assert [message_id for message_id, _ in recorded(happened)] == ["u2"]


def test_instructions_before_a_known_message_are_for_this_input_only() -> None:
    """They reach the model with the turn and are not recorded."""
    session = talked()
    system = SystemMessage(id="s1", content="be brief")
    happened = session.do(view(system, *session.path, user("u2")))
    assert [message_id for message_id, _ in recorded(happened)] == ["u2"]
    assert session.state.control.turns[-1].client.instructions == (system,)


def test_instructions_that_open_a_conversation_are_recorded() -> None:
    """Nothing known follows them: they are part of it."""
    session = Session()
    happened = session.do(view(SystemMessage(id="s1", content="be brief"), user("u1")))
    assert recorded(happened) == [("s1", None), ("u1", "s1")]


def test_merged_replies_are_accepted() -> None:
    """Case 17c: two replies that were only calls, shown as one message."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND)
    session.finish("c1")
    session.reply(None, ToolCall(id="c2", name="send", arguments='{"to": "bob"}'))
    session.finish("c2")
    session.reply("both sent")
    first, second = [m for m in session.path if isinstance(m, AssistantMessage) and m.tool_calls]
    merged = AssistantMessage(id=first.id, tool_calls=(*first.tool_calls, *second.tool_calls))
    shown = [merged if m.id == first.id else m for m in session.path if m.id != second.id]

    happened = session.do(view(*shown, user("u2")))
    assert recorded(happened)[0][0] == "u2"
    assert "head.moved" not in names(happened)


def test_an_edit_branches_and_the_old_branch_stays() -> None:
    """Leaving out a user message is an edit: the head moves, both branches are recorded."""
    session = talked()
    old = [m.id for m in session.path]
    happened = session.do(view(user("u1b")))
    assert recorded(happened) == [("u1b", None)]
    assert [m.id for m in session.path] == ["u1b"]
    assert all(message_id in session.state.tree for message_id in old)


def test_a_view_of_which_nothing_is_known_says_so() -> None:
    """Rule 6: a new branch at the root, and a warning."""
    session = talked()
    session.do(view(user("x1")))
    assert session.receipt is not None
    assert [n.code for n in session.receipt.notices] == ["unknown_history"]


def test_regenerate_answers_beside_the_old_reply() -> None:
    """Rule 3: a view that ends on a user message and adds nothing starts a turn there."""
    session = talked()
    old_reply = session.path[-1].id
    happened = session.do(view(user("u1")))
    assert names(happened) == ["head.moved", "turn.started", "llm.call.requested"]
    session.reply("another")
    assert old_reply not in [m.id for m in session.path]
    assert [m.role for m in session.path] == ["user", "assistant"]


def test_changing_branches_starts_nothing() -> None:
    """Rule 3: a view that ends on an assistant message only moves the head."""
    session = talked()
    old = session.path
    session.do(view(user("u1")))
    session.reply("another")

    assert names(session.do(view(*old))) == ["head.moved"]
    assert [m.id for m in session.path] == [m.id for m in old]


def test_the_running_turn_is_not_left() -> None:
    """Rule 5: a view that would move the head is refused."""
    session = talked()
    session.say("u2")
    with pytest.raises(TurnAlreadyActive):
        session.do(view(user("edit")))


def test_a_view_that_lags_behind_the_running_turn_changes_nothing() -> None:
    """Rule 4: it ends above the turn's head, on its input."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND)
    assert session.do(view(user("u1"))) == []


def test_a_known_message_behind_new_ones_is_refused() -> None:
    """Rule 2: `invalid_view`, naming the id."""
    session = talked()
    with pytest.raises(InvalidView) as refused:
        session.do(view(user("new"), user("u1")))
    assert refused.value.message_id == "u1"


def test_ids_win_over_content() -> None:
    """Rule 6: a known id with other content changes nothing."""
    session = talked()
    happened = session.do(view(user("u1", "changed"), *session.path[1:], user("u2")))
    assert recorded(happened)[0][0] == "u2"
    assert session.path[0] == user("u1")


def test_a_reply_the_engine_did_not_record_keeps_only_its_text() -> None:
    """Calls that the log does not know are not recorded."""
    session = talked()
    foreign = AssistantMessage(id="x", content="partial", tool_calls=(SEND,))
    session.do(view(*session.path, foreign, user("u2")))
    assert session.path[-2] == AssistantMessage(id="x", content="partial")


def test_input_that_is_accepted_counts_as_known() -> None:
    """The same view again, while the worker still thinks about it."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.do(view(user("u1")))
    assert session.do(view(user("u1"))) == []


def test_an_answer_of_a_frontend_tool_ends_its_call() -> None:
    """It is recorded once, under the id the view gives."""
    client = cmd.ClientContext(tools=({"name": "pick", "description": ""},))
    session = Session()
    session.do(view(user("u1"), client=client))
    session.reply(None, ToolCall(id="c1", name="pick"))
    assert session.state.control.turns != ()

    answer = ToolMessage(id="mine", tool_call_id="c1", content="blue")
    happened = session.do(view(*session.path, answer, client=client))
    assert recorded(happened)[0][0] == "mine"
    assert "llm.call.requested" in names(happened)


def test_typing_instead_of_answering_a_frontend_tool_is_one_turn() -> None:
    """Case 17f: the call is given up, the message joins the turn."""
    client = cmd.ClientContext(tools=({"name": "pick", "description": ""},))
    session = Session()
    session.do(view(user("u1"), client=client))
    session.reply(None, ToolCall(id="c1", name="pick"))
    happened = session.do(view(*session.path, user("u2"), client=client))

    assert "turn.started" not in names(happened)
    assert names(happened).count("llm.call.requested") == 1
    assert [m.role for m in session.path] == ["user", "assistant", "tool", "user"]


def test_results_may_be_shown_in_the_order_of_the_calls() -> None:
    """They were recorded as they arrived; a snapshot shows them otherwise. No edit."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND, ToolCall(id="c2", name="send", arguments='{"to": "bob"}'))
    session.finish("c2")
    session.finish("c1")
    session.reply("both sent")
    shown = in_call_order(session.path)
    assert [m.id for m in shown] != [m.id for m in session.path]

    happened = session.do(view(*shown, user("u2")))
    assert recorded(happened) == [("u2", session.path[-2].id)]
    assert "head.moved" not in names(happened)


def test_a_message_that_stands_twice_in_a_view_is_recorded_once() -> None:
    """Ids win, within a view too."""
    session = Session()
    happened = session.do(view(user("u1"), user("u1")))
    assert recorded(happened) == [("u1", None)]
