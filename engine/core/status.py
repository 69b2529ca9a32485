"""What a turn or a call is doing, in one word."""

from typing import Literal, TypeAlias

from engine.core.interrupts import is_paused
from engine.core.state import Call, State, Turn

TurnStatus: TypeAlias = Literal["running", "paused", "waiting", "parked"]
CallStatus: TypeAlias = Literal["open", "running"]


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
    """Say what an open call is doing: an attempt runs, or nobody has started it."""
    return "running" if call.attempt > 0 else "open"
