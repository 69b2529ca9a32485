"""The outside work that a state says must be running.

Found from the state, never from a list in memory: a restarted engine finds the
same work. Each piece is named by its id and attempt, so that a piece that is
already running is recognised and one that is no longer named is stopped.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from engine.core.state import State

WorkKind: TypeAlias = Literal["model", "tool", "decision"]


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt of a call or a decision. It starts at `not_before`, or at once."""

    kind: WorkKind
    id: str
    attempt: int
    not_before: datetime | None


def pending(state: State) -> list[Work]:
    """Return everything that must be running now."""
    work: list[Work] = []
    for call in state.control.calls:
        if call.attempt > 0 and call.kind != "worker":
            kind: WorkKind = "model" if call.kind == "llm" else "tool"
            work.append(Work(kind, call.id, call.attempt, call.not_before))
    work.extend(
        Work("decision", decision.id, decision.attempt, decision.not_before)
        for decision in state.control.decisions
        if decision.is_out
    )
    return work
