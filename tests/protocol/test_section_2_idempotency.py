"""The same thing twice runs once. Source: `protocol.md` section 2."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import CallNotOpen
from engine.core.messages import ToolMessage
from engine.core.worker import CallModel, Error, GiveResult, RetryOverride, RunTool
from tests.core.given import Session, agent, names, paused, tool, user, view
from tests.protocol.given import (
    CHOOSE,
    PICK,
    SEND,
    answer,
    append,
    by_turn,
    ids,
    is_queued,
    late,
    picking,
    restart,
    said,
    turn_of,
)

# ------------------------------------------------------------------- turn ids


def started(turn_id: str = "mine") -> Session:
    """A turn runs under an id that its client chose."""
    session = Session(agent(tool("send")))
    session.do(append(user("u1"), turn_id=turn_id))
    return session


def completed() -> Session:
    """That turn is over."""
    session = started()
    session.reply("hi")
    return session


def queued() -> Session:
    """That turn waits behind another one."""
    session = Session()
    session.say("u1")
    session.do(append(user("u2"), queue=True, turn_id="mine"))
    return session


def waiting() -> Session:
    """That turn waits for its frontend."""
    session = Session()
    session.do(append(user("u1"), turn_id="mine", client=PICK))
    session.reply(None, CHOOSE)
    return session


def asked() -> Session:
    """That turn is paused."""
    session = started()
    session.do(cmd.RaiseInterrupt(reason="hold"))
    return session


def left() -> Session:
    """That turn is parked: the client has left its branch."""
    session = asked()
    session.do(view(user("edit")))
    session.reply("instead")
    return session


@pytest.mark.parametrize("life", ["one process", "restarted"])
@pytest.mark.parametrize("again", ["the same message", "another message"])
@pytest.mark.parametrize(
    "given", [started, completed, queued, waiting, asked, left], ids=lambda given: given.__name__
)
def test_2_twice_a_turn_id_returns_that_turn(
    given: Callable[[], Session], again: str, life: str
) -> None:
    """A turn's id names one turn, whatever comes with it and whatever the turn is doing."""
    session = given()
    if life == "restarted":
        restart(session)
    first = [m.id for m in session.path]
    message = user("u1") if again == "the same message" else user("other")
    for command in (
        append(message, turn_id="mine"),
        append(message, turn_id="mine", queue=True),
        view(message, turn_id="mine"),
        view(*session.path, message, turn_id="mine"),
    ):
        assert session.do(command) == []
        assert turn_of(session) == "mine"
    assert [m.id for m in session.path] == first


def test_2_twice_a_turn_id_of_a_view_returns_that_turn() -> None:
    """A view may name the turn it starts as well."""
    session = Session()
    session.do(view(user("u1"), turn_id="mine"))
    assert turn_of(session) == "mine"
    assert session.do(view(user("edit"), turn_id="mine")) == []
    session.reply("hi")
    assert session.do(view(user("edit"), turn_id="mine")) == []
    assert turn_of(session) == "mine"
    assert ids(session.path)[0] == "u1"


def test_2_twice_a_queued_turn_id_still_says_queued() -> None:
    """The reply to the second one is that of the first one."""
    session = queued()
    session.do(append(user("u2"), queue=True, turn_id="mine"))
    assert is_queued(session)


def test_2_twice_a_turn_id_starts_one_turn() -> None:
    """Sent three times around its own end, there is one start and one end of it."""
    session = started()
    session.do(append(user("u1"), turn_id="mine"))
    session.reply("hi")
    session.do(append(user("u1"), turn_id="mine"))
    expected = [("turn.started", "mine"), ("turn.completed", "mine")]
    assert by_turn(session, ev.TurnStarted, ev.TurnCompleted) == expected


def test_2_twice_a_queued_turn_id_starts_one_turn() -> None:
    """An id that waited, ran and ended is used up at each of these moments."""
    session = queued()
    session.reply("one")
    session.do(append(user("u3"), turn_id="mine", queue=True))
    session.reply("two")
    session.do(append(user("u4"), turn_id="mine"))
    assert by_turn(session, ev.TurnStarted).count(("turn.started", "mine")) == 1
    assert [m.id for m in session.path if m.role == "user"] == ["u1", "u2"]


def test_2_twice_the_same_messages_without_a_turn_id_belong_to_their_turn() -> None:
    """What is recorded, or only accepted, is not taken a second time."""
    session = Session()
    session.do(append(user("u1")))
    turn_id = turn_of(session)
    session.do(append(user("u2"), queue=True))
    waits = turn_of(session)
    assert session.do(append(user("u1"))) == []
    assert turn_of(session) == turn_id
    assert session.do(append(user("u2"), queue=True)) == []
    assert turn_of(session) == waits


# ------------------------------------------------------------------ decisions


def test_2_twice_a_decision_that_is_answered_is_ignored() -> None:
    """The second answer of a worker changes nothing, even if it says something else."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, SEND)
    decision = session.out
    session.answer(RunTool())
    assert late(session, decision.id, 1, GiveResult(id="c1", result="other")) == []
    assert session.state.call("c1") is not None


def test_2_twice_a_decision_that_was_dropped_is_ignored() -> None:
    """An answer that comes after the turn was stopped does nothing."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say()
    decision = session.out
    session.do(cmd.CancelSession())
    assert late(session, decision.id, 1, CallModel()) == []


def test_2_twice_a_decision_nobody_asked_for_is_ignored() -> None:
    """An id the session does not know is no error either."""
    assert late(said(), "nobody", 1, CallModel()) == []


def test_2_twice_an_old_attempt_of_a_decision_is_ignored() -> None:
    """Asked again, a worker's failure of the first time is not counted twice."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say()
    failed = cmd.FailDecision(
        decision_id=session.out.id,
        attempt=1,
        error=Error(code="worker_error", message="x", retryable=True),
    )
    session.do(failed)
    assert session.out.attempt == 2
    assert session.do(failed) == []


# -------------------------------------------------------------------- results

ENDED: dict[str, cmd.Command] = {
    "a tool of the engine": cmd.FinishToolCall(call_id="c1", attempt=1, result="again"),
    "a failure": cmd.FailCall(call_id="c1", attempt=1, error=Error(code="x", message="x")),
    "a client": cmd.SettleCall(call_id="c1", result="again"),
    "a backend": cmd.SettleCall(call_id="c1", error="again", caller="machine"),
}


@pytest.mark.parametrize("command", ENDED.values(), ids=ENDED.keys())
def test_2_twice_a_result_of_a_call_that_is_not_open_is_refused(command: cmd.Command) -> None:
    """A call ends once; whoever reports its end again is told so."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, SEND)
    session.finish("c1")
    with pytest.raises(CallNotOpen):
        session.do(command)


@pytest.mark.parametrize("command", ENDED.values(), ids=ENDED.keys())
def test_2_twice_a_result_of_a_call_that_never_was_is_refused(command: cmd.Command) -> None:
    """Nobody can end what nobody began."""
    with pytest.raises(CallNotOpen):
        said().do(command)


def test_2_twice_a_reply_of_a_model_call_that_is_over_is_refused() -> None:
    """A provider's second answer is not recorded."""
    session = Session()
    session.say()
    call = session.model_call
    session.reply("hi")
    failed = Error(code="provider_error", message="x")
    with pytest.raises(CallNotOpen):
        session.do(cmd.FailCall(call_id=call.id, attempt=1, error=failed))


def test_2_twice_a_frontends_result_again_changes_nothing() -> None:
    """Sent with a view it is history; sent alone it is refused."""
    session = picking()
    result = ToolMessage(id="t1", tool_call_id="c1", content="blue")
    session.do(view(*session.path, result))
    assert session.do(view(*session.path)) == []
    with pytest.raises(CallNotOpen):
        session.do(cmd.SettleCall(call_id="c1", result="red"))
    assert session.path[-1] == result


def retried(wants: frozenset[str] = frozenset()) -> Session:
    """The second attempt of a function tool's call runs."""
    policy = tool("send").retry.but(RetryOverride(attempts=2, max=0))
    session = Session(agent(tool("send", retry=policy), wants=wants))
    session.say()
    session.reply(None, SEND)
    failed = Error(code="tool_error", message="x", retryable=True)
    session.do(cmd.FailCall(call_id="c1", attempt=1, error=failed))
    return session


OLD: dict[str, cmd.Command] = {
    "a result": cmd.FinishToolCall(call_id="c1", attempt=1, result="late"),
    "a failure": cmd.FailCall(call_id="c1", attempt=1, error=Error(code="x", message="x")),
    "settled": cmd.SettleCall(call_id="c1", result="late", attempt=1, caller="machine"),
}


@pytest.mark.parametrize("command", OLD.values(), ids=OLD.keys())
def test_2_twice_a_result_of_an_old_attempt_is_refused(command: cmd.Command) -> None:
    """Only the attempt that runs can end; the call goes on."""
    session = retried()
    with pytest.raises(CallNotOpen):
        session.do(command)
    call = session.state.call("c1")
    assert call is not None
    assert call.attempt == 2
    assert "tool.call.completed" in names(session.finish("c1"))


def test_2_twice_a_workers_result_of_an_old_attempt_is_refused() -> None:
    """A worker that names another attempt than the one that runs is asked again."""
    session = retried(wants=frozenset({"client.action"}))
    session.do(cmd.TakeAction(name="stop"))
    happened = session.answer(GiveResult(id="c1", result="late", attempt=1))
    assert names(happened) == ["decision.errored"]
    assert session.state.call("c1") is not None
    happened = session.answer(GiveResult(id="c1", result="stopped", attempt=2))
    assert names(happened)[:2] == ["decision.completed", "tool.call.completed"]


def test_2_twice_a_reply_of_an_old_attempt_is_refused() -> None:
    """A model that was called again answers for its newest attempt only."""
    session = Session()
    session.say()
    call = session.model_call
    failed = Error(code="provider_error", message="x", retryable=True)
    session.do(cmd.FailCall(call_id=call.id, attempt=1, error=failed))
    with pytest.raises(CallNotOpen):
        session.do(cmd.FailCall(call_id=call.id, attempt=1, error=failed))
    assert session.model_call.attempt == 2


# ----------------------------------------------------------------- interrupts


def resume(interrupt_id: str, payload: Any) -> cmd.Command:
    """Answer by id, as a command of its own."""
    return cmd.ResumeInterrupt(answer=answer(interrupt_id, payload))


def in_view(interrupt_id: str, payload: Any) -> cmd.Command:
    """Answer by id, beside an empty view."""
    return view(answers=(answer(interrupt_id, payload),))


@pytest.mark.parametrize("how", [resume, in_view], ids=["alone", "beside a view"])
@pytest.mark.parametrize("which", ["old", "of nobody"])
def test_2_twice_an_old_interrupt_id_does_nothing(
    which: str, how: Callable[[str, Any], cmd.Command]
) -> None:
    """The first answer counts; every other one is a success without an effect."""
    session = paused()
    interrupt_id = session.state.control.interrupts[0].id
    session.do(how(interrupt_id, True))
    asked_for = interrupt_id if which == "old" else "nobody"
    assert session.do(how(asked_for, False)) == []
    session.finish("c1", "sent")
    assert session.do(how(asked_for, False)) == []
    session.reply("done")
    assert session.do(how(asked_for, False)) == []
    assert ids(session.path)[0] == "u1"


def test_2_twice_one_id_in_one_view_counts_once() -> None:
    """The second entry of a list meets an old id."""
    session = paused()
    interrupt_id = session.state.control.interrupts[0].id
    happened = session.do(view(answers=(answer(interrupt_id, True), answer(interrupt_id, False))))
    assert names(happened) == ["session.interrupt_resumed", "call.started"]
