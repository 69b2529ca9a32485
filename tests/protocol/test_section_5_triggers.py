"""Why a worker is asked: a test for each row of the table of triggers, and what is proposed.

Source: `protocol.md` section 5, the table of triggers.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core.env import ToolSpec
from engine.core.messages import AssistantMessage, ToolCall, ToolMessage, Usage
from engine.core.worker import (
    CallModel,
    CallTool,
    ClientAction,
    ClientMessages,
    Error,
    Interrupt,
    InterruptResumed,
    LlmFinished,
    ToolExecute,
    ToolFinished,
    ToolInput,
)
from tests.core.given import Session, agent, names, respond, tool, user, view
from tests.protocol.calls import (
    PICK,
    Sequence,
    answered,
    attempts,
    call,
    gating,
    hold,
    leave,
    left_open,
    running_own,
    take,
    told,
    worker_tool,
)


def wanting(*triggers: str, tools: Sequence[ToolSpec] = (), **more: Any) -> Session:
    """A worker that is asked about some triggers only."""
    return Session(agent(*tools, wants=frozenset(triggers), **more))


def proposed(session: Session) -> list[str]:
    """The actions that are proposed, by type."""
    return [action.type for action in told(session).proposed.actions]


# --------------------------------------------------------------- session.start


def test_5_trigger_session_start() -> None:
    """The first question of a session; proposed is the agent as configured."""
    session = wanting("session.start", system="be kind")
    session.say()
    assert session.trigger.type == "session.start"
    assert told(session).proposed.agent == {"model": "m", "system": "be kind"}


def test_5_trigger_session_start_comes_once_and_before_the_input() -> None:
    """What the person said waits for it; a second turn does not begin with it."""
    session = wanting("session.start", "client.messages")
    session.say()
    order = [session.trigger.type]
    take(session)
    order.append(session.trigger.type)
    take(session)
    session.reply()
    session.say("u2")
    order.append(session.trigger.type)
    assert order == ["session.start", "client.messages", "client.messages"]


@pytest.mark.parametrize(
    "first",
    [
        cmd.AppendMessages(messages=(user("u1"),)),
        cmd.TakeAction(name="hello"),
        cmd.RaiseInterrupt(reason="hold", interrupt_id="hold"),
    ],
    ids=["message", "action", "interrupt"],
)
def test_5_trigger_session_start_whatever_created_the_session(first: cmd.Command) -> None:
    """Some first input creates the session; the worker hears of that before anything else."""
    session = wanting("session.start", "client.action", "client.messages")
    session.do(first)
    if session.state.control.interrupts:
        session.resume(True)
        session.say()
    assert session.trigger.type == "session.start"


# ------------------------------------------------------------- client.messages


def test_5_trigger_client_messages() -> None:
    """It carries what is new, where on the path that begins, and what the frontend sent."""
    session = wanting("client.messages")
    session.say()
    take(session)
    session.reply()
    client = cmd.ClientContext(
        tools=({"name": "pick"},),
        context=({"description": "d", "value": "v"},),
        state={"s": 1},
        forwarded_props={"p": 2},
    )
    session.say("u2", client=client)

    trigger = session.trigger
    assert isinstance(trigger, ClientMessages)
    assert [m.id for m in trigger.messages] == ["u2"]
    assert trigger.new_from == 2
    assert trigger.client == client


def test_5_trigger_client_messages_proposes_to_record_and_call_the_model() -> None:
    """The model call has the tools and the context of the client."""
    session = wanting("client.messages")
    session.say(client=PICK)
    proposal = told(session).proposed
    assert [m.id for m in proposal.messages] == ["u1"]
    assert proposed(session) == ["llm.call"]
    take(session)
    assert session.state.control.turns[0].client == PICK


# --------------------------------------------------------------- client.action


def test_5_trigger_client_action() -> None:
    """It carries the name and the arguments; nothing is proposed."""
    session = wanting("client.action")
    session.do(cmd.TakeAction(name="refresh", args={"n": 1}))
    trigger = session.trigger
    assert isinstance(trigger, ClientAction)
    assert (trigger.name, trigger.args) == ("refresh", {"n": 1})
    assert told(session).proposed == respond()


def test_5_trigger_client_action_waits_among_the_triggers_of_its_turn() -> None:
    """During a turn it stands in line, and belongs to that turn."""
    session = wanting("client.messages", "client.action")
    session.say()
    session.do(cmd.TakeAction(name="refresh"))
    assert session.trigger.type == "client.messages"
    turn_id = session.out.turn_id
    take(session)
    assert (session.trigger.type, session.out.turn_id) == ("client.action", turn_id)


@pytest.mark.parametrize("opens", [True, False], ids=["llm.call", "nothing"])
def test_5_trigger_client_action_outside_a_turn_may_open_one(opens: bool) -> None:  # noqa: FBT001
    """Only a model call in answer opens a turn."""
    session = wanting("client.action")
    session.do(cmd.TakeAction(name="refresh"))
    assert session.state.control.turns == ()
    happened = session.answer(*([CallModel()] if opens else []))
    assert ("turn.started" in names(happened)) is opens


def test_5_trigger_client_action_without_a_worker_comes_to_nothing() -> None:
    """Nobody decides on it, so nothing is recorded."""
    session = Session()
    session.say()
    assert session.do(cmd.TakeAction(name="refresh")) == []


# ---------------------------------------------------------------- tool.execute


def test_5_trigger_tool_execute() -> None:
    """It carries the call, its raw arguments and what they are worth, the attempt, the time."""
    session = running_own()
    trigger = told(session).trigger
    assert trigger == ToolExecute(
        id="c1",
        name="own",
        arguments='{"to": "ada"}',
        input=ToolInput(status="valid", value={"to": "ada"}),
        attempt=1,
        deadline=session.now + timedelta(seconds=120),
    )


@pytest.mark.parametrize(
    ("arguments", "status"),
    [('{"to": "ada"}', "valid"), ('{"to": 3}', "invalid"), ("{}", "invalid"), ("{", "malformed")],
    ids=["valid", "wrong type", "missing", "malformed"],
)
def test_5_trigger_tool_execute_input_status(arguments: str, status: str) -> None:
    """Raw text is judged: a value when it fits, else what is wrong with it."""
    session = gating(replace(call(), arguments=arguments))
    trigger = session.trigger
    assert isinstance(trigger, ToolExecute)
    assert trigger.arguments == arguments
    assert trigger.input.status == status
    assert (trigger.input.error is None) is (status == "valid")
    assert (trigger.input.value == {"to": "ada"}) is (status == "valid")


@pytest.mark.parametrize(
    ("wish", "proposal"),
    [
        (call(), "tool.run"),
        (call(name="own"), None),
        (replace(call(), arguments="{}"), "tool.error"),
        (replace(call(), arguments="{"), "tool.error"),
        (replace(call(name="own"), arguments="{}"), "tool.error"),
        (call(name="nobody"), "tool.error"),
    ],
    ids=["function", "worker", "invalid", "malformed", "worker's, invalid", "undeclared"],
)
def test_5_trigger_tool_execute_proposes(wish: ToolCall, proposal: str | None) -> None:
    """Run a function, leave a worker's tool to it, refuse what cannot run."""
    session = wanting("tool.execute", tools=[tool("send"), worker_tool()])
    session.say()
    session.reply(None, wish)
    assert proposed(session) == ([proposal] if proposal else [])


def test_5_trigger_tool_execute_is_not_sent_for_a_clients_tool() -> None:
    """The frontend runs it; there is nothing to gate."""
    session = wanting("tool.execute")
    session.say(client=PICK)
    session.reply(None, call(name="pick"))
    assert session.state.control.decisions == ()
    assert attempts(session) == {"c1": 0}


# --------------------------------------------------------------- tool.finished


def test_5_trigger_tool_finished() -> None:
    """A call that ended for good: whether it went well, and its result in the MCP shape."""
    session = wanting("tool.finished", tools=[tool("send")])
    session.say()
    session.reply(None, call())
    session.finish("c1", "sent")
    trigger = session.trigger
    assert isinstance(trigger, ToolFinished)
    assert (trigger.id, trigger.name, trigger.ok, trigger.error) == ("c1", "send", True, None)
    assert trigger.result == {"content": [{"type": "text", "text": "sent"}]}


def test_5_trigger_tool_finished_with_an_error() -> None:
    """A failure has the error that the model reads, and no result."""
    session = wanting("tool.finished", tools=[tool("send")])
    session.say()
    session.reply(None, call(name="nobody"))
    trigger = session.trigger
    assert isinstance(trigger, ToolFinished)
    assert (trigger.ok, trigger.result, trigger.error) == (False, None, "there is no tool 'nobody'")


def test_5_trigger_tool_finished_proposes_to_record_and_call_the_model() -> None:
    """One message, and the model again."""
    session = wanting("tool.finished", tools=[tool("send")])
    session.say()
    session.reply(None, call())
    session.finish("c1", "sent")
    [message] = told(session).proposed.messages
    assert isinstance(message, ToolMessage)
    assert (message.tool_call_id, message.content) == ("c1", "sent")
    assert proposed(session) == ["llm.call"]


# ---------------------------------------------------------------- llm.finished


def test_5_trigger_llm_finished() -> None:
    """A model call that ended for good, with its reply, what it used, and whether it was cut."""
    session = wanting("llm.finished")
    session.say()
    model_call = session.model_call
    reply = AssistantMessage(id=model_call.message_id, content="hi")
    usage = (Usage(model="m", input_tokens=3, output_tokens=1),)
    session.do(
        cmd.FinishModelCall(
            call_id=model_call.id, attempt=1, message=reply, usage=usage, truncated=True
        )
    )
    trigger = session.trigger
    assert isinstance(trigger, LlmFinished)
    assert (trigger.id, trigger.ok, trigger.message) == (model_call.id, True, reply)
    assert (trigger.truncated, trigger.usage, trigger.error) == (True, usage, None)


def test_5_trigger_llm_finished_with_an_error() -> None:
    """A provider that failed for good: no message, the error."""
    session = wanting("llm.finished")
    session.say()
    failed = Error(code="provider_error", message="no such model")
    session.do(cmd.FailCall(call_id=session.model_call.id, attempt=1, error=failed))
    trigger = session.trigger
    assert isinstance(trigger, LlmFinished)
    assert (trigger.ok, trigger.message, trigger.error) == (False, None, failed)


def test_5_trigger_llm_finished_proposes_to_record_and_start_the_calls() -> None:
    """The reply, then each of its calls, in order and under the ids of the reply."""
    session = wanting("llm.finished", tools=[tool("send")])
    session.say()
    session.reply("a moment", call(), call("c2"))
    proposal = told(session).proposed
    assert [m.role for m in proposal.messages] == ["assistant"]
    assert [a.id for a in proposal.actions if isinstance(a, CallTool)] == ["c1", "c2"]


def test_5_trigger_llm_finished_without_calls_proposes_done() -> None:
    """A reply that asks for nothing ends the turn, and the proposal says so."""
    session = wanting("llm.finished")
    session.say()
    session.reply("hi")
    assert proposed(session) == ["done"]


# ----------------------------------------------------------- interrupt.resumed


def test_5_trigger_interrupt_resumed() -> None:
    """It names the question, how it ended, what was said, by whom, and the call it held."""
    session = wanting("tool.execute", "interrupt.resumed", tools=[tool("send")])
    session.say()
    session.reply(None, call())
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    session.resume({"approved": True}, "q", responder={"channel": "slack", "user": "U1"})
    trigger = session.trigger
    assert isinstance(trigger, InterruptResumed)
    assert (trigger.interrupt_id, trigger.reason, trigger.status) == ("q", "confirm", "resolved")
    assert trigger.answer == trigger.payload == {"approved": True}
    assert trigger.responder == {"channel": "slack", "user": "U1"}
    assert trigger.tool_call_id == "c1"


# ----------------------------------------------------- the model is called once


def test_5_llm_call_is_not_proposed_while_a_call_of_the_turn_is_open() -> None:
    """Of two results the first is only recorded."""
    session = wanting("tool.finished", tools=[tool("send")])
    session.say()
    session.reply(None, call(), call("c2"))
    session.finish("c1")
    assert proposed(session) == []
    take(session)
    session.finish("c2")
    assert proposed(session) == ["llm.call"]


def test_5_llm_call_is_not_proposed_while_another_trigger_waits_behind() -> None:
    """Two calls have ended, and the worker is asked about the first."""
    session = wanting("tool.finished", tools=[tool("send")])
    session.say()
    session.reply(None, call(), call("c2"))
    session.finish("c1")
    session.finish("c2")
    assert proposed(session) == []
    take(session)
    assert proposed(session) == ["llm.call"]


def test_5_llm_call_is_not_proposed_while_joined_input_waits() -> None:
    """The message that joined brings the model call."""
    session = wanting("tool.execute", "tool.finished", tools=[tool("send")])
    session.say()
    session.reply(None, call())
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    session.do(view(*session.path, user("u2"), answers=(answered("q", payload=True),)))
    session.finish("c1")
    assert session.trigger.type == "tool.finished"
    assert proposed(session) == []
    happened = take(session)
    assert names(happened).count("llm.call.requested") == 1
    assert session.path[-1].id == "u2"


def test_5_llm_call_of_another_turn_does_not_count() -> None:
    """A call that is open on a branch that was left keeps nobody waiting."""
    session = left_open()
    hold(session)
    leave(session)
    session.say("u3")
    assert session.model_call.anchor == "u3"
