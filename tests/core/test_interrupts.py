"""Interrupts on the active branch (`protocol.md` 6, on the seed's own text)."""

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import SessionInterrupted
from engine.core.messages import AssistantMessage, ToolCall, ToolMessage
from engine.core.pending import pending
from engine.core.worker import (
    Action,
    CallModel,
    CallTool,
    Done,
    Error,
    GiveError,
    GiveResult,
    Interrupt,
    InterruptResumed,
    RunTool,
)
from tests.core.given import Session, agent, names, paused, tool, user, view


def test_an_interrupt_holds_the_call_and_ends_nothing() -> None:
    """A paused turn is still the same turn: no `turn.completed`, no deadline, no work."""
    session = paused(message="Send?")

    [interrupt] = session.state.control.interrupts
    assert interrupt.tool_call_id == "c1"
    assert interrupt.anchor == session.state.control.head
    assert session.state.control.turns != ()
    call = session.state.call("c1")
    assert call is not None
    assert call.deadline is None
    assert session.state.control.decisions == ()


@pytest.mark.parametrize("answer", [True, {"approved": True}, {"approved": True, "x": 1}], ids=str)
def test_an_approval_runs_the_function_tool(answer: object) -> None:
    """The engine's own proposal; the resume starts no new turn."""
    session = paused()
    happened = session.resume(answer)

    assert names(happened) == ["session.interrupt_resumed", "call.started"]
    assert "turn.started" not in names(happened)


@pytest.mark.parametrize(
    "answer",
    [False, 0, "", None, 1, "yes", {"approved": "true"}, {"approved": 1}, {}],
    ids=repr,
)
def test_anything_else_is_an_answer_and_declines(answer: object) -> None:
    """The presence of an answer decides, not its truth; only exactly `true` approves."""
    session = paused()
    session.resume(answer)

    [result] = [m for m in session.path if isinstance(m, ToolMessage)]
    assert result.error == "a person declined"
    assert session.model_call.attempt == 1


def test_a_cancelled_answer_declines() -> None:
    """The payload says `cancelled`, the trigger has no answer, the tool does not run."""
    session = paused()
    happened = session.resume(cancelled=True)

    resumed = happened[0]
    assert isinstance(resumed, ev.SessionInterruptResumed)
    assert (resumed.status, resumed.payload) == ("cancelled", {"status": "cancelled"})
    assert "call.started" not in names(happened)


@pytest.mark.parametrize("interrupt_id", ["nobody", "again"])
def test_an_old_or_unknown_id_does_nothing(interrupt_id: str) -> None:
    """Nothing is recorded, nothing is refused."""
    session = paused()
    first = session.state.control.interrupts[0].id
    session.resume(payload=True)
    session.finish("c1")

    again = first if interrupt_id == "again" else interrupt_id
    assert session.resume(False, interrupt_id=again) == []


def test_new_messages_on_the_paused_branch_are_refused() -> None:
    """The body of the refusal lists what is open."""
    session = paused()
    with pytest.raises(SessionInterrupted) as refused:
        session.say("u2")
    assert refused.value.interrupt_ids == [session.state.control.interrupts[0].id]


def test_a_lenient_view_on_the_paused_branch_changes_nothing() -> None:
    """A channel that must not refuse is told instead; the question stays."""
    session = paused()
    path = session.path
    assert session.do(view(*path, user("u2"), lenient=True)) == []

    assert session.receipt is not None
    assert [n.code for n in session.receipt.notices] == ["session_interrupted"]


def test_raising_voids_the_model_call_in_flight() -> None:
    """Somebody else pauses: the partial reply is dropped, and the answer goes on from there."""
    session = Session()
    session.say()
    call = session.model_call
    happened = session.do(cmd.RaiseInterrupt(reason="hold"))

    assert names(happened) == ["session.interrupted", "call.voided"]
    resumed = session.resume(True)
    assert names(resumed) == ["session.interrupt_resumed", "llm.call.requested"]
    assert session.model_call.id != call.id


def test_tools_that_started_go_on_while_paused() -> None:
    """Their end is recorded; the decision on it waits for the answer."""
    session = Session(agent(tool("send")))
    session.say()
    session.reply(None, ToolCall(id="c1", name="send", arguments='{"to": "a"}'))
    session.do(cmd.RaiseInterrupt(reason="hold"))

    assert names(session.finish("c1")) == ["tool.call.completed", "decision.waiting"]
    resumed = names(session.resume(True))
    assert resumed == [
        "session.interrupt_resumed",
        "decision.waiting",
        "decision.completed",
        "decision.completed",
        "message.new",
        "llm.call.requested",
    ]


def test_answers_go_out_before_what_was_held() -> None:
    """`interrupt.resumed` first, in the order of the resumes, then the rest as it came."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.finished", "interrupt.resumed"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="send", arguments='{"to": "a"}'))
    session.do(cmd.RaiseInterrupt(reason="one"))
    session.do(cmd.RaiseInterrupt(reason="two"))
    session.finish("c1")
    first, second = (i.id for i in session.state.control.interrupts)
    session.resume(1, interrupt_id=second)
    assert session.state.control.decisions[0].attempt == 0

    session.resume(2, interrupt_id=first)
    order: list[str] = []
    for _ in range(3):
        trigger = session.trigger
        order.append(
            trigger.interrupt_id if isinstance(trigger, InterruptResumed) else trigger.type
        )
        session.answer()
    assert order == [second, first, "tool.finished"]


def test_the_worker_may_ask_again() -> None:
    """An interrupt raised in answer to `interrupt.resumed` inherits the call."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute", "interrupt.resumed"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="send", arguments='{"to": "a"}'))
    session.answer(Interrupt(reason="confirm"))
    session.resume(True)
    session.answer(Interrupt(reason="are you sure"))

    [interrupt] = session.state.control.interrupts
    assert interrupt.tool_call_id == "c1"
    session.resume(True)
    assert isinstance(session.trigger, InterruptResumed)
    assert session.trigger.tool_call_id == "c1"


def test_a_used_id_is_replaced() -> None:
    """A late click on the old question must not answer the new one."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say("u1")
    session.answer(Interrupt(reason="r", interrupt_id="mine"), messages=[user("u1")])
    session.do(cmd.CancelSession())
    session.say("u2")
    happened = session.answer(Interrupt(reason="r", interrupt_id="mine"), messages=[user("u2")])

    completed = happened[0]
    assert isinstance(completed, ev.DecisionCompleted)
    [interrupt] = session.state.control.interrupts
    assert interrupt.id != "mine"
    assert completed.replaced_ids == {"mine": interrupt.id}


def test_input_answered_by_a_question_is_recorded_first() -> None:
    """The anchor is then the message the person wrote."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say("u1")
    session.answer(Interrupt(reason="r"))

    assert [m.id for m in session.path] == ["u1"]
    assert session.state.control.interrupts[0].anchor == "u1"


@pytest.mark.parametrize(
    ("arguments", "said"), [('{"to": ', "not JSON"), ("{}", "required")], ids=["cut off", "missing"]
)
def test_a_person_cannot_approve_arguments_that_cannot_be_used(arguments: str, said: str) -> None:
    """The tool does not run with what it was never asked to do."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="send", arguments=arguments))
    session.answer(Interrupt(reason="confirm"))
    happened = session.resume(True)
    assert "call.started" not in names(happened)
    [result] = [m for m in session.path if isinstance(m, ToolMessage)]
    assert said in (result.error or "")


def test_an_answer_and_a_message_join_one_turn() -> None:
    """Case 17e: the answer first, then the message, one model call, the same turn."""
    session = paused()
    [interrupt] = session.state.control.interrupts
    path = session.path
    answer = cmd.Answer(interrupt_id=interrupt.id, cancelled=True)
    happened = session.do(view(*path, user("u2"), answers=(answer,)))

    assert names(happened).count("llm.call.requested") == 1
    assert "turn.started" not in names(happened)
    assert session.path[-1].id == "u2"
    assert any(isinstance(m, ToolMessage) for m in session.path)


def test_a_message_that_joins_waits_for_the_tool_it_approved() -> None:
    """It is recorded when no call of the turn is open."""
    session = paused()
    [interrupt] = session.state.control.interrupts
    answer = cmd.Answer(interrupt_id=interrupt.id, payload=True)
    happened = session.do(view(*session.path, user("u2"), answers=(answer,)))
    assert names(happened) == ["session.interrupt_resumed", "call.started", "decision.waiting"]

    finished = session.finish("c1")
    assert names(finished).count("llm.call.requested") == 1
    assert [m.role for m in session.path] == ["user", "assistant", "tool", "user"]


# ----------------------------------- a decision that is out while somebody pauses


def out_and_paused() -> Session:
    """The worker is asked about a call; meanwhile a client pauses the branch."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="send", arguments='{"to": "a"}'))
    session.do(cmd.RaiseInterrupt(reason="hold"))
    return session


@pytest.mark.parametrize(
    ("action", "released"),
    [
        (RunTool(), "call.started"),
        (CallTool(name="send", arguments='{"to": "b"}'), "tool.call.requested"),
        (CallModel(), "llm.call.requested"),
        (Done(), "turn.completed"),
    ],
    ids=lambda value: getattr(value, "type", value),
)
def test_what_an_answer_starts_waits_for_the_resume(action: Action, released: str) -> None:
    """It may still answer: what it starts, and `done`, is done when the branch is free."""
    session = out_and_paused()
    assert names(session.answer(action)) == ["decision.completed"]
    assert pending(session.state) == []

    happened = names(session.resume(True))
    assert released in happened
    assert happened.index("session.interrupt_resumed") < happened.index(released)


def test_what_an_answer_records_and_ends_is_done_at_once() -> None:
    """Work that ends an open call is recorded while paused."""
    session = out_and_paused()
    happened = names(session.answer(GiveResult(result="x"), CallModel()))
    assert happened == ["decision.completed", "tool.call.completed", "decision.waiting"]
    assert session.state.call("c1") is None


def test_what_is_held_for_a_call_that_ended_is_passed_over() -> None:
    """The answer to the question ended it first; the rest of what was held is done."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute", "interrupt.resumed"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="send", arguments='{"to": "a"}'))
    session.do(cmd.RaiseInterrupt(reason="hold"))
    session.answer(RunTool(), CallTool(name="send", id="c2", arguments='{"to": "b"}'))
    session.resume(True)
    happened = names(session.answer(GiveResult(id="c1", result="by hand")))

    assert "decision.errored" not in happened
    assert "call.started" not in happened
    assert session.state.call("c2") is not None


@pytest.mark.parametrize("how", ["fails", "lapses", "crash"])
def test_a_failed_attempt_is_asked_again_when_the_branch_is_free(how: str) -> None:
    """Not while paused; and a paused turn never ends by it."""
    session = out_and_paused()
    decision = session.out
    failed = Error(code="worker_error", message="x")
    command: cmd.Command = cmd.Recover()
    if how == "fails":
        command = cmd.FailDecision(decision_id=decision.id, attempt=1, error=failed)
    elif how == "lapses":
        session.wait(days=1)
        command = cmd.PassTime()
    assert names(session.do(command)) == ["decision.errored"]
    assert pending(session.state) == []
    assert session.do(cmd.PassTime()) == []

    assert "decision.requested" in names(session.resume(True))
    assert (session.out.id, session.out.attempt) == (decision.id, 1)


# ----------------------------------------------------- what a worker may not


@pytest.mark.parametrize(
    "actions",
    [
        (Interrupt(reason="r"), CallModel()),
        (Interrupt(reason=""),),
        (GiveResult(id="nobody", result="x"),),
        (Interrupt(reason="a"), Interrupt(reason="b")),
        (GiveError(id="c1", error="x", attempt=7),),
    ],
    ids=["llm.call beside it", "no reason", "call not open", "two for one call", "old attempt"],
)
def test_a_response_that_breaks_a_rule_is_refused_whole(actions: tuple[object, ...]) -> None:
    """Nothing of it is applied; the worker is asked again, as the next attempt."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="send", arguments='{"to": "a"}'))
    decision = session.out
    happened = session.answer(*actions)  # pyright: ignore[reportArgumentType]

    assert names(happened) == ["decision.errored"]
    assert (session.out.id, session.out.attempt) == (decision.id, 2)
    assert session.state.call("c1") is not None
    assert session.state.control.interrupts == ()


def test_done_that_was_held_is_not_done_when_a_person_has_said_more() -> None:
    """A worker accepted the end of the turn while the branch was paused; then input joined."""
    session = Session(agent(wants=frozenset({"llm.finished"})))
    session.say()
    session.reply("that is all")
    session.do(cmd.RaiseInterrupt(reason="hold"))
    reply = AssistantMessage(id="r", content="that is all")
    session.answer(Done(), messages=[reply])
    [asked] = session.state.control.interrupts
    more = (*session.path, user("u2"))
    session.do(cmd.ClientView(messages=more, answers=(cmd.Answer(interrupt_id=asked.id),)))
    assert session.path[-1].id == "u2"
    assert session.model_call.anchor == "u2"


def test_a_worker_that_asked_about_several_calls_at_once_is_not_asked_again() -> None:
    """Its gate was asked about the first; the questions about the others were its word."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say()
    calls = [ToolCall(id=f"c{n}", name="send", arguments='{"to": "ada"}') for n in (1, 2)]
    session.reply(None, *calls)
    session.answer(*(Interrupt(reason="r", payload={"toolCallId": call.id}) for call in calls))
    for question in session.state.control.interrupts:
        session.resume(True, question.id)
    assert [call.attempt for call in session.state.control.calls] == [1, 1]
    assert session.state.control.decisions == ()


def test_a_worker_gets_new_time_when_the_last_question_about_its_call_is_over() -> None:
    """While another question holds the call no clock runs, so none is started."""
    session = Session(agent(tool("own", handler="worker"), wants=frozenset({"tool.execute"})))
    session.say()
    session.reply(None, ToolCall(id="c1", name="own", arguments='{"to": "ada"}'))
    for name in ("q1", "q2"):
        held = {"toolCallId": "c1"}
        session.do(cmd.RaiseInterrupt(reason="r", interrupt_id=name, payload=held))
    assert "decision.requested" not in names(session.resume(True, "q1"))
    assert "decision.requested" in names(session.resume(True, "q2"))
