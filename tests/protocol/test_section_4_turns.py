"""One running turn, how turns end, what they are doing. Source: `protocol.md` section 4."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import TurnAlreadyActive
from engine.core.status import active_turn, status
from tests.core.given import Session, names, paused, user, view
from tests.protocol.given import (
    CHOOSE,
    answer,
    append,
    by_turn,
    picked,
    picking,
    refuse,
    restart,
    said,
    the_turn,
)
from tests.protocol.situations import (
    asked,
    calling,
    half,
    half_decided,
    left_open,
    left_while_paused,
    left_while_waiting,
    working,
)

LIFE = (ev.TurnStarted, ev.TurnCompleted)

# --------------------------------------------------------- one running turn


RUNNING = pytest.mark.parametrize(
    "given",
    [asked, calling, working, left_open, half, half_decided],
    ids=lambda given: given.__name__,
)


@RUNNING
@pytest.mark.parametrize("how", ["view", "append"])
def test_4_one_running_turn_refuses_input_that_would_start_another(
    given: Callable[[], Session], how: str
) -> None:
    """Whatever the turn is busy with; the refusal names it."""
    session = given()
    more = view(*session.path, user("u2")) if how == "view" else append(user("u2"))
    refusal = refuse(session, more, TurnAlreadyActive)
    assert (refusal.code, refusal.turn_id) == ("turn_already_active", the_turn(session).id)


def test_4_one_running_turn_is_not_joined_beside_an_answer_to_another_branch() -> None:
    """The answer clears nothing of what pauses this branch, for nothing does."""
    session = paused()
    interrupt_id = session.state.control.interrupts[0].id
    session.do(view(user("edit")))
    more = view(*session.path, user("u2"), answers=(answer(interrupt_id),))
    refusal = refuse(session, more, TurnAlreadyActive)
    assert refusal.turn_id == the_turn(session).id


def test_4_one_running_turn_takes_the_result_of_its_frontend() -> None:
    """It starts nothing: the call ends while a tool of the same turn still runs."""
    session = half()
    happened = session.do(append(picked()))
    assert "tool.call.completed" in names(happened)
    session = half()
    assert "tool.call.completed" in names(session.do(view(*session.path, picked())))


def test_4_one_running_turn_at_a_time_may_follow_another() -> None:
    """When the first one is over the next may start."""
    session = said()
    session.say("u2")
    session.reply("two")
    first, second = [turn_id for _, turn_id in by_turn(session, ev.TurnStarted)]
    assert first != second
    assert by_turn(session, *LIFE) == [
        ("turn.started", first),
        ("turn.completed", first),
        ("turn.started", second),
        ("turn.completed", second),
    ]


# ------------------------------------------------------------------- status


@dataclass(frozen=True)
class Doing:
    """A session, and what its turn is doing, and that after a restart where it is another thing.

    A tool that ran when the process died has ended.
    """

    given: Callable[[], Session]
    expected: str
    restarted: str = ""


def waiting_for_two() -> Session:
    """Only calls of the frontend are open."""
    return picking(replace(CHOOSE, id="c2"))


def paused_while_a_tool_runs() -> Session:
    """Somebody asks while the tool goes on."""
    session = working()
    session.do(cmd.RaiseInterrupt(reason="hold"))
    return session


def paused_while_the_frontend_is_asked() -> Session:
    """A question is open beside the frontend's call."""
    session = picking()
    session.do(cmd.RaiseInterrupt(reason="hold"))
    return session


STATUS = [
    Doing(asked, "running"),
    Doing(calling, "running"),
    Doing(working, "running"),
    Doing(left_open, "running"),
    Doing(half, "running", "waiting"),
    Doing(half_decided, "running"),
    Doing(picking, "waiting"),
    Doing(waiting_for_two, "waiting"),
    Doing(paused, "paused"),
    Doing(paused_while_a_tool_runs, "paused"),
    Doing(paused_while_the_frontend_is_asked, "paused"),
    Doing(left_while_paused, "parked"),
    Doing(left_while_waiting, "parked"),
]


@pytest.mark.parametrize("life", ["one process", "restarted"])
@pytest.mark.parametrize("case", STATUS, ids=lambda case: case.given.__name__)
def test_4_status_of_a_turn(case: Doing, life: str) -> None:
    """One word for what the first turn is doing; it can be read from the log."""
    session = case.given()
    expected = case.expected
    if life == "restarted":
        restart(session)
        expected = case.restarted or expected
    assert status(session.state, session.state.control.turns[0]) == expected


def test_4_status_completed_is_not_open_any_more() -> None:
    """A turn that is over is in the log only."""
    session = said()
    assert session.state.control.turns == ()
    assert active_turn(session.state) is None


def test_4_status_is_running_again_when_the_frontend_has_answered() -> None:
    """Each call that ends brings the turn nearer to its next model call."""
    session = waiting_for_two()
    session.do(view(*session.path, picked("t1", "c1")))
    assert status(session.state, the_turn(session)) == "waiting"
    session.do(view(*session.path, picked("t2", "c2")))
    assert status(session.state, the_turn(session)) == "running"
