"""What a worker is told: a test for each field of the request.

Source: `protocol.md` section 5, the table of the request.
"""

from dataclasses import replace
from datetime import timedelta

from engine.core import commands as cmd
from engine.core.env import DECISION
from engine.core.messages import ToolMessage
from engine.core.worker import CallModel, ClientMessages, Error, Interrupt, ToolExecute
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.calls import (
    PICK,
    YES,
    answered,
    call,
    come_back,
    gating,
    hold,
    leave,
    running_own,
    sensitive,
    settle,
    take,
    take_all,
    told,
    worker_tool,
)

INPUT = frozenset({"client.messages"})


def asked(**more: object) -> Session:
    """A worker that is asked about a person's first message."""
    session = Session(agent(wants=INPUT, **more))
    session.say()
    return session


def test_5_request_field_session_id_and_agent_id() -> None:
    """The worker learns which conversation of which agent it decides about."""
    request = told(asked())
    assert (request.session_id, request.agent_id) == ("s", "a")


def test_5_request_field_turn_id() -> None:
    """The turn is the one that the input started; outside a turn there is none."""
    session = asked()
    assert told(session).turn_id == session.state.control.turns[0].id

    outside = Session(agent(wants=frozenset({"client.action"})))
    outside.do(cmd.TakeAction(name="refresh"))
    assert told(outside).turn_id is None


def test_5_request_field_decision_id_is_the_same_over_all_attempts() -> None:
    """Asking again is the same decision; the next question is another one."""
    session = asked()
    first = told(session).decision_id
    failed = Error(code="worker_error", message="x", retryable=True)
    session.do(cmd.FailDecision(decision_id=first, attempt=1, error=failed))
    assert told(session).decision_id == first
    take(session)
    session.reply()
    session.say("u2")
    assert told(session).decision_id != first


def test_5_request_field_attempt_starts_at_1() -> None:
    """The first question is attempt 1, and each time it is asked again counts one up."""
    session = asked()
    assert told(session).attempt == 1
    session.wait(seconds=DECISION.run.total_seconds())
    session.do(cmd.PassTime())
    assert told(session).attempt == 2


def test_5_request_field_identity_is_the_owner() -> None:
    """The engine vouches for the owner that the session was created with."""
    assert told(asked()).identity.id == "o"


def test_5_request_field_trigger() -> None:
    """The trigger says why the worker is asked."""
    trigger = told(asked()).trigger
    assert isinstance(trigger, ClientMessages)
    assert [m.id for m in trigger.messages] == ["u1"]


def test_5_request_field_proposed_is_what_the_engine_would_do() -> None:
    """A worker that returns the proposal gets what an agent without a worker has."""
    alone, with_worker = Session(agent(tool("send"))), Session(agent(tool("send"), wants=None))
    for session in (alone, with_worker):
        _talk(session)
    assert [m.role for m in with_worker.path] == [m.role for m in alone.path]
    assert [type(m) for m in with_worker.path] == [type(m) for m in alone.path]


def test_5_request_field_proposed_is_always_valid() -> None:
    """Returned unchanged, no proposal of a whole conversation is refused."""
    session = Session(agent(sensitive(), tool("plain"), worker_tool(), wants=None))
    everything = [call(), call("c2", "plain"), call("c3", "own"), call("c4", "pick")]
    session.say(client=PICK)
    take_all(session)
    session.reply(None, *everything, call("c5", "nobody"), replace(call("c6"), arguments="{"))
    take_all(session)
    picked = ToolMessage(id="t4", tool_call_id="c4", content="blue")
    session.do(view(*session.path, picked, answers=(answered("approve:c1", YES),)))
    take_all(session)
    for call_id in ("c1", "c2"):
        session.finish(call_id)
        take_all(session)
    settle(session, "c3")
    take_all(session)
    session.reply("done")
    take_all(session)

    assert "decision.errored" not in names([event.body for event in session.log])
    assert session.state.control.turns == ()


def test_5_request_field_state_is_null_when_there_is_none() -> None:
    """A worker that has written nothing yet reads `null`."""
    assert told(asked()).state is None


def test_5_request_field_state_is_that_of_the_active_path() -> None:
    """What was written on a branch that was left is not read on the other."""
    session = asked()
    session.answer(CallModel(), messages=[user("u1")], state={"n": 1})
    session.reply()
    session.say("u2")
    assert told(session).state == {"n": 1}
    take(session)
    session.reply()
    session.do(view(user("edit")))
    assert told(session).state is None


def test_5_request_field_agent_is_the_config_in_force() -> None:
    """What was declared, and after a decision has changed it, what that said."""
    session = asked(system="be kind")
    assert told(session).agent == {"model": "m", "system": "be kind"}
    session.answer(CallModel(), messages=[user("u1")], agent={"model": "m2"})
    session.reply()
    session.say("u2")
    assert told(session).agent == {"model": "m2", "system": "be kind"}


def test_5_request_field_messages_is_the_active_path_as_the_model_sees_it() -> None:
    """From the root to the head, each result behind the message that asked."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished"})))
    session.say()
    session.reply(None, call(), call("c2"))
    session.finish("c2")
    take(session)
    session.finish("c1")
    take(session)
    session.reply("fine")
    session.say("u2")
    session.reply(None, call("c3"))
    session.finish("c3")

    results = [m for m in told(session).messages if isinstance(m, ToolMessage)]
    assert [m.tool_call_id for m in results] == ["c1", "c2"]
    roles = [m.role for m in told(session).messages]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "user", "assistant"]


def test_5_request_field_message_tree_holds_every_branch() -> None:
    """Each message with its parent, and where the active path ends."""
    session = Session(agent(wants=frozenset({"llm.finished"}), send_tree=True))
    session.say()
    session.reply("one")
    take(session)
    first = session.state.control.head
    session.do(view(user("edit")))
    session.reply("two")
    tree = told(session).message_tree
    assert tree is not None
    parents = {each.message.id: each.parent_id for each in tree.messages}
    assert parents == {"u1": None, first: "u1", "edit": None}
    assert tree.head_id == "edit"


def test_5_request_field_message_tree_is_for_agents_that_ask_for_it() -> None:
    """It grows with every branch, so that a worker in the process is spared it, too."""
    assert told(asked()).message_tree is None


def test_5_request_field_calls_are_those_in_flight() -> None:
    """What each one is, what it was called with, where it hangs, and how long it has."""
    session = Session(
        agent(tool("send"), worker_tool(), wants=frozenset({"client.action", "tool.execute"}))
    )
    session.say(client=PICK)
    session.reply(None, call("c1", "own"), call("c2", "pick"))
    session.answer()
    session.do(cmd.TakeAction(name="look"))

    own, pick = told(session).calls
    assert (own.id, own.kind, own.name, own.arguments) == ("c1", "worker", "own", '{"to": "ada"}')
    assert (pick.id, pick.kind, pick.name) == ("c2", "client", "pick")
    assert own.anchor == pick.anchor == session.state.control.head
    assert own.deadline is None


def test_5_request_field_calls_say_attempt_status_and_deadline() -> None:
    """A call that runs is told from one that nobody has started."""
    session = gating(call(), call("c2"))
    take(session)
    first, second = told(session).calls
    assert (first.status, first.attempt) == ("running", 1)
    assert first.deadline == session.now + timedelta(seconds=120)
    assert (second.status, second.attempt, second.deadline) == ("open", 0, None)


def test_5_request_field_interrupts_are_those_of_all_branches() -> None:
    """A question on a branch that was left is shown on the others."""
    session = gating()
    session.answer(Interrupt(reason="confirm", interrupt_id="q", payload={"message": "Send?"}))
    session.do(view(user("edit")))
    session.reply(None, call("c9"))

    [question] = told(session).interrupts
    assert (question.interrupt_id, question.reason) == ("q", "confirm")
    assert (question.payload, question.tool_call_id) == ({"message": "Send?"}, "c1")


def test_5_request_field_deadline_is_when_this_attempt_lapses() -> None:
    """The time of one attempt, counted from when it is asked."""
    session = asked()
    assert told(session).deadline == session.now + DECISION.run
    session.wait(seconds=20)
    session.do(cmd.PassTime())
    again = session.out.not_before
    assert again is not None
    assert told(session).deadline == again + DECISION.run


def test_5_request_field_deadline_of_a_workers_own_tool_is_the_tools() -> None:
    """The trigger carries the same moment."""
    session = running_own()
    request = told(session)
    assert isinstance(request.trigger, ToolExecute)
    assert request.deadline == request.trigger.deadline == session.now + timedelta(seconds=120)


def test_5_request_is_not_changed_by_a_branch_that_comes_back() -> None:
    """The question about a branch that was left is asked when it is shown again."""
    session = gating()
    before = told(session)
    hold(session)
    path = leave(session)
    come_back(session, path)
    session.resume(True, "hold")
    after = told(session)
    assert (after.turn_id, after.messages) == (before.turn_id, before.messages)


def _talk(session: Session) -> None:
    """A conversation with one tool call; the worker takes what is proposed."""
    session.say()
    take_all(session)
    session.reply(None, call())
    take_all(session)
    session.finish("c1")
    take_all(session)
    session.reply("done")
    take_all(session)
    assert session.state.control.turns == ()
