"""What a worker can have done: a test for each row of the table of actions.

Source: `protocol.md` section 5, the table of actions and what stands below it.
"""

from typing import Any

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import CallNotOpen
from engine.core.interrupts import is_paused
from engine.core.messages import Message, ToolCall, ToolMessage
from engine.core.worker import (
    Action,
    CallModel,
    CallTool,
    Done,
    Error,
    GiveError,
    GiveResult,
    Interrupt,
    LlmFinished,
    ResolveInterrupt,
    RunTool,
    ToolExecute,
)
from tests.core.given import Session, agent, names, tool, user, view
from tests.protocol.calls import (
    PICK,
    attempts,
    call,
    gating,
    hold,
    only,
    opened,
    read,
    running_own,
    started,
    take,
    worker_tool,
)

REPLY = frozenset({"llm.finished"})


def replied(*calls: ToolCall, wants: frozenset[str] = REPLY, **more: Any) -> Session:
    """A worker that is asked what to do about a model's reply."""
    session = Session(agent(tool("send"), worker_tool(), wants=wants, **more))
    session.say(client=PICK)
    session.reply(None, *(calls or (call(),)))
    return session


def message(session: Session) -> Message:
    """The reply that the worker is asked about."""
    assert isinstance(session.trigger, LlmFinished)
    assert session.trigger.message is not None
    return session.trigger.message


def start(name: str = "send", call_id: str | None = "c1") -> CallTool:
    """Start a call."""
    return CallTool(id=call_id, name=name, arguments='{"to": "ada"}')


# -------------------------------------------------------------------- llm.call


def test_5_action_llm_call_says_model_system_and_client() -> None:
    """What it names goes before the config; everything may be left out."""
    session = Session(agent(wants=frozenset({"client.messages"}), system="be kind"))
    session.say()
    action = CallModel(model="m2", system="be brief", client=PICK)
    session.answer(action, messages=[user("u1")])
    made = session.model_call
    assert (made.model, made.system, made.client) == ("m2", "be brief", PICK)


# ------------------------------------------------------------------- tool.call


@pytest.mark.parametrize(
    ("name", "kind"),
    [("send", "function"), ("own", "worker"), ("pick", "client"), ("nobody", None)],
)
def test_5_action_tool_call_runs_where_the_name_says(name: str, kind: str | None) -> None:
    """The agent's tools, then the frontend's; a name that nobody declared ends in an error."""
    session = replied()
    happened = session.answer(start(name, "c9"), messages=[message(session)])
    assert only(happened, ev.ToolCallRequested).handler == (kind or "unknown")
    if kind is None:
        assert "tool.call.errored" in names(happened)
    else:
        assert opened(session, "c9").kind == kind


def test_5_action_tool_call_mints_an_id_when_it_names_none() -> None:
    """Two calls without an id are two calls."""
    session = replied()
    session.answer(start(call_id=None), start(call_id=None), messages=[message(session)])
    assert len(attempts(session)) == 2


def test_5_action_tool_call_is_gated_like_a_models() -> None:
    """Who is asked about `tool.execute` is asked about these, too."""
    session = replied(wants=frozenset({"llm.finished", "tool.execute"}))
    session.answer(start(call_id="c9"), messages=[message(session)])
    assert isinstance(session.trigger, ToolExecute)
    assert session.trigger.id == "c9"


# -------------------------------------------------------------------- tool.run


def test_5_action_tool_run() -> None:
    """The engine runs the function now; the id is that of the call that is asked about."""
    session = gating()
    assert started(session.answer(RunTool())) == ["c1"]


def test_5_action_tool_run_names_another_call() -> None:
    """One that waits may be started with the one that is asked about."""
    session = gating(call(), call("c2"))
    assert started(session.answer(RunTool(), RunTool(id="c2"))) == ["c1", "c2"]
    assert session.state.control.decisions == ()


def test_5_action_tool_run_is_for_function_tools() -> None:
    """The engine has no function for a worker's tool."""
    assert names(running_own(worker_tool(attempts=2)).answer(RunTool())) == ["decision.errored"]


# ------------------------------------------------------- tool.result, tool.error


def test_5_action_tool_result() -> None:
    """It ends the call that is asked about."""
    session = running_own()
    session.answer(GiveResult(result="sent"))
    assert read(session) == {"c1": "sent"}


def test_5_action_tool_error() -> None:
    """The model reads the error."""
    session = running_own()
    session.answer(GiveError(error="no such address"))
    [result] = [m for m in session.path if isinstance(m, ToolMessage)]
    assert result.error == "no such address"


@pytest.mark.parametrize(
    "action", [GiveResult(id="c2", result="x"), GiveError(id="c2", error="x")], ids=["ok", "error"]
)
def test_5_action_tool_result_names_another_call(action: Action) -> None:
    """One of the worker's calls may be ended while it is asked about another."""
    session = Session(agent(worker_tool(), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, call("c2", "own"), call("c1", "own"))
    session.answer()
    assert isinstance(session.trigger, ToolExecute)
    assert session.trigger.id == "c1"
    session.answer(action)
    assert "c2" in read(session)
    assert list(attempts(session)) == ["c1"]


@pytest.mark.parametrize(
    ("action", "said"),
    [(GiveResult(result="by hand"), "by hand"), (GiveError(error="declined"), "declined")],
    ids=["result", "error"],
)
def test_5_action_tool_result_in_answer_to_a_person_ends_the_held_call(
    action: Action, said: str
) -> None:
    """The id defaults to the call that the question held."""
    session = replied(wants=frozenset({"tool.execute", "interrupt.resumed"}))
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    session.resume(True, "q")
    session.answer(action)
    assert read(session) == {"c1": said}


def test_5_action_tool_run_in_answer_to_a_person_runs_the_held_call() -> None:
    """The same default."""
    session = replied(wants=frozenset({"tool.execute", "interrupt.resumed"}))
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    session.resume("anything", "q")
    assert started(session.answer(RunTool())) == ["c1"]


def test_5_action_tool_error_that_is_retryable_is_a_failed_attempt() -> None:
    """The worker is asked to run its tool again, until the tool's attempts are used up."""
    session = running_own(worker_tool(attempts=2))
    assert names(session.answer(GiveError(error="busy", retryable=True))) == ["decision.errored"]
    assert session.out.attempt == 2
    session.answer(GiveError(error="busy", retryable=True))
    assert read(session) == {"c1": "busy"}


def test_5_action_tool_error_that_is_not_retryable_ends_the_call() -> None:
    """Whatever attempts are left."""
    session = running_own(worker_tool(attempts=2))
    session.answer(GiveError(error="no"))
    assert read(session) == {"c1": "no"}


def test_5_action_tool_result_carries_the_attempt_that_is_asked() -> None:
    """The attempt that the trigger names is the right one to give."""
    session = running_own(worker_tool(attempts=2))
    session.answer(GiveError(error="busy", retryable=True))
    session.answer(GiveResult(result="sent", attempt=2))
    assert read(session) == {"c1": "sent"}


@pytest.mark.parametrize("old", [1, 3], ids=["earlier", "never"])
def test_5_action_tool_result_of_another_attempt_is_refused(old: int) -> None:
    """The call stays open, and the worker is asked again."""
    session = running_own(worker_tool(attempts=4))
    session.answer(GiveError(error="busy", retryable=True))
    assert names(session.answer(GiveResult(result="old", attempt=old))) == ["decision.errored"]
    assert session.state.call("c1") is not None


def test_5_action_tool_result_needs_a_call() -> None:
    """In answer to a trigger that is about none, the id cannot be left out."""
    session = replied()
    [errored] = session.answer(GiveResult(result="x"))
    assert isinstance(errored, ev.DecisionErrored)
    assert errored.error.message.startswith("actions[0].id")


# ------------------------------------------------------------------- interrupt


def test_5_action_interrupt_pauses_the_active_branch() -> None:
    """The question is open, nothing runs, and the turn is still the same."""
    session = gating()
    turn = session.state.control.turns
    session.answer(Interrupt(reason="confirm", interrupt_id="q", payload=1, answer_by="machine"))
    [question] = session.state.control.interrupts
    assert (question.id, question.reason, question.payload) == ("q", "confirm", 1)
    assert question.answer_by == "machine"
    assert is_paused(session.state)
    assert session.state.control.turns == turn


def test_5_action_interrupt_resolve_reaches_another_branch() -> None:
    """The question on the branch that was left is cleared as by a resume: that turn is over."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute", "client.messages"})))
    session.say()
    take(session)
    session.reply(None, call())
    session.answer(Interrupt(reason="confirm", interrupt_id="q"))
    session.do(view(user("edit")))
    happened = session.answer(
        ResolveInterrupt(interrupt_id="q", payload={"approved": True}),
        CallModel(),
        messages=[user("edit")],
    )

    assert only(happened, ev.SessionInterruptResumed).status == "resolved"
    error = only(happened, ev.TurnCompleted).error
    assert error is not None
    assert error.code == "abandoned"
    assert started(happened) == []
    assert session.model_call.anchor == "edit"


def test_5_action_interrupt_resolve_of_an_unknown_id_does_nothing() -> None:
    """As a resume of one."""
    session = gating()
    happened = session.answer(ResolveInterrupt(interrupt_id="nobody"), RunTool())
    assert names(happened) == ["decision.completed", "call.started"]


def test_5_action_interrupt_resolve_that_is_no_answer_is_refused() -> None:
    """As a resume with it: the question stays open."""
    session = gating()
    hold(session, payload={"responseSchema": {"type": "object"}})
    happened = session.answer(ResolveInterrupt(interrupt_id="hold", payload="no object"))
    assert names(happened) == ["decision.errored"]
    assert session.state.interrupt("hold") is not None


# ------------------------------------------------------------------------ done


def test_5_action_done_ends_the_turn() -> None:
    """With its data; no error."""
    session = replied()
    happened = session.answer(Done(data={"n": 1}), messages=[message(session)])
    completed = only(happened, ev.TurnCompleted)
    assert (completed.data, completed.error) == ({"n": 1}, None)


def test_5_action_done_gives_open_tool_calls_a_result() -> None:
    """Whoever runs them; the transcript stays valid."""
    both = frozenset({"llm.finished", "client.action"})
    session = replied(call(), call("c2", "own"), call("c3", "pick"), wants=both)
    take(session)
    session.do(cmd.TakeAction(name="stop"))
    session.answer(Done())
    ended = "ended: the turn is done"
    assert read(session) == {"c1": ended, "c2": ended, "c3": ended}


def test_5_action_done_voids_other_calls_and_refuses_late_results() -> None:
    """A model's reply that comes later is not taken, nor is a tool's result."""
    session = Session(agent(tool("send"), wants=frozenset({"client.action"})))
    session.say()
    model_call = session.model_call
    session.do(cmd.TakeAction(name="stop"))
    assert "call.voided" in names(session.answer(Done()))
    failed = Error(code="provider_error", message="late")
    with pytest.raises(CallNotOpen):
        session.do(cmd.FailCall(call_id=model_call.id, attempt=1, error=failed))

    session.say("u2")
    session.reply(None, call())
    session.do(cmd.TakeAction(name="stop"))
    session.answer(Done())
    with pytest.raises(CallNotOpen):
        session.do(cmd.FinishToolCall(call_id="c1", attempt=1, result="late"))


# ---------------------------------------------------------- beside an interrupt


@pytest.mark.parametrize("action", [CallModel(), Done()], ids=lambda action: action.type)
@pytest.mark.parametrize("first", [True, False], ids=["before it", "behind it"])
def test_5_action_llm_call_and_done_beside_an_interrupt_are_refused(
    action: Action,
    first: bool,  # noqa: FBT001
) -> None:
    """In either order."""
    session = gating()
    question = Interrupt(reason="confirm")
    actions = (action, question) if first else (question, action)
    assert names(session.answer(*actions)) == ["decision.errored"]


@pytest.mark.parametrize("first", [True, False], ids=["before it", "behind it"])
def test_5_action_tool_call_beside_an_interrupt_starts(first: bool) -> None:  # noqa: FBT001
    """A call that the question does not hold runs while the branch is paused."""
    session = replied()
    question = Interrupt(reason="confirm")
    both = (start(), question) if first else (question, start())
    happened = session.answer(*both, messages=[message(session)])
    assert started(happened) == ["c1"]
    assert is_paused(session.state)


def test_5_action_tool_call_beside_the_interrupt_that_holds_it_waits() -> None:
    """Of two calls only the other one starts."""
    session = replied(call(), call("c2"))
    question = Interrupt(reason="confirm", interrupt_id="q", payload={"toolCallId": "c1"})
    happened = session.answer(start(), start(call_id="c2"), question, messages=[message(session)])
    assert started(happened) == ["c2"]
    assert started(session.resume(True, "q")) == ["c1"]


def test_5_action_tool_call_beside_an_interrupt_waits_for_its_gate() -> None:
    """While paused no decision goes out, so a gated call is asked about later."""
    session = replied(wants=frozenset({"llm.finished", "tool.execute"}))
    happened = session.answer(
        start(), Interrupt(reason="confirm", interrupt_id="q"), messages=[message(session)]
    )
    assert started(happened) == []
    assert not any(decision.is_out for decision in session.state.control.decisions)
    session.resume(True, "q")
    assert session.trigger.type == "tool.execute"


# ----------------------------------------------------------------- what a result is


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("sent", {"content": [{"type": "text", "text": "sent"}]}),
        ({"content": [{"type": "image", "data": "…", "mimeType": "image/png"}]}, None),
        ({"content": [], "structuredContent": {"n": 1}}, None),
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, None),
    ],
    ids=["bare string", "image", "structured", "isError"],
)
def test_5_a_result_has_the_mcp_shape(result: Any, expected: Any) -> None:
    """A bare string is one text block; a value of the shape stays as it is."""
    session = running_own()
    happened = session.answer(GiveResult(result=result))
    assert only(happened, ev.ToolCallCompleted).result == (expected or result)
