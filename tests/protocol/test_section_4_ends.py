"""How a turn ends, and that a pause does not end it. Source: `protocol.md` section 4."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import SessionInterrupted
from engine.core.messages import AssistantMessage, ToolCall, Usage
from engine.core.status import status
from engine.core.worker import Done, Error
from tests.core.given import Session, agent, names, paused, tool, user, view
from tests.protocol.given import (
    CHOOSE,
    PICK,
    SEND,
    answer,
    append,
    by_turn,
    error_of,
    ids,
    notices,
    picked,
    picking,
    refuse,
    restart,
    the_turn,
    turn_of,
)
from tests.protocol.situations import asked, calling, left_while_paused

LIFE = (ev.TurnStarted, ev.TurnCompleted)

# --------------------------------------------------------- start and end


def fail_model(session: Session, code: str) -> None:
    """The provider fails for good."""
    call = session.model_call
    error = Error(code=code, message="x")
    session.do(cmd.FailCall(call_id=call.id, attempt=call.attempt, error=error))


def ends_cancelled() -> Session:
    """Somebody stops it."""
    session = calling()
    session.do(cmd.CancelSession())
    return session


def ends_abandoned() -> Session:
    """Its question is given up while its branch is not the active one."""
    session = left_while_paused()
    session.resume(cancelled=True)
    return session


def ends_worker_error() -> Session:
    """Its worker fails for good."""
    session = asked()
    error = Error(code="worker_error", message="x")
    session.do(cmd.FailDecision(decision_id=session.out.id, attempt=1, error=error))
    return session


def ends_worker_error_by_rules() -> Session:
    """Its worker breaks a rule as often as it is asked."""
    session = asked()
    while session.state.control.turns:
        session.wait(minutes=2)
        session.do(cmd.PassTime())
        if session.state.control.turns:
            session.answer(Done(), Done())
    return session


def ends_provider_error() -> Session:
    """Its provider fails."""
    session = calling()
    fail_model(session, "provider_error")
    return session


def ends_rate_limited() -> Session:
    """Its provider is busy."""
    session = calling()
    fail_model(session, "rate_limited")
    return session


def ends_refused() -> Session:
    """Its model will not answer."""
    session = calling()
    fail_model(session, "refused")
    return session


def ends_deadline_exceeded() -> Session:
    """Its model call takes longer than all attempts together may."""
    session = calling()
    while session.state.control.turns:
        session.wait(minutes=5)
        session.do(cmd.PassTime())
    return session


ENDS = {
    "cancelled": ends_cancelled,
    "abandoned": ends_abandoned,
    "worker_error": ends_worker_error,
    "worker_error, attempts used up": ends_worker_error_by_rules,
    "provider_error": ends_provider_error,
    "rate_limited": ends_rate_limited,
    "refused": ends_refused,
    "deadline_exceeded": ends_deadline_exceeded,
}


@pytest.mark.parametrize(("code", "given"), ENDS.items(), ids=ENDS.keys())
def test_4_ends_with_the_error_code(code: str, given: Callable[[], Session]) -> None:
    """The first turn has one start and one end, in that order, and the end says why."""
    session = given()
    [(_, first), *_] = by_turn(session, ev.TurnStarted)
    assert first is not None
    assert error_of(session, first) == code.partition(",")[0]
    of_first = [kind for kind, turn_id in by_turn(session, *LIFE) if turn_id == first]
    assert of_first == ["turn.started", "turn.completed"]


@pytest.mark.parametrize(("code", "given"), ENDS.items(), ids=ENDS.keys())
def test_4_ends_with_nothing_open(code: str, given: Callable[[], Session]) -> None:
    """No call, no decision and no question of a turn outlives it; the next one may start."""
    session = given()
    [(_, first), *_] = by_turn(session, ev.TurnStarted)
    control = session.state.control
    assert [c for c in control.calls if c.turn_id == first] == []
    assert [d for d in control.decisions if d.turn_id == first] == []
    assert [i for i in control.interrupts if i.turn_id == first] == []


def test_4_ends_well_with_its_data_and_usage() -> None:
    """`done` gives the data; without an error there is none."""
    session = asked()
    [completed] = [
        b for b in session.answer(Done(data={"n": 1})) if isinstance(b, ev.TurnCompleted)
    ]
    assert (completed.data, completed.error, completed.usage) == ({"n": 1}, None, ())


def test_4_ends_with_the_usage_of_all_its_model_calls() -> None:
    """Added up for each provider and model; a count that nobody reported adds nothing."""
    session = Session(agent(tool("send")))
    session.say("u1")
    spend(session, Usage(model="m", provider="p", input_tokens=3, output_tokens=4), SEND)
    session.finish("c1")
    [*_, completed] = spend(session, Usage(model="m", provider="p", input_tokens=5))
    assert isinstance(completed, ev.TurnCompleted)
    assert completed.usage == (Usage(model="m", provider="p", input_tokens=8, output_tokens=4),)


def test_4_ends_with_its_own_usage() -> None:
    """Another turn's model calls are not counted, although that turn is still open."""
    session = Session(agent(tool("send")))
    session.say("u1")
    spend(session, Usage(model="m", input_tokens=3), SEND)
    session.do(cmd.RaiseInterrupt(reason="hold"))
    session.do(view(user("edit")))
    [*_, completed] = spend(session, Usage(model="m", input_tokens=5))
    assert isinstance(completed, ev.TurnCompleted)
    assert completed.usage == (Usage(model="m", input_tokens=5),)


def spend(session: Session, usage: Usage, *calls: ToolCall) -> list[ev.Body]:
    """The model answers, and says what that took."""
    call = session.model_call
    reply = AssistantMessage(id=call.message_id, content="ok", tool_calls=calls)
    return session.do(
        cmd.FinishModelCall(call_id=call.id, attempt=1, message=reply, usage=(usage,))
    )


def test_4_ends_without_data_when_nothing_is_left_to_do() -> None:
    """The agent has stopped responding."""
    session = calling()
    last = session.reply("hi")[-1]
    assert isinstance(last, ev.TurnCompleted)
    assert (last.data, last.error) == (None, None)


# ------------------------------------------------------------------- paused


def test_4_paused_refuses_input_and_names_what_is_open() -> None:
    """Messages, in a view or at the head, with and without `queue`."""
    session = paused()
    [interrupt] = session.state.control.interrupts
    for more in (
        view(*session.path, user("u2")),
        append(user("u2")),
        append(user("u2"), queue=True),
    ):
        assert refuse(session, more, SessionInterrupted).interrupt_ids == [interrupt.id]


def test_4_paused_on_every_path_keeps_an_edit_out() -> None:
    """A page that must not be refused is told; the head stays, and so does the turn."""
    session = calling()
    session.do(cmd.RaiseInterrupt(reason="budget", caller="system"))
    turn, path = the_turn(session), session.path
    assert session.do(view(user("edit"), lenient=True)) == []
    assert notices(session) == ["session_interrupted"]
    assert (the_turn(session), session.path) == (turn, path)


@pytest.mark.parametrize("how", ["view", "append", "by id"])
def test_4_paused_takes_the_result_of_its_frontend(how: str) -> None:
    """It ends an open call and is no new message; what it leads to waits."""
    session = picking()
    session.do(cmd.RaiseInterrupt(reason="hold"))
    commands: dict[str, cmd.Command] = {
        "view": view(*session.path, picked()),
        "append": append(picked()),
        "by id": cmd.SettleCall(call_id="c1", result="blue"),
    }
    happened = session.do(commands[how])
    assert names(happened) == ["tool.call.completed", "decision.waiting"]


@pytest.mark.parametrize("how", ["a tool ends", "the worker fails", "time passes", "a crash"])
def test_4_paused_completes_only_by_a_cancel(how: str) -> None:
    """What else happens is recorded, and the turn is still there."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished"})))
    session.say("u1")
    session.reply(None, SEND, replace(SEND, id="c2"))
    session.finish("c2")
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    turn = the_turn(session)
    match how:
        case "a tool ends":
            session.finish("c1")
        case "the worker fails":
            error = Error(code="worker_error", message="x")
            session.do(cmd.FailDecision(decision_id=session.out.id, attempt=1, error=error))
        case "time passes":
            session.wait(days=40)
            session.do(cmd.PassTime())
        case _:
            restart(session)
    assert the_turn(session).id == turn.id
    assert status(session.state, turn) == "paused"
    session.do(cmd.CancelSession())
    assert error_of(session, turn.id) == "cancelled"


def test_4_paused_holds_a_workers_done() -> None:
    """The turn ends when the branch is free."""
    session = asked()
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    assert "turn.completed" not in names(session.answer(Done()))
    assert "turn.completed" in names(session.resume(True))


def test_4_a_turn_that_completes_ends_the_interrupts_raised_in_it() -> None:
    """Those of another turn stay open."""
    session = paused()
    first = session.state.control.interrupts[0].id
    session.do(view(user("edit"), client=PICK))
    session.reply(None, replace(CHOOSE, id="c9"))
    session.do(cmd.RaiseInterrupt(reason="one", interrupt_id="i1"))
    session.do(cmd.RaiseInterrupt(reason="two", interrupt_id="i2"))
    second = the_turn(session).id
    session.do(view(user("third")))
    session.resume(True, interrupt_id="i1")
    session.resume(True, interrupt_id="i2")
    session.do(cmd.SettleCall(call_id="c9", result="blue"))
    assert error_of(session, second) == "abandoned"
    assert ids_of(session) == [first]


def ids_of(session: Session) -> list[str]:
    """Return the ids of the questions that are open."""
    return [interrupt.id for interrupt in session.state.control.interrupts]


def test_4_a_turn_has_one_id_for_its_whole_life() -> None:
    """Over a question, its answer, a restart and a tool; and the client reads it each time."""
    session = paused()
    turn = the_turn(session).id
    restart(session)
    session.do(view(*session.path, answers=(answer(ids_of(session)[0]),)))
    assert turn_of(session) == turn
    session.finish("c1")
    restart(session)
    session.reply("done")
    assert {event.turn_id for event in session.log[1:]} == {turn}
    assert ids(session.path)[0] == "u1"
