"""Growth: what an input costs in a long conversation, and what a hundred thousand waiting cost.

    python -m tests.bench.growth [--quick]

A session of 10 to 10,000 messages, and one with a hundred branches, gets one message by
`client.append`. On a session in memory everything must be flat; on one that is not, what
is read may grow with the active path only. The counts are exact, so a growth fails the
benchmark; CPU is shown beside them. Docs: docs/performance.md.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from agui_server.agui.inbound import parse_run
from engine.core.state import Call, State
from engine.runtime.agents import RunnableAgent
from engine.runtime.effects import model_request
from tests.bench.counting import Counts, counted
from tests.bench.environments import FOLDER
from tests.bench.grown import Grown, opened
from tests.bench.waiting import fill

SIZES = (10, 100, 1_000, 10_000)
BRANCHES, OF_EACH = 100, 20
INPUTS = 15


@dataclass(frozen=True, slots=True)
class Line:
    """One size of session: what an input did on it. CPU in microseconds."""

    name: str
    path: int
    log: int
    events: int
    warm: Counts
    warm_cpu: float
    cold: Counts
    cold_cpu: float
    parse_cpu: float
    request_cpu: float


async def measure(folder: Path, name: str, path: int, branches: int) -> Line:
    """Grow a session and give it inputs, in memory and not."""
    db = folder / f"{name}.db"
    async with opened(db) as grown:
        await grown.grow(path)
        if branches:
            await grown.branch(branches, OF_EACH)
        warm_cpu = [await _cpu_of_input(grown) for _ in range(INPUTS)]
        state = await grown.state()
        parse_cpu, request_cpu = _by_nature(grown, state)
    with counted() as counts:
        async with opened(db) as grown:
            before = counts.copy()
            first = await grown.append()
            cold = counts - before
            await grown.reply()
            before = counts.copy()
            await grown.append()
            warm = counts - before
            await grown.reply()
    async with opened(db) as grown:
        cold_cpu = await _cpu_of_input(grown)
    return Line(
        name=name,
        path=len(state.tree.path(state.control.head)),
        log=state.control.seq,
        events=first.after.seq - first.before.seq,
        warm=warm,
        warm_cpu=median(warm_cpu) * 1e6,
        cold=cold,
        cold_cpu=cold_cpu * 1e6,
        parse_cpu=parse_cpu * 1e6,
        request_cpu=request_cpu * 1e6,
    )


async def _cpu_of_input(grown: Grown) -> float:
    began = time.process_time()
    await grown.append()
    spent = time.process_time() - began
    await grown.reply()
    return spent


def _by_nature(grown: Grown, state: State) -> tuple[float, float]:
    """Measure what grows with the path by nature: a body that holds it, a model's request."""
    path = [node.message for node in state.tree.path(state.control.head)]
    body = {
        "threadId": "th",
        "runId": "r",
        "messages": [
            {"id": m.id, "role": m.role, "content": getattr(m, "content", "")} for m in path
        ],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
    }
    encoded = json.dumps(body).encode()
    began = time.process_time()
    read = parse_run(encoded)
    read.history(lambda message_id: node.message if (node := state.tree.get(message_id)) else None)
    parsed = time.process_time() - began
    agent: RunnableAgent = vars(grown.engine)["_runnable"]["a"]
    call = Call(id="c", kind="llm", turn_id="t", anchor=state.control.head)
    began = time.process_time()
    model_request(state, agent, call)
    return parsed, time.process_time() - began


# ------------------------------------------------------------------ judging


def faults_of(lines: Sequence[Line]) -> list[str]:
    """Say what grew that must not.

    The smallest session is in memory as a whole, so it is asked nothing; of all others it
    is looked up whether the new message's id is recorded on a branch that is not.
    """
    smallest, first = lines[0], lines[1]
    faults: list[str] = []
    if smallest.warm.queries > first.warm.queries:
        faults.append(f"{smallest.name}: {smallest.warm.queries} queries")
    for line in lines[1:]:
        for name in ("queries", "rows_read", "bytes_read", "writes", "rows_written"):
            was, now = getattr(first.warm, name), getattr(line.warm, name)
            if was != now:
                faults.append(f"{line.name}: {name} of an input grew from {was} to {now}")
        if line.events != first.events:
            faults.append(f"{line.name}: {line.events} events for an input, not {first.events}")
        if line.warm.bytes_written > first.warm.bytes_written + DIGITS:
            faults.append(f"{line.name}: {line.warm.bytes_written} bytes written")
        if line.warm.steps > first.warm.steps * 1.1:
            faults.append(f"{line.name}: {line.warm.steps} steps in the database")
    faults += [
        f"{line.name}: {line.cold.rows_read} rows read for a path of {line.path}"
        for line in lines
        if line.cold.rows_read > line.path + BEHIND_A_SNAPSHOT
    ]
    plain, branched = (next(x for x in lines if x.name == name) for name in COMPARED)
    if branched.cold.steps > plain.cold.steps * 1.25:
        faults.append(
            f"{branched.name}: {branched.cold.steps} steps to load, not {plain.cold.steps}"
        )
    return faults


COMPARED = ("1,000 messages", f"1,000 messages, {BRANCHES} branches")
"""The same path, with and without branches beside it: a load must cost the same."""

DIGITS = 64
"""Bytes that numbers and ids may be longer in a longer session."""

BEHIND_A_SNAPSHOT = 200 + 50
"""Events that a load may have to fold, and a turn more; see `SNAPSHOT_EVERY`."""


_WRITTEN = ("rows written", "bytes written", "SQLite steps", "CPU")
_BY_NATURE = ("SQLite steps", "CPU", "parsing the whole view", "building the model's request")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def tables(lines: Sequence[Line]) -> list[str]:
    """Return what was measured, in Markdown."""
    warm = [
        _row("in memory", "path", "log", "events", "queries", "rows read", *_WRITTEN),
        "| --- |" + " ---: |" * 9,
    ]
    cold = [
        _row("not in memory", "path", "log", "queries", "rows read", "kB read", *_BY_NATURE),
        "| --- |" + " ---: |" * 9,
    ]
    for line in lines:
        w, c = line.warm, line.cold
        warm.append(
            f"| {line.name} | {line.path:,} | {line.log:,} | {line.events} | {w.queries} "
            f"| {w.rows_read} | {w.rows_written} | {w.bytes_written:,} | {w.steps:,} "
            f"| {line.warm_cpu:,.0f} µs |"
        )
        cold.append(
            f"| {line.name} | {line.path:,} | {line.log:,} | {c.queries} | {c.rows_read:,} "
            f"| {c.bytes_read / 1000:,.0f} | {c.steps:,} | {line.cold_cpu:,.0f} µs "
            f"| {line.parse_cpu:,.0f} µs | {line.request_cpu:,.0f} µs |"
        )
    return [*warm, "", *cold]


# ------------------------------------------------------------ many that wait


def start(db: Path) -> dict[str, float]:
    """Start an engine in a process of its own on a file of waiting sessions."""
    command = [sys.executable, "-m", "tests.bench.waiting", str(db)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


async def waiting(folder: Path, counts: Sequence[int]) -> tuple[list[str], list[str]]:
    """Measure a start on files with few and with very many paused sessions."""
    rows = [
        "| paused sessions | file | start | memory after the start | an answer to one of them |",
        "| ---: |" + " ---: |" * 4,
    ]
    memory: list[float] = []
    for count in counts:
        db = folder / f"waiting-{count}.db"
        await fill(db, count)
        tries = [start(db) for _ in range(3)]
        best = {name: median(one[name] for one in tries) for name in tries[0]}
        memory.append(best["rss_mb"])
        rows.append(
            f"| {count:,} | {db.stat().st_size / 1e6:,.0f} MB | {best['start_ms']:,.0f} ms "
            f"| {best['rss_mb']:,.1f} MB | {best['answer_ms']:,.1f} ms |"
        )
    grew = memory[-1] - memory[0]
    faults = (
        [f"memory grew by {grew:.1f} MB with {counts[-1]:,} waiting"] if grew > LEEWAY_MB else []
    )
    return rows, faults


LEEWAY_MB = 8.0
"""What two starts of one program differ by anyway, and the pages of a larger file."""


async def main() -> None:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, to try it")
    quick = parser.parse_args().quick
    sizes = SIZES[:3] if quick else SIZES
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        lines = [await measure(folder, f"{size:,} messages", size, 0) for size in sizes]
        lines.append(await measure(folder, COMPARED[1], 1_000, BRANCHES))
        say(*tables(lines), "")
        rows, faults = await waiting(folder, (100, 1_000) if quick else (100, 100_000))
        say(*rows)
    faults = [*faults_of(lines), *faults]
    say(*(f"FAILED: {fault}" for fault in faults))
    sys.exit(1 if faults else 0)


def say(*lines: str) -> None:
    """Print lines at once."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
