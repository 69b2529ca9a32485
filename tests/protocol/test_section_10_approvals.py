"""Approvals: what is asked, what waits meanwhile, and which answers run a call.

Source: `protocol.md` section 10.
"""

from dataclasses import replace
from typing import Any

import pytest

from engine.agent import Agent, InvalidAgent, Tool
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import InvalidAnswer
from engine.core.messages import ToolMessage
from engine.core.pending import pending
from engine.core.state import OpenInterrupt
from engine.core.worker import ToolExecute
from engine.runtime.functions import FunctionTool
from engine.runtime.schemas import conforms
from tests.core.given import Session, names, user, view
from tests.protocol.calls import (
    NO,
    YES,
    answered,
    approving,
    attempts,
    call,
    opened,
    questions,
    read,
    settle,
    started,
    take,
    told,
)

ALL = (call("c1"), call("c2", "plain"), call("c3", "own"), call("c4", "pick"), call("c5"))
"""Two calls that need a person, and one of each kind that does not."""


def ask(session: Session, call_id: str = "c1") -> OpenInterrupt:
    """The question about a call."""
    found = session.state.interrupt(f"approve:{call_id}")
    assert found is not None
    return found


# ------------------------------------------------------------------ what is asked


def test_10_a_reply_whose_call_needs_approval_is_recorded_first() -> None:
    """Then its calls are open, and one question for each that needs a person, in one commit."""
    session = approving(*ALL)
    [commit] = [e for e in session.log if isinstance(e.body, ev.LlmCallCompleted)]
    happened = [e.body for e in session.log if e.seq > commit.seq]
    kinds = [name for name in names(happened) if name != "decision.waiting"]
    assert kinds == ["message.new", *["tool.call.requested"] * 5, *["session.interrupted"] * 2]
    assert questions(session) == ["approve:c1", "approve:c5"]


def test_10_the_proposal_is_one_interrupt_per_call_all_in_one_response() -> None:
    """A worker sees the questions behind the calls, and may return them as they are."""
    session = approving(*ALL, wants=frozenset({"llm.finished"}))
    actions = told(session).proposed.actions
    assert [a.type for a in actions] == ["tool.call"] * 5 + ["interrupt"] * 2
    take(session)
    assert questions(session) == ["approve:c1", "approve:c5"]


def test_10_interrupt_id() -> None:
    """It is made of the call's id."""
    assert ask(approving()).id == "approve:c1"


def test_10_interrupt_reason() -> None:
    """AG-UI's word for a question about a tool call."""
    assert ask(approving()).reason == "tool_call"


def test_10_interrupt_payload_message_is_readable() -> None:
    """It names the tool and the arguments."""
    message = ask(approving()).payload["message"]
    for part in ("send", "to", "ada"):
        assert part in message


def test_10_interrupt_payload_tool_call_id_holds_the_call() -> None:
    """The question names the call, and holds it."""
    asked = ask(approving())
    assert asked.payload["toolCallId"] == asked.tool_call_id == "c1"


def test_10_interrupt_payload_response_schema() -> None:
    """An object that requires a boolean `approved`, and may have a string `reason`."""
    schema = ask(approving()).payload["responseSchema"]
    for fits in ({"approved": True}, {"approved": False, "reason": "no"}):
        assert conforms(schema, fits) is None
    for wrong in ({}, {"approved": "yes"}, {"approved": True, "reason": 1}, True, None):
        assert conforms(schema, wrong) is not None


def test_10_interrupt_payload_metadata() -> None:
    """What it is, the tool, its arguments, and the two buttons."""
    metadata = ask(approving()).payload["metadata"]
    assert metadata["type"] == "tool.approval"
    assert (metadata["tool"], metadata["arguments"]) == ("send", {"to": "ada"})
    offered = [(option["label"], option["value"]) for option in metadata["options"]]
    assert offered == [("Run it", YES), ("Decline", NO)]


def test_10_interrupt_is_the_engines_and_a_clients_to_answer() -> None:
    """Anchored at the message that asked, and without an end."""
    session = approving()
    asked = ask(session)
    assert (asked.origin, asked.answer_by, asked.expires) == ("engine", "client", None)
    assert asked.anchor == session.state.control.head


def test_10_a_tool_that_needs_no_approval_is_not_asked_about() -> None:
    """Without one that does, everything starts at once."""
    session = approving(call("c1", "plain"), call("c2", "own"), wants=frozenset({"tool.execute"}))
    assert questions(session) == []
    assert [session.trigger.type, list(attempts(session))] == ["tool.execute", ["c1", "c2"]]
    assert started(take(session)) == ["c1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [("{", "not JSON"), ("{}", "required"), ('{"to": 1}', "not of type")],
    ids=["malformed", "missing", "wrong type"],
)
def test_10_a_call_that_cannot_run_is_not_asked_about(arguments: str, said: str) -> None:
    """Nobody is bothered: it ends with its error."""
    session = approving(replace(call(), arguments=arguments))
    assert questions(session) == []
    assert said in read(session)["c1"]


def test_10_a_call_that_cannot_run_waits_with_the_others() -> None:
    """Beside one that is asked about, nothing starts or ends before the answer."""
    session = approving(call(), replace(call("c2"), arguments="{"), call("c3", "nobody"))
    assert questions(session) == ["approve:c1"]
    session.resume(YES)
    assert set(read(session)) == {"c2", "c3"}


@pytest.mark.parametrize("handler", ["worker", "client"])
def test_10_approve_on_a_single_tool(handler: Any) -> None:
    """On a function, or a worker's own; on a client's it is an error of the configuration."""

    def send(to: str) -> str:
        """Send."""
        return to

    own = Tool("own", handler=handler, approve=True)
    if handler == "client":
        with pytest.raises(InvalidAgent):
            Agent("a", tools=[own])
        return
    tools = Agent("a", tools=[FunctionTool(send, approve=True), own]).spec().tools
    assert all(spec.approve for spec in tools.values())


# ------------------------------------------------------------- what waits meanwhile


def test_10_reply_with_three_calls_one_needs_approval() -> None:
    """None of the engine's and the worker's starts; all of them do after the answer."""
    session = approving(call("c1"), call("c2", "plain"), call("c3", "plain"))
    assert attempts(session) == {"c1": 0, "c2": 0, "c3": 0}
    assert pending(session.state) == []
    assert sorted(started(session.resume(YES))) == ["c1", "c2", "c3"]


def test_10_a_workers_call_waits_too() -> None:
    """The worker is not asked to run its tool before the person has answered."""
    session = approving(call("c1"), call("c3", "own"), wants=frozenset({"tool.execute"}))
    assert not any(decision.is_out for decision in session.state.control.decisions)
    session.resume(NO)
    assert isinstance(session.trigger, ToolExecute)
    assert session.trigger.id == "c3"


def test_10_client_calls_are_open_at_once() -> None:
    """The client has seen them, and answers them with the resume."""
    session = approving(call("c1"), call("c4", "pick"))
    assert opened(session, "c4").kind == "client"
    picked = ToolMessage(id="t4", tool_call_id="c4", content="blue")
    happened = session.do(view(*session.path, picked, answers=(answered("approve:c1", YES),)))
    assert started(happened) == ["c1"]
    assert read(session) == {"c4": "blue"}
    assert "llm.call.requested" in names(session.finish("c1", "sent"))
    assert read(session) == {"c4": "blue", "c1": "sent"}


def test_10_client_calls_may_be_answered_before_the_question() -> None:
    """Work that ends an open call is recorded while paused."""
    session = approving(call("c1"), call("c4", "pick"))
    picked = ToolMessage(id="t4", tool_call_id="c4", content="blue")
    happened = session.do(view(*session.path, picked))
    assert "tool.call.completed" in names(happened)
    assert questions(session) == ["approve:c1"]
    assert started(session.resume(YES)) == ["c1"]
    assert read(session) == {"c4": "blue"}


def test_10_client_calls_that_are_not_answered_keep_the_turn_waiting() -> None:
    """The answer alone runs the tool; the model waits for the client's result."""
    session = approving(call("c1"), call("c4", "pick"))
    session.resume(YES)
    assert "llm.call.requested" not in names(session.finish("c1"))
    session.do(cmd.SettleCall(call_id="c4", result="blue"))
    assert session.model_call.attempt == 1


def test_10_client_calls_passed_over_by_a_message_are_given_up() -> None:
    """An answer and something new to say: the model reads that nobody answered."""
    session = approving(call("c1"), call("c4", "pick"))
    session.do(view(*session.path, user("u2"), answers=(answered("approve:c1", YES),)))
    assert read(session) == {"c4": "not answered"}
    happened = session.finish("c1")
    assert names(happened).count("llm.call.requested") == 1
    assert session.path[-1].id == "u2"


# ---------------------------------------------------------------- which answers run


@pytest.mark.parametrize(
    "payload", [YES, {"approved": True, "reason": "fine"}, {"approved": True, "x": 1}], ids=repr
)
def test_10_exactly_true_runs_the_call(payload: object) -> None:
    """An offered value, or any object whose `approved` is `true`."""
    assert started(approving().resume(payload)) == ["c1"]


@pytest.mark.parametrize(
    "payload",
    [NO, *({"approved": said} for said in ("yes", "true", 1, None, [], {}, [True]))],
    ids=repr,
)
@pytest.mark.parametrize("caller", ["client", "machine"])
def test_10_any_object_with_approved_is_an_answer(payload: object, caller: Any) -> None:
    """It is taken, whoever gives it; without exactly `true` the call does not run."""
    session = approving()
    answer = answered("approve:c1", payload)
    happened = session.do(cmd.ResumeInterrupt(answer=answer, caller=caller))
    assert questions(session) == []
    assert started(happened) == []
    assert "a person declined" in read(session)["c1"]


@pytest.mark.parametrize("payload", [True, "yes", None, {}, {"ok": True}, []], ids=repr)
def test_10_anything_else_is_no_answer_of_a_client(payload: object) -> None:
    """The question stays open."""
    session = approving()
    with pytest.raises(InvalidAnswer):
        session.resume(payload)
    assert questions(session) == ["approve:c1"]


def test_10_a_declined_call_ends_with_an_error_that_says_so() -> None:
    """It is an error of the tool, for the model to read."""
    session = approving()
    session.resume(NO)
    [result] = [m for m in session.path if isinstance(m, ToolMessage)]
    assert result.error is not None
    assert "a person declined" in result.error


def test_10_a_declined_call_says_why() -> None:
    """When the person has given a reason."""
    session = approving()
    session.resume({"approved": False, "reason": "wrong address"})
    assert "a person declined" in read(session)["c1"]
    assert "wrong address" in read(session)["c1"]


@pytest.mark.parametrize("reason", [None, 7, ["x"], {"a": 1}, ""], ids=repr)
def test_10_a_reason_that_is_no_text_is_not_said(reason: object) -> None:
    """The answer counts, the model reads the plain sentence."""
    session = approving()
    session.resume({"approved": False, "reason": reason})
    assert read(session) == {"c1": "a person declined"}


def test_10_giving_the_question_up_declines() -> None:
    """`cancelled` is not an approval."""
    session = approving()
    happened = session.resume(interrupt_id="approve:c1", cancelled=True, payload=YES)
    assert started(happened) == []
    assert "a person declined" in read(session)["c1"]


# ---------------------------------------------------------------- when all is answered


def test_10_approved_calls_run_when_all_are_answered() -> None:
    """Two questions: the first answer starts nothing."""
    session = approving(call("c1"), call("c5"), call("c2", "plain"))
    assert started(session.resume(YES, "approve:c5")) == []
    assert attempts(session) == {"c1": 0, "c5": 0, "c2": 0}
    assert sorted(started(session.resume(YES, "approve:c1"))) == ["c1", "c2", "c5"]


@pytest.mark.parametrize("first", ["c1", "c5"])
def test_10_approved_calls_run_and_the_others_end(first: str) -> None:
    """Whichever is answered first."""
    session = approving(call("c1"), call("c5"))
    second = {"c1": "c5", "c5": "c1"}[first]
    session.resume(NO, f"approve:{first}")
    happened = session.resume(YES, f"approve:{second}")
    assert started(happened) == [second]
    assert read(session) == {first: "a person declined"}


def test_10_all_answers_in_one_view() -> None:
    """As a page sends them."""
    session = approving(call("c1"), call("c5"))
    both = (answered("approve:c1", NO), answered("approve:c5", YES))
    assert started(session.do(view(*session.path, answers=both))) == ["c5"]


def test_10_the_model_is_called_once_when_all_have_ended() -> None:
    """Approved, declined, without a question, a worker's and a client's."""
    session = approving(*ALL)
    session.resume(YES, "approve:c1")
    happened = list(session.resume(NO, "approve:c5"))
    happened += session.finish("c1")
    happened += settle(session, "c3")
    happened += session.do(cmd.SettleCall(call_id="c4", result="blue"))
    assert "llm.call.requested" not in names(happened)
    assert names(session.finish("c2")).count("llm.call.requested") == 1
    assert set(read(session)) == {"c1", "c2", "c3", "c4", "c5"}


def test_10_all_declined_calls_the_model_at_once() -> None:
    """Nothing is left to wait for."""
    session = approving(call("c1"), call("c5"))
    session.resume(NO, "approve:c1")
    assert names(session.resume(NO, "approve:c5")).count("llm.call.requested") == 1


def test_10_a_second_answer_does_nothing() -> None:
    """Declined first, approved later."""
    session = approving(call("c1"), call("c5"))
    session.resume(NO, "approve:c1")
    assert session.resume(YES, "approve:c1") == []
    assert started(session.resume(YES, "approve:c5")) == ["c5"]
