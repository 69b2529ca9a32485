"""What the engine would do about an answer: a test for each of its cases.

Source: `protocol.md` section 6, "`proposed` for `interrupt.resumed`".
"""

from collections.abc import Sequence

import pytest

from engine.core.errors import SessionInterrupted
from engine.core.messages import ToolCall
from engine.core.worker import CallModel, GiveError, Interrupt
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.calls import PICK, answered, call, hold, take, told, worker_tool

RESUMED = frozenset({"interrupt.resumed"})
GATE = frozenset({"tool.execute"})


def asked(calls: Sequence[ToolCall] = ()) -> Session:
    """A worker that gates a call has asked a person about it: `q`, which holds `c1`."""
    session = Session(agent(tool("send"), worker_tool(), wants=GATE | RESUMED))
    session.say(client=PICK)
    session.reply(None, *(calls or (call(),)))
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    return session


def proposed(session: Session) -> list[str]:
    """The actions that are proposed, by type."""
    return [action.type for action in told(session).proposed.actions]


@pytest.mark.parametrize("said", [True, {"approved": True}, {"approved": True, "n": 1}], ids=repr)
def test_6_proposed_for_a_held_function_call_runs_it(said: object) -> None:
    """When the answer is `true`, or an object that says it is approved."""
    session = asked()
    session.resume(said, "q")
    # This worker gates the tool and has said so: it is not asked about the call a second time.
    assert proposed(session) == ["tool.run"]


@pytest.mark.parametrize(
    "said",
    [False, None, 1, "true", "yes", [], {}, {"approved": 1}, {"approved": "true"}, {"ok": True}],
    ids=repr,
)
def test_6_proposed_for_a_held_function_call_declines(said: object) -> None:
    """Anything else: an error that says a person declined."""
    session = asked()
    session.resume(said, "q")
    [action] = told(session).proposed.actions
    assert isinstance(action, GiveError)
    assert "a person declined" in action.error


def test_6_proposed_for_a_held_worker_call_is_nothing() -> None:
    """The held call is open, and it is the worker's."""
    session = asked(calls=[call("c1", "own")])
    session.resume(True, "q")
    assert proposed(session) == []


def test_6_proposed_while_a_call_of_the_turn_is_open_is_nothing() -> None:
    """The model is called when that has ended."""
    session = Session(agent(tool("send"), wants=RESUMED))
    session.say()
    session.reply(None, call())
    hold(session)
    session.resume(True, "hold")
    assert proposed(session) == []


def test_6_proposed_while_another_trigger_waits_is_nothing() -> None:
    """The result of the call that ended meanwhile brings the model call."""
    session = Session(agent(tool("send"), wants=RESUMED))
    session.say()
    session.reply(None, call())
    hold(session)
    session.finish("c1")
    session.resume(True, "hold")
    assert proposed(session) == []
    assert names(take(session)).count("llm.call.requested") == 1


def test_6_proposed_while_joined_input_waits_is_nothing() -> None:
    """The message that came with the answer brings the model call."""
    session = Session(agent(wants=RESUMED))
    session.say()
    hold(session)
    session.do(view(*session.path, user("u2"), answers=(answered("hold", payload=True),)))
    assert proposed(session) == []
    take(session)
    assert session.model_call.anchor == "u2"


def test_6_proposed_else_is_a_model_call_over_the_transcript() -> None:
    """The call in flight was voided; the agent goes on from there."""
    session = Session(agent(wants=RESUMED))
    session.say()
    hold(session)
    session.resume(False, "hold")
    assert proposed(session) == ["llm.call"]


def test_6_proposed_outside_a_turn_is_nothing() -> None:
    """An interrupt raised while no turn runs pauses the branch, and opens no turn by itself."""
    session = Session(agent(wants=RESUMED))
    session.say()
    session.reply()
    hold(session)
    with pytest.raises(SessionInterrupted):
        session.say("u2")
    session.resume(True, "hold")
    assert (session.out.turn_id, proposed(session)) == (None, [])
    assert names(take(session)) == ["decision.completed"]


def test_6_a_model_call_in_answer_outside_a_turn_opens_one() -> None:
    """A new turn, not the one that is over."""
    session = Session(agent(wants=RESUMED))
    session.say()
    session.reply()
    hold(session)
    session.resume(True, "hold")
    happened = names(session.answer(CallModel()))
    assert happened == ["decision.completed", "turn.started", "llm.call.requested"]
