"""What the scenarios share: the list of them, agents, and a page with a tool of its own."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from engine.core import commands as cmd
from engine.core.env import WORKER_TOOL, AgentSpec, RetryPolicy, ToolSpec
from engine.core.messages import ToolCall, ToolMessage
from engine.core.request import decision_request
from engine.core.worker import Error
from tests.core.given import Session, agent, tool

Scenario = Callable[[], Session]

SCENARIOS: dict[str, Scenario] = {}
"""Every scenario, by the name of its file."""


def scenario(play: Scenario) -> Scenario:
    """Add a scenario under its function's name."""
    SCENARIOS[play.__name__] = play
    return play


PICK = cmd.ClientContext(tools=({"name": "pick_date", "description": "Pick a date."},))
"""A page that brings a tool of its own."""

ONE_DAY = RetryPolicy(run=timedelta(days=1), total=timedelta(days=1), attempts=1)
TWICE = RetryPolicy(run=timedelta(seconds=60), total=timedelta(seconds=600), attempts=2)


def send(call_id: str = "c1", to: str = "ada") -> ToolCall:
    """A call of the tool that sends an email."""
    return ToolCall(id=call_id, name="send_email", arguments=f'{{"to": "{to}"}}')


def pick(call_id: str = "c2") -> ToolCall:
    """A call of the page's tool."""
    return ToolCall(id=call_id, name="pick_date")


def approving() -> AgentSpec:
    """An agent that has each email approved, and no worker."""
    return agent(replace(tool("send_email"), approve=True))


def sending() -> AgentSpec:
    """An agent that sends emails without asking."""
    return agent(tool("send_email"))


def gating(*more: str, to: ToolSpec | None = None) -> AgentSpec:
    """An agent whose worker is asked before a tool runs, and of what else is named."""
    return agent(to or tool("send_email"), wants=frozenset({"tool.execute", *more}))


def patient() -> ToolSpec:
    """A tool of the worker, which may leave it open for a day."""
    own = tool("send_email", handler="worker", retry=WORKER_TOOL)
    return replace(own, left_open=ONE_DAY)


def asked(spec: AgentSpec | None = None) -> Session:
    """A person said something, and is asked whether the email may be sent."""
    session = Session(spec or approving())
    session.say("u1", client=PICK)
    session.reply(None, send())
    return session


def picking(spec: AgentSpec | None = None, *beside: ToolCall) -> Session:
    """The page is to pick a date; what else the model wants to call stands before that."""
    session = Session(spec or agent())
    session.say("u1", client=PICK)
    session.reply(None, *beside, pick())
    return session


def press(session: Session) -> None:
    """The person presses a button of the page."""
    session.do(cmd.TakeAction(name="press"))


def pause(session: Session, reason: str = "hold", **more: Any) -> None:
    """Somebody outside pauses the branch."""
    session.do(cmd.RaiseInterrupt(reason=reason, **more))


def picked(message_id: str = "t1", call_id: str = "c2") -> ToolMessage:
    """What the page says when a date is picked."""
    return ToolMessage(id=message_id, tool_call_id=call_id, content="Friday")


def accept(session: Session, **values: Any) -> None:
    """The worker that is asked takes what the engine proposes; it may write values too."""
    proposed = decision_request(session.state, session._env(), session.out).proposed
    session.answer(*proposed.actions, messages=proposed.messages, **values)


def worker_fails(session: Session, *, retryable: bool = False) -> None:
    """The worker that is asked fails."""
    error = Error(code="worker_error", message="no connection", retryable=retryable)
    out = session.out
    session.do(cmd.FailDecision(decision_id=out.id, attempt=out.attempt, error=error))


def model_fails(session: Session, *, retryable: bool = False) -> None:
    """The model call that is in flight fails."""
    error = Error(code="rate_limited", message="too many requests", retryable=retryable)
    call = session.model_call
    session.do(cmd.FailCall(call_id=call.id, attempt=call.attempt, error=error))


def tool_fails(session: Session, call_id: str = "c1", *, retryable: bool = False) -> None:
    """A tool that the engine runs fails."""
    call = session.state.call(call_id)
    assert call is not None
    error = Error(code="tool_error", message="no connection", retryable=retryable)
    session.do(cmd.FailCall(call_id=call.id, attempt=call.attempt, error=error))
