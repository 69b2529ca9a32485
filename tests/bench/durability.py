"""Is what a client saw also in the log? Counted after a quiet end, and after `kill -9`.

A run is shown as finished only when its turn's end is durable. So of the runs whose
stream showed `RUN_FINISHED` none may lack a `turn.completed` in the log, whenever the
process ends. The other way round holds only when nothing was cut off: a server that is
killed may have committed turns whose last bytes no client received.
"""

import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.bench.servers import Server, finish_load, running, start_load, start_ours

KILL_AFTER_S = 1.0
"""Into a load that takes several seconds: many turns are through, many under way."""

RUNS = 10_000
"""More than any server makes before it is killed."""

RECOVERY_S = 60.0

_COMPLETED = """
    SELECT run.run_id FROM run
    JOIN event ON event.session_id = run.session_id AND event.turn_id = run.turn_id
    WHERE event.type = 'turn.completed'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What a database holds: the runs it accepted, and those whose turn is completed."""

    accepted: frozenset[str]
    completed: frozenset[str]
    turns_completed: int
    is_sound: bool


def read_log(db: Path) -> Log:
    """Read the database itself, past all of our own code."""
    with closing(sqlite3.connect(db)) as connection:
        accepted = connection.execute("SELECT run_id FROM run").fetchall()
        completed = connection.execute(_COMPLETED).fetchall()
        ((turns,),) = connection.execute(
            "SELECT count(*) FROM event WHERE type = 'turn.completed'"
        ).fetchall()
        ((sound,),) = connection.execute("PRAGMA integrity_check").fetchall()
    return Log(
        accepted=frozenset(run_id for (run_id,) in accepted),
        completed=frozenset(run_id for (run_id,) in completed),
        turns_completed=turns,
        is_sound=sound == "ok",
    )


def compare(log: Log, seen: Iterable[str], *, exactly: bool) -> list[str]:
    """Say what differs between the log and what the load saw; nothing is good."""
    seen = frozenset(seen)
    faults: list[str] = []
    if missing := seen - log.completed:
        faults.append(f"{len(missing)} runs were seen finished and are not completed in the log")
    if exactly and (more := log.completed - seen):
        faults.append(f"{len(more)} runs are completed in the log and were not seen finished")
    if exactly and log.turns_completed != len(seen):
        faults.append(f"{log.turns_completed} turns completed for {len(seen)} runs seen finished")
    if not log.is_sound:
        faults.append("SQLite's integrity check failed")
    return faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """What was found after the kill: `seen` finished by the load, in the log then, and later."""

    seen: int
    completed: int
    accepted: int
    recovered: int
    faults: list[str]


def kill_in_the_middle(server: Server, db: Path, *, clients: int) -> Killed:
    """Kill a server under load, read its log, start it again and see it through.

    The database must hold nothing yet but completed turns.
    """
    before = read_log(db)
    load = start_load(server, clients=clients, runs=RUNS, tag="killed")
    _await_new_turns(db, before)
    time.sleep(KILL_AFTER_S)
    server.kill()
    seen = finish_load(load).finished
    log = read_log(db)
    faults = compare(log, seen, exactly=False)
    recovered = _recover(db)
    if lost := recovered.accepted - recovered.completed:
        faults.append(f"{len(lost)} accepted runs are not completed after the restart")
    faults += compare(recovered, seen, exactly=False)
    return Killed(
        seen=len(seen),
        completed=len(log.completed - before.completed),
        accepted=len(log.accepted - before.accepted),
        recovered=len(recovered.completed - before.completed),
        faults=list(dict.fromkeys(faults)),
    )


def _await_new_turns(db: Path, before: Log) -> None:
    until = time.monotonic() + RECOVERY_S
    while read_log(db).turns_completed == before.turns_completed:
        if time.monotonic() > until:
            raise RuntimeError("the load completed no turn")
        time.sleep(0.1)


def _recover(db: Path) -> Log:
    """Start the server again: it continues by itself what was in flight."""
    with running(start_ours(db)):
        until = time.monotonic() + RECOVERY_S
        while True:
            log = read_log(db)
            if log.completed >= log.accepted or time.monotonic() > until:
                return log
            time.sleep(0.1)
