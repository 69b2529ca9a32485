"""A file of sessions that all wait for a person, and what starting an engine on it takes.

    python -m tests.bench.waiting FILE

prints `{"start_ms", "rss_mb", "answer_ms"}`: the time to open the engine, its memory
then, and the time of an answer to one of the questions.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine import Agent, Engine
from engine.core import commands as cmd
from engine.core.events import Event
from engine.core.messages import UserMessage
from engine.runtime.summary import new_row
from engine.store.protocol import Append, SessionRow
from engine.store.sql import SqlStore
from tests.core.given import START, Session

AT_ONCE = 500
ASKED = "asked"


async def fill(db: Path, count: int) -> None:
    """Write that many sessions, each paused in the middle of its first turn."""
    session = Session()
    session.do(cmd.ClientView(messages=(UserMessage(id="u1", content="Write to Ada."),)))
    question = {"message": "May I?", "expiresAt": "2126-01-01T00:00:00Z"}
    session.do(cmd.RaiseInterrupt(reason="confirm", interrupt_id=ASKED, payload=question))
    row = new_row(session.state, START, session.log)
    store = SqlStore(db, synchronous="OFF")
    await store.open()
    for begin in range(0, count, AT_ONCE):
        numbers = range(begin, min(begin + AT_ONCE, count))
        await asyncio.gather(*(store.append(_copy(row, session.log, n)) for n in numbers))
    await store.close()


def _copy(row: SessionRow, log: Sequence[Event], number: int) -> Append:
    session_id = f"session-{number}"
    return Append(
        session=replace(row, session_id=session_id, thread_id=f"thread-{number}"),
        expected_seq=0,
        events=[replace(event, session_id=session_id) for event in log],
    )


async def start(db: Path) -> dict[str, float]:
    """Open an engine on the file, let it look around, and answer one question."""
    began = time.perf_counter()
    async with Engine(db=db, agents=[Agent("a")]) as engine:
        started = time.perf_counter()
        await asyncio.sleep(1)  # what it does in the background is part of starting
        rss = _resident_mb()
        [row] = await engine.store.sessions(limit=1, tenant="t", owner="o", status="interrupted")
        asked = time.perf_counter()
        answer = cmd.Answer(interrupt_id=ASKED, payload=True)
        receipt = await engine.submit(row.session_id, cmd.ResumeInterrupt(answer=answer))
        assert receipt.cleared == (ASKED,)
        answered = time.perf_counter()
    return {
        "start_ms": (started - began) * 1e3,
        "rss_mb": rss,
        "answer_ms": (answered - asked) * 1e3,
    }


def _resident_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1e3


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(start(Path(sys.argv[1])))))
