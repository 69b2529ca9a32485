"""Values of a branch. Source: `protocol.md` section 3, the last paragraph."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.messages import Message, ToolCall
from engine.core.request import decision_request
from engine.core.worker import CallModel, GiveResult
from tests.core.given import Session, agent, names, respond, tool, user, view
from tests.protocol.given import answer, restart


@dataclass(frozen=True)
class Kind:
    """One of the three values: how a response writes it, and how it is read on a branch."""

    name: str
    one: Any
    two: Any
    read: Callable[[Session], Any]
    unset: Any = None

    def write(self, value: Any) -> dict[str, Any]:
        """Return what a response says."""
        return {self.name: value}


def asked(session: Session) -> Any:
    """Return the request of a decision that is out; one is asked for when there is none."""
    if not any(d.is_out for d in session.state.control.decisions):
        session.do(cmd.TakeAction(name="look"))
        request = decision_request(session.state, session._env(), session.out)
        session.answer()
        return request
    return decision_request(session.state, session._env(), session.out)


STATE = Kind("state", {"n": 1}, {"n": 2}, lambda session: asked(session).state)
SHARED = Kind("shared_state", {"n": 1}, {"n": 2}, lambda s: s.state.control.shared_state)
AGENT = Kind(
    "agent", {"model": "one"}, {"model": "two"}, lambda s: asked(s).agent["model"], unset="m"
)

KINDS = pytest.mark.parametrize("kind", [STATE, SHARED, AGENT], ids=lambda kind: kind.name)
LIVES = pytest.mark.parametrize("life", ["one process", "restarted"])


def is_(kind: Kind, session: Session, value: Any, life: str = "one process") -> bool:
    """Whether a value holds on the active branch."""
    if life == "restarted":
        restart(session)
    expected = value["model"] if kind is AGENT and value is not kind.unset else value
    return kind.read(session) == expected


def turn(session: Session, message_id: str, shown: list[Message], **values: Any) -> list[Message]:
    """A person speaks below what is shown; the worker writes values, the model replies."""
    session.do(view(*shown, user(message_id)))
    session.answer(CallModel(), messages=[user(message_id)], **values)
    session.reply("ok")
    return session.path


def deciding() -> Session:
    """A session whose worker decides on input and on actions."""
    return Session(agent(wants=frozenset({"client.messages", "client.action"})))


@KINDS
def test_3_values_are_attached_to_the_message_that_was_the_head(kind: Kind) -> None:
    """That is the last message that the same response records."""
    session = deciding()
    turn(session, "u1", [], **kind.write(kind.one))
    [body] = [e.body for e in session.log if e.body.type == f"{kind.name}.updated"]
    assert isinstance(body, ev.StateUpdated | ev.SharedStateUpdated | ev.AgentUpdated)
    assert body.anchor == "u1"


@LIVES
@KINDS
def test_3_values_hold_below_the_message_they_are_attached_to(kind: Kind, life: str) -> None:
    """In the turn that wrote them and in the next one."""
    session = deciding()
    path = turn(session, "u1", [], **kind.write(kind.one))
    assert is_(kind, session, kind.one, life)
    turn(session, "u2", path)
    assert is_(kind, session, kind.one, life)


@LIVES
@KINDS
def test_3_values_are_not_seen_on_a_branch_that_leaves_above(kind: Kind, life: str) -> None:
    """And are there again when the head comes back."""
    session = deciding()
    first = turn(session, "u1", [])
    second = turn(session, "u2", first, **kind.write(kind.one))
    turn(session, "edit", first)
    assert is_(kind, session, kind.unset, life)
    assert "head.moved" in names(session.do(view(*second)))
    assert is_(kind, session, kind.one, life)


@LIVES
@KINDS
def test_3_values_of_two_branches_do_not_mix(kind: Kind, life: str) -> None:
    """Each branch has what was written on it last."""
    session = deciding()
    first = turn(session, "u1", [])
    left = turn(session, "u2", first, **kind.write(kind.one))
    right = turn(session, "u3", first, **kind.write(kind.two))
    for shown, value in ((left, kind.one), (right, kind.two), (first, kind.unset)):
        session.do(view(*shown))
        assert is_(kind, session, value, life)


@LIVES
@KINDS
def test_3_values_are_as_of_the_place_on_one_path(kind: Kind, life: str) -> None:
    """Above the second write the first one holds."""
    session = deciding()
    first = turn(session, "u1", [], **kind.write(kind.one))
    second = turn(session, "u2", first, **kind.write(kind.two))
    assert is_(kind, session, kind.two, life)
    session.do(view(*first))
    assert is_(kind, session, kind.one, life)
    session.do(view(*second))
    assert is_(kind, session, kind.two, life)


@LIVES
@KINDS
def test_3_values_of_a_branch_that_leaves_below_are_shared(kind: Kind, life: str) -> None:
    """What was written above the fork holds on both sides of it."""
    session = deciding()
    first = turn(session, "u1", [], **kind.write(kind.one))
    turn(session, "u2", first)
    turn(session, "edit", first)
    assert is_(kind, session, kind.one, life)


@LIVES
@KINDS
def test_3_values_written_before_any_message_hold_on_every_branch(kind: Kind, life: str) -> None:
    """Also on one that begins at the root."""
    session = deciding()
    session.do(cmd.TakeAction(name="begin"))
    session.answer(**kind.write(kind.one))
    turn(session, "u1", [])
    assert is_(kind, session, kind.one, life)
    turn(session, "root2", [])
    assert is_(kind, session, kind.one, life)


@LIVES
@KINDS
def test_3_values_written_before_any_message_give_way_to_a_branchs_own(
    kind: Kind, life: str
) -> None:
    """And hold again where that was not written."""
    session = deciding()
    session.do(cmd.TakeAction(name="begin"))
    session.answer(**kind.write(kind.one))
    own = turn(session, "u1", [], **kind.write(kind.two))
    assert is_(kind, session, kind.two, life)
    turn(session, "root2", [])
    assert is_(kind, session, kind.one, life)
    session.do(view(*own))
    assert is_(kind, session, kind.two, life)


@KINDS
def test_3_values_come_back_with_a_parked_turn(kind: Kind) -> None:
    """Its branch has what its worker wrote before the question."""
    session = deciding()
    first = turn(session, "u1", [])
    session.do(view(*first, user("u2")))
    session.answer(CallModel(), messages=[user("u2")], **kind.write(kind.one))
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    left = session.path
    turn(session, "edit", first)
    assert is_(kind, session, kind.unset)
    session.do(view(*left, answers=(answer("i1"),)))
    assert is_(kind, session, kind.one)


@KINDS
def test_3_values_that_are_the_same_on_both_branches_are_not_written_again(kind: Kind) -> None:
    """Moving the head between places where the same value holds carries none."""
    session = deciding()
    first = turn(session, "u1", [], **kind.write(kind.one))
    second = turn(session, "u2", first)
    for shown in (first, second):
        [moved] = session.do(view(*shown))
        assert isinstance(moved, ev.HeadMoved)
        assert moved.values is None


def test_3_values_of_one_kind_leave_the_others_alone() -> None:
    """A branch that changed only one of them keeps the rest."""
    session = deciding()
    everything = STATE.write(1) | SHARED.write(2) | AGENT.write({"model": "one"})
    first = turn(session, "u1", [], **everything)
    turn(session, "u2", first, state=9)
    session.do(view(*first))
    request = asked(session)
    shared = session.state.control.shared_state
    assert (request.state, shared, request.agent["model"]) == (1, 2, "one")


def test_3_values_in_force_choose_the_model_of_a_branch() -> None:
    """A model call takes the config of the branch it is made on."""
    session = deciding()
    first = turn(session, "u1", [])
    second = turn(session, "u2", first, agent={"model": "one", "system": "be brief"})
    session.do(view(*second, user("u3")))
    session.answer(CallModel(), messages=[user("u3")])
    assert (session.model_call.model, session.model_call.system) == ("one", "be brief")
    session.reply("ok")
    session.do(view(*first, user("edit")))
    session.answer(CallModel(), messages=[user("edit")])
    assert (session.model_call.model, session.model_call.system) == (None, None)


def test_3_values_that_were_cleared_are_unset_on_that_branch_only() -> None:
    """Above the place where they were cleared they still hold."""
    session = deciding()
    first = turn(session, "u1", [], state={"n": 1})
    second = turn(session, "u2", first, state={})
    assert asked(session).state is None
    session.do(view(*first))
    assert asked(session).state == {"n": 1}
    session.do(view(*second))
    assert asked(session).state is None


def test_3_values_written_on_a_branch_that_was_left_hold_there() -> None:
    """A worker ran its own tool meanwhile and wrote its memory with the result."""
    session = Session(agent(tool("own", handler="worker"), wants=frozenset({"tool.execute"})))
    session.say("u1")
    session.reply(None, ToolCall(id="c1", name="own", arguments='{"to": "ada"}'))
    question = session.out
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    left = session.path
    session.do(view(user("edit")))
    result = respond(GiveResult(result="done"), state={"n": 1})
    session.do(cmd.AnswerDecision(decision_id=question.id, attempt=1, response=result))
    assert session.state.control.state is None
    session.reply("instead")
    session.do(view(*left))
    assert session.state.control.state == {"n": 1}
