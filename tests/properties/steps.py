"""One command that went through, taken apart: what the laws judge and the tally counts."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.handle import Outcome
from engine.core.messages import Json, members
from engine.core.state import Decision, State
from engine.core.worker import DecisionResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a worker said about a decision; `is_proposal`: it took what it was offered."""

    decision: Decision
    response: DecisionResponse
    is_proposal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command that went through: the state it met, what it did, and the log before it.

    `states` are the states between its events: the first is `before`.
    """

    before: State
    command: cmd.Command
    outcome: Outcome
    log: list[ev.Event]
    states: list[State]
    now: datetime

    def walk(self) -> Iterator[tuple[State, ev.Event]]:
        """Go through the events, each with the state it met."""
        return zip(self.states, self.outcome.events, strict=False)


def gives_leave(payload: Json) -> bool:
    """Whether the recorded answer to an approval says exactly yes.

    A choice is recorded with its status around it, a machine's answer as it came.
    """
    said = members(payload)
    answer = said["payload"] if said.get("status") == "resolved" else payload
    return answer is True or members(answer).get("approved") is True
