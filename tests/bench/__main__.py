"""`make bench`: our server beside its peers, and what a `kill -9` leaves of its log.

    python -m tests.bench [--quick] [--rounds 5] [--clients 1,32] [--only LABEL]

Ends with status 1 when our server makes fewer than :data:`FLOOR` times the runs per
second of the fastest framework peer, when a text did not arrive whole, or when the log
lacks a run that was seen finished. How it measures: docs/performance.md.
"""

import argparse
import datetime as dt
import os
import platform
import sqlite3
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tests.bench.durability import compare, kill_in_the_middle, read_log
from tests.bench.environments import FOLDER
from tests.bench.measure import Measured, measure, table
from tests.bench.serve import SAYS
from tests.bench.servers import (
    OURS,
    PEERS,
    Server,
    make_load,
    pinned,
    running,
    start_ours,
    start_peer,
)
from tests.bench.stream import TOKENS

FLOOR = 3.0
"""Times the runs per second of the fastest framework peer."""

AIM = 10.0


def main() -> None:
    """Measure, count, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", default="1,32", help="as in 1,32")
    parser.add_argument("--only", action="append", help="a peer's label; repeatable")
    parser.add_argument("--quick", action="store_true", help="two short rounds, to try it")
    chosen = parser.parse_args()
    rounds, share = (2, 0.25) if chosen.quick else (chosen.rounds, 1.0)
    peers = [peer for peer in PEERS if not chosen.only or peer.label in chosen.only]
    if not any(peer.is_framework for peer in peers):
        parser.error("--only must name a framework peer: the floor is measured against it")

    FOLDER.mkdir(exist_ok=True)
    say(machine(), f"One fdatasync here takes {fdatasync_us():.0f} µs (median of 200).", "")
    with (
        tempfile.TemporaryDirectory(dir=FOLDER) as folder,
        ExitStack() as stack,
    ):
        db = Path(folder) / "bench.db"
        ours = stack.enter_context(running(start_ours(db)))
        others = [stack.enter_context(running(start_peer(peer))) for peer in peers]
        say(f"{TOKENS} deltas a run, {rounds} rounds, interleaved.", "")
        faults: list[str] = []
        for clients in (int(word) for word in chosen.clients.split(",")):
            measured = measure([*others, ours], clients, rounds, share)
            say(*table(measured), "")
            faults += [*measured.faults(), *below_the_floor(measured)]
        for other in others:
            other.stop()
        faults += durability(ours, db)
    for fault in faults:
        say(f"FAILED: {fault}")
    sys.exit(1 if faults else 0)


def below_the_floor(measured: Measured) -> list[str]:
    """Say how far ahead we are; return a fault when that is not enough."""
    fastest = measured.fastest_framework()
    ratio = measured.ratio(OURS, fastest)
    verdict = f"{ratio:.1f} times {fastest} with {measured.clients} at a time"
    say(f"{verdict} (floor {FLOOR:.0f}, aim {AIM:.0f})", "")
    return [] if ratio >= FLOOR else [f"{verdict}: below {FLOOR:.0f}"]


def durability(ours: Server, db: Path) -> list[str]:
    """Count turns against runs: after the loads, and after a kill in the middle of one."""
    said = [line for line in ours.log.read_text().splitlines() if line.startswith(SAYS)]
    say(said[-1] if said else f"{SAYS} unknown")
    ours.stop()
    log = read_log(db)
    quiet_db = db.with_name("quiet.db")
    with running(start_ours(quiet_db)) as server:
        seen = make_load(server, clients=32, runs=640, tag="quiet").finished
    quiet = read_log(quiet_db)
    faults = compare(quiet, seen, exactly=True)
    say(
        f"All rounds: {log.turns_completed} turns completed, {len(log.accepted)} runs accepted.",
        f"Quiet end: {quiet.turns_completed} turns completed, {len(seen)} runs seen finished.",
    )
    with running(start_ours(quiet_db)) as server:
        killed = kill_in_the_middle(server, quiet_db, clients=32)
    say(
        f"kill -9 under load: {killed.seen} runs seen finished, {killed.completed} turns "
        f"completed in the log, {killed.accepted} runs accepted.",
        f"Started again: {killed.recovered} of the {killed.accepted} are completed.",
    )
    if log.turns_completed != len(log.accepted):
        faults.append(f"{len(log.accepted)} runs, {log.turns_completed} turns after all rounds")
    return faults + killed.faults


def fdatasync_us() -> float:
    """Measure what every commit costs at least, where the databases are."""
    times: list[float] = []
    with tempfile.TemporaryFile(dir=FOLDER) as file:
        for _ in range(200):
            os.write(file.fileno(), b"x" * 4096)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return median(times) * 1e6


def machine() -> str:
    """Say where and when this was measured."""
    today = dt.datetime.now(dt.UTC).date()
    pins = "server on processor 0, load on processor 1" if pinned(0) else "nothing is pinned"
    return (
        f"{today} · {os.cpu_count()} processors, {pins} · Python {platform.python_version()} "
        f"· SQLite {sqlite3.sqlite_version}"
    )


def say(*lines: str) -> None:
    """Print lines at once."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
