"""What views may not do, nor change. Source: `protocol.md` section 3, rules 5 and 6."""

from collections.abc import Callable

import pytest

from engine.core import commands as cmd
from engine.core.errors import TurnAlreadyActive
from engine.core.messages import AssistantMessage, Message
from engine.core.worker import CallModel
from tests.core.given import Session, agent, user, view
from tests.protocol.given import (
    SEND,
    answer,
    ids,
    new_ids,
    notices,
    recorded,
    refuse,
    said,
    system,
    talked,
    the_turn,
)


def running() -> Session:
    """One turn is over; the second one runs a tool."""
    session = said()
    session.say("u2")
    session.reply(None, SEND)
    return session


def parked() -> tuple[Session, list[Message]]:
    """A paused turn whose branch was left; return the session and that branch."""
    session = running()
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    old = session.path
    session.do(view(user("edit")))
    session.reply("instead")
    return session, old


# --------------------------------------------------------------------- rule 5


VIEWS: dict[str, Callable[[list[Message]], list[Message]]] = {
    "an edit": lambda _path: [user("edit")],
    "another reply": lambda path: path[:1],
    "another branch": lambda path: path[:2],
    "an edit in the middle": lambda path: [*path[:2], user("edit")],
}


@pytest.mark.parametrize("shown", VIEWS.values(), ids=VIEWS.keys())
def test_3_rule_5_a_running_turn_is_not_left(
    shown: Callable[[list[Message]], list[Message]],
) -> None:
    """The refusal names the turn; nothing changes."""
    session = running()
    refusal = refuse(session, view(*shown(session.path)), TurnAlreadyActive)
    assert refusal.code == "turn_already_active"
    assert refusal.turn_id == the_turn(session).id


def test_3_rule_5_a_parked_turn_does_not_come_back_while_another_runs() -> None:
    """With its answer neither."""
    session, old = parked()
    session.say("u9")
    refuse(session, view(*old), TurnAlreadyActive)
    refuse(session, view(*old, answers=(answer("i1"),)), TurnAlreadyActive)
    assert session.state.interrupt("i1") is not None


# --------------------------------------------------------------------- rule 6


def test_3_rule_6_a_known_id_with_other_content_changes_nothing() -> None:
    """Neither a person's words nor a reply are rewritten; what is new is taken."""
    session = talked()
    path = session.path
    shown = [user("u1", "changed"), *path[1:3], AssistantMessage(id=path[3].id, content="!")]
    happened = session.do(view(*shown, user("u2")))
    assert new_ids(happened) == ["u2"]
    assert session.path[:4] == path


def test_3_rule_6_other_content_alone_is_no_edit() -> None:
    """A page that changed the words and kept the ids has added nothing."""
    session = said()
    path = session.path
    shown = [user("u1", "changed"), AssistantMessage(id=path[1].id, content="changed")]
    assert session.do(view(*shown)) == []
    assert session.path == path


@pytest.mark.parametrize(
    "shown", [(user("x1"),), (system("s9"), user("x1"))], ids=["a message", "with instructions"]
)
def test_3_rule_6_a_view_of_which_nothing_is_known_is_a_branch_at_the_root(
    shown: tuple[Message, ...],
) -> None:
    """Its sender is warned, and the old branch stays."""
    session = said()
    old = session.path
    happened = session.do(view(*shown))
    assert recorded(happened)[0] == (shown[0].id, None)
    assert ids(session.path) == ids(shown)
    assert notices(session) == ["unknown_history"]
    assert old[-1].id in session.state.tree


def test_3_rule_6_a_session_with_messages_warns_also_where_none_is_active() -> None:
    """An edit of the first message was answered with nothing: the active path is empty."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say("u1")
    session.answer(CallModel(), messages=[user("u1")])
    session.reply("hi")
    session.do(view(user("edit")))
    session.answer()
    assert session.path == []
    session.do(view(user("x1")))
    assert notices(session) == ["unknown_history"]


def test_3_rule_6_no_warning_where_something_is_known_or_nothing_is_recorded() -> None:
    """An edit that keeps a message, and the first message of a session, are plain views."""
    session = said()
    session.do(view(user("u1"), user("edit")))
    assert notices(session) == []
    session = Session()
    session.do(view(user("x1")))
    assert notices(session) == []
