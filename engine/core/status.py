"""What a turn, a call, an interrupt or a decision is doing, in one word; and its whole life.

A life is a table of rows: in one state, at an event of one type, the next state. The
tables are data. No rule reads them: the pictures of the documents are drawn from them, and
the tests hold every log against them.

Source: `protocol.md` sections 4 to 8.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from engine.core import events as ev
from engine.core.interrupts import is_paused
from engine.core.state import Call, Decision, State, Turn

# --------------------------------------------------- what something is doing

TurnStatus: TypeAlias = Literal["running", "paused", "waiting", "parked"]
CallStatus: TypeAlias = Literal["open", "running"]
DecisionStatus: TypeAlias = Literal["waiting", "out", "held"]


def active_turn(state: State) -> Turn | None:
    """Return the open turn of the active branch. All others are parked."""
    return next((turn for turn in state.control.turns if not turn.parked), None)


def status(state: State, turn: Turn) -> TurnStatus:
    """Say what an open turn is doing: running, or waiting for somebody, or left."""
    if turn.parked:
        return "parked"
    if is_paused(state):
        return "paused"
    calls = state.calls_of(turn.id)
    waits = any(d.turn_id == turn.id for d in state.control.decisions)
    if calls and not waits and all(call.kind == "client" for call in calls):
        return "waiting"
    return "running"


def call_status(call: Call) -> CallStatus:
    """Say what an open call is doing: an attempt runs, or nobody has started it.

    Between two attempts it is running too: nothing is recorded when the next one begins,
    so only a clock could tell (`not_before`).
    """
    return "running" if call.attempt > 0 else "open"


def decision_status(decision: Decision) -> DecisionStatus:
    """Say whether the worker is asked, has answered more than could be done, or neither."""
    if decision.is_out:
        return "out"
    return "held" if decision.held else "waiting"


# ------------------------------------------------------------------ by id

Kind: TypeAlias = Literal["turn", "call", "interrupt", "decision"]
Thing: TypeAlias = tuple[Kind, str]
"""Something that has a life: what it is, and its id."""


def status_of_turn(state: State, turn_id: str | None) -> TurnStatus | Literal["queued"] | None:
    """Say what a turn is doing. `None`: it is over, or never was."""
    if any(queued.id == turn_id for queued in state.control.queue):
        return "queued"
    turn = state.turn(turn_id)
    return status(state, turn) if turn is not None else None


def status_of_call(state: State, call_id: str) -> CallStatus | None:
    """Say what a call is doing. `None`: it is over, or never was."""
    call = state.call(call_id)
    return call_status(call) if call is not None else None


def status_of_interrupt(state: State, interrupt_id: str) -> Literal["open"] | None:
    """Say whether a question is open. `None`: it is over, or never was."""
    return "open" if state.interrupt(interrupt_id) is not None else None


def status_of_decision(state: State, decision_id: str) -> DecisionStatus | None:
    """Say how far a decision is. `None`: it is over, or never was."""
    decision = state.decision(decision_id)
    return decision_status(decision) if decision is not None else None


def open_things(state: State) -> dict[Thing, str]:
    """Return everything that is not over, and what it is doing."""
    control = state.control
    found: dict[Thing, str] = {("turn", queued.id): "queued" for queued in control.queue}
    found |= {("turn", turn.id): status(state, turn) for turn in control.turns}
    found |= {("call", call.id): call_status(call) for call in control.calls}
    found |= {("interrupt", i.id): "open" for i in control.interrupts}
    found |= {("decision", d.id): decision_status(d) for d in control.decisions}
    return found


def about(event: ev.Event) -> Thing | None:
    """Return what an event says something of, when that has a life."""
    match event.body:
        case ev.SessionInterrupted() | ev.SessionInterruptResumed() as body:
            return "interrupt", body.interrupt_id
        case (
            ev.LlmCallRequested()
            | ev.LlmCallCompleted()
            | ev.LlmCallErrored()
            | ev.ToolCallRequested()
            | ev.CallStarted()
            | ev.ToolCallCompleted()
            | ev.ToolCallErrored()
            | ev.CallVoided()
        ) as body:
            return "call", body.call_id
        case (
            ev.DecisionWaiting()
            | ev.DecisionRequested()
            | ev.DecisionCompleted()
            | ev.DecisionErrored()
            | ev.DecisionDropped()
        ) as body:
            return "decision", body.decision_id
        case (
            ev.TurnStarted()
            | ev.TurnQueued()
            | ev.TurnDropped()
            | ev.TurnParked()
            | ev.TurnCompleted()
            | ev.HeadMoved()
        ) if event.turn_id is not None:
            return "turn", event.turn_id
        case _:
            return None


def ending(body: ev.Body) -> str | None:
    """Return the last word on a thing that is not open any more after an event about it.

    `None`: an event of this type ends nothing. That one ends something is for the state to
    say: a failed attempt that another one follows has the same type as the last.
    """
    match body:
        case ev.TurnCompleted() | ev.LlmCallCompleted() | ev.ToolCallCompleted():
            return "completed"
        case ev.TurnDropped() | ev.DecisionDropped():
            return "dropped"
        case ev.LlmCallErrored() | ev.ToolCallErrored():
            return "errored"
        case ev.CallVoided():
            return "voided"
        case ev.SessionInterruptResumed():
            return body.status
        case ev.DecisionCompleted():
            return "made"
        case ev.DecisionErrored():
            return "failed"
        case _:
            return None


# ------------------------------------------------------------- whole lives


@dataclass(frozen=True, slots=True)
class Step:
    """One row of a life: in state `before`, an event of type `event` makes it `after`.

    `before` is `None` where the life begins. A row that ends where it began is an event
    that says something of the thing and leaves its state. `when` is for people.
    """

    before: str | None
    event: str
    after: str
    when: str


_ONLY_CLIENT = "only the client's calls are open"

TURN: tuple[Step, ...] = (
    Step(None, "turn.started", "running", "input arrives"),
    Step(None, "turn.started", "paused", "a worker asks and starts a call in one answer"),
    Step(None, "turn.queued", "queued", "input arrives while another turn runs"),
    Step("queued", "turn.started", "running", "the turn before it is over"),
    Step("queued", "turn.dropped", "dropped", "that turn was cancelled or abandoned"),
    Step("running", "session.interrupted", "paused", "a person is asked"),
    Step("waiting", "session.interrupted", "paused", "a person is asked"),
    Step("paused", "session.interrupt_resumed", "running", "the last question is over"),
    Step("paused", "session.interrupt_resumed", "waiting", "the last question is over"),
    Step("running", "tool.call.requested", "waiting", _ONLY_CLIENT),
    Step("running", "tool.call.completed", "waiting", _ONLY_CLIENT),
    Step("running", "tool.call.errored", "waiting", _ONLY_CLIENT),
    Step("running", "llm.call.completed", "waiting", _ONLY_CLIENT),
    Step("running", "llm.call.errored", "waiting", _ONLY_CLIENT),
    Step("running", "call.voided", "waiting", _ONLY_CLIENT),
    Step("running", "decision.completed", "waiting", _ONLY_CLIENT),
    Step("running", "decision.errored", "waiting", _ONLY_CLIENT),
    Step("running", "decision.dropped", "waiting", _ONLY_CLIENT),
    Step("waiting", "tool.call.completed", "running", "no call is open any more"),
    Step("waiting", "tool.call.errored", "running", "no call is open any more"),
    Step("waiting", "tool.call.requested", "running", "another call opens"),
    Step("waiting", "llm.call.requested", "running", "another call opens"),
    Step("waiting", "decision.requested", "running", "something is to be decided"),
    Step("waiting", "decision.waiting", "running", "something is to be decided"),
    Step("paused", "turn.parked", "parked", "the client leaves the branch"),
    Step("waiting", "turn.parked", "parked", "the client leaves the branch"),
    Step("running", "turn.parked", "parked", "it leaves, answering all that paused it"),
    Step("parked", "head.moved", "paused", "the client comes back"),
    Step("parked", "head.moved", "waiting", "the client comes back"),
    Step("parked", "head.moved", "running", "it comes back, and nobody is waited for"),
    Step("running", "turn.completed", "completed", "nothing is left to do, or a cancel"),
    Step("paused", "turn.completed", "completed", "a cancel"),
    Step("parked", "turn.completed", "completed", "it waits for nobody any more, or a cancel"),
)
"""A turn. `waiting` and `paused` are those of the active branch; any other turn is parked."""

CALL: tuple[Step, ...] = (
    Step(None, "tool.call.requested", "open", "a tool is called"),
    Step(None, "llm.call.requested", "running", "a model is called"),
    Step("open", "call.started", "running", "the engine runs it, or a worker has a time for it"),
    Step("open", "tool.call.completed", "completed", "a client or a worker gives its result"),
    Step("open", "tool.call.errored", "errored", "it is refused, given up or stopped"),
    Step("running", "call.started", "running", "a person was asked: its time starts anew"),
    Step("running", "llm.call.errored", "running", "another attempt follows"),
    Step("running", "tool.call.errored", "running", "another attempt follows"),
    Step("running", "llm.call.completed", "completed", "it has a result"),
    Step("running", "tool.call.completed", "completed", "it has a result"),
    Step("running", "llm.call.errored", "errored", "the last attempt failed"),
    Step("running", "tool.call.errored", "errored", "the last attempt failed, or it is stopped"),
    Step("running", "call.voided", "voided", "a model call is stopped"),
)
"""A call. A tool's is open before it runs; one of a client, or of a worker, may end so."""

INTERRUPT: tuple[Step, ...] = (
    Step(None, "session.interrupted", "open", "a person is asked"),
    Step("open", "session.interrupt_resumed", "resolved", "somebody answers"),
    Step("open", "session.interrupt_resumed", "cancelled", "it is given up, or its turn ends"),
    Step("open", "session.interrupt_resumed", "expired", "its time is over"),
)
"""An interrupt: a question to a person."""

DECISION: tuple[Step, ...] = (
    Step(None, "decision.requested", "out", "the worker is asked at once"),
    Step(None, "decision.waiting", "waiting", "another is out, or the branch is paused"),
    Step("waiting", "decision.requested", "out", "the worker is asked"),
    Step("waiting", "decision.waiting", "waiting", "a client's action outlives its turn"),
    Step("waiting", "decision.completed", "made", "the engine decides"),
    Step("waiting", "decision.dropped", "dropped", "its turn or its call is over"),
    Step("out", "decision.errored", "out", "another attempt follows"),
    Step("out", "decision.requested", "out", "a person was asked: its time starts anew"),
    Step("out", "decision.errored", "waiting", "it failed while the branch is paused"),
    Step("out", "decision.waiting", "waiting", "the client leaves the branch"),
    Step("out", "decision.completed", "made", "the worker has answered"),
    Step("out", "decision.completed", "held", "the branch is paused: what it starts must wait"),
    Step("out", "decision.errored", "failed", "the last attempt failed"),
    Step("out", "decision.dropped", "dropped", "its turn or its call is over"),
    Step("held", "decision.completed", "made", "the branch is free: what was held is done"),
    Step("held", "decision.dropped", "dropped", "its turn is over"),
)
"""A decision: a trigger that could not be decided in the commit that raised it."""

LIVES: dict[Kind, tuple[Step, ...]] = {
    "turn": TURN,
    "call": CALL,
    "interrupt": INTERRUPT,
    "decision": DECISION,
}
"""The table of each kind."""
