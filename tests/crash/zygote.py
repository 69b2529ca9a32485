"""Orders lives from a process that forks, and reads what they left behind."""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[2]

Line: TypeAlias = tuple[int, str, str | None, int, str]
"""A stored event: seq, type, turn id, time, payload, as the file has them."""


class Zygote:
    """The process that forks; see `child.py`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def live(self, directory: Path, scenario: str, crash_at: str = "") -> int:
        """Live a scenario in a process of its own; return its exit code, -9 when killed."""
        order = {"directory": str(directory), "scenario": scenario, "crash_at": crash_at}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return int(answer["code"])


@contextmanager
def zygote() -> Generator[Zygote]:
    """Start the process that forks, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.child"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Zygote(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=60)


@dataclass(frozen=True, slots=True)
class Remains:
    """What a life left: the log of each session, the outbox, and what it was told."""

    logs: dict[str, list[Line]]
    outbox: Counter[str]
    told: dict[str, int]

    def payloads(self, session_id: str, type: str) -> list[dict[str, Any]]:
        """Return the payloads of the events of a type."""
        return [json.loads(line[4]) for line in self.logs[session_id] if line[1] == type]


def remains(directory: Path) -> Remains:
    """Read the file as it is, without the store's code."""
    logs: dict[str, list[Line]] = {}
    path = directory / "agents.db"
    if path.exists():
        with closing(sqlite3.connect(path)) as connection:
            rows = _events(connection)
        for session_id, *line in rows:
            logs.setdefault(session_id, []).append((line[0], line[1], line[2], line[3], line[4]))
    told: dict[str, int] = {}
    for session_id, seq in map(json.loads, _lines(directory / "told")):
        told[session_id] = max(seq, told.get(session_id, 0))
    return Remains(logs, Counter(_lines(directory / "outbox")), told)


def _events(connection: sqlite3.Connection) -> list[Any]:
    try:
        return connection.execute(
            "SELECT session_id, seq, type, turn_id, occurred_at, payload FROM event"
            " ORDER BY session_id, seq"
        ).fetchall()
    except sqlite3.OperationalError:  # it died before it made the tables
        return []


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
