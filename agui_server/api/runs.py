"""The AG-UI runs of a session, with how each ended. Pure but for the reading.

The engine knows no runs: the `run` table says where each began, and the rest follows from
the log. A run ends at the end of the first commit, its own or a later one, after which

1. its turn has completed: `success`, `cancelled` (stopped on purpose) or `error`;
2. the active path is paused: `interrupt`;
3. its turn waits only for client calls, or it has no turn and nothing is to be decided:
   `success`;

or where the next run of its turn begins: `continued`. Before that it is `running` and has
no last event. The events of one commit have one `occurred_at`, which tells commits apart.

Source: `agui.md` section 2.4; `protocol.md` section 13.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Literal, TypeAlias

from agui_server.agui.table import TABLE
from agui_server.agui.translate import SHOWN_AS_CANCELLED
from engine.core.apply import apply
from engine.core.events import Event, TurnCompleted, TurnStarted
from engine.core.interrupts import is_paused
from engine.core.messages import Json
from engine.core.state import State, new_session
from engine.core.status import status
from engine.store.codec import rfc3339
from engine.store.protocol import Store

Outcome: TypeAlias = Literal["running", "success", "interrupt", "cancelled", "error", "continued"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `turn_id` is `None` for one that only moved the head or answered."""

    run_id: str
    turn_id: str | None
    first_seq: int
    created_at: datetime
    last_seq: int | None = None
    outcome: Outcome = "running"

    def to_json(self) -> dict[str, Json]:
        """Return the run as the route shows it."""
        return {
            "run_id": self.run_id,
            "turn_id": self.turn_id,
            "first_seq": self.first_seq,
            "last_seq": self.last_seq,
            "outcome": self.outcome,
            "created_at": rfc3339(self.created_at),
        }


async def runs_of(store: Store, session_id: str) -> list[Run]:
    """Return a session's runs, oldest first."""
    rows = await store.rows(TABLE, session_id=session_id)
    begun = [
        Run(
            run_id=row["run_id"],
            turn_id=row["turn_id"],
            first_seq=row["first_seq"],
            created_at=datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row["created"]),
        )
        for row in rows
    ]
    if not begun:
        return []
    events = await store.events(session_id)
    # A long log is folded in a thread: nobody else waits for it.
    return await asyncio.to_thread(outcomes, session_id, begun, events)


def outcomes(session_id: str, runs: Iterable[Run], events: Sequence[Event]) -> list[Run]:
    """Return the runs in their order, with how each ended in this log."""
    ended: list[Run] = []
    going: list[Run] = []
    begins = sorted(runs, key=lambda run: run.first_seq, reverse=True)
    for commit, state in _commits(session_id, events):
        last = commit[-1].seq
        while begins and begins[-1].first_seq <= last:
            run = begins.pop()
            ended += [_continued(r, run) for r in going if _is_same_turn(r, run)]
            going = [r for r in going if not _is_same_turn(r, run)]
            going.append(run)
        looked_at = [_after(run, commit, state) for run in going]
        ended += [run for run in looked_at if run.last_seq is not None]
        going = [run for run in looked_at if run.last_seq is None]
    return sorted((*ended, *going, *begins), key=lambda run: run.first_seq)


def _commits(session_id: str, events: Sequence[Event]) -> Iterator[tuple[list[Event], State]]:
    """Walk over the commits of a log, each with the state after it."""
    state = new_session(session_id)
    for _, commit in groupby(events, key=lambda event: event.occurred_at):
        together = list(commit)
        for event in together:
            state = apply(state, event)
        yield together, state


def _is_same_turn(run: Run, later: Run) -> bool:
    return run.turn_id is not None and run.turn_id == later.turn_id


def _continued(run: Run, later: Run) -> Run:
    return replace(run, last_seq=later.first_seq - 1, outcome="continued")


def _after(run: Run, commit: Sequence[Event], state: State) -> Run:
    """Return a run as of the end of a commit."""
    turn_id = run.turn_id
    for event in commit:
        if event.seq < run.first_seq:
            continue
        match event.body:
            case TurnStarted() if turn_id is None:
                # The answer to an interrupt outside a turn has opened one.
                turn_id = event.turn_id
            case TurnCompleted(error=error) if event.turn_id == turn_id:
                stopped = error is not None and error.code in SHOWN_AS_CANCELLED
                outcome = "success" if error is None else "cancelled" if stopped else "error"
                return replace(run, turn_id=turn_id, last_seq=event.seq, outcome=outcome)
            case _:
                continue
    last = commit[-1].seq
    run = replace(run, turn_id=turn_id)
    if is_paused(state):
        return replace(run, last_seq=last, outcome="interrupt")
    turn = state.turn(turn_id)
    waits = turn is not None and status(state, turn) == "waiting"
    if waits or (turn_id is None and not state.control.decisions):
        return replace(run, last_seq=last, outcome="success")
    return run
