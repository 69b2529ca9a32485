"""A process is killed at every point of the write path and of an effect.

For each scenario and point the process dies at the first pass of the point, then, in a
new directory, at the second, and so on until it lives to the end. Each time another
process continues from the file, and everything is compared.
"""

import re
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from engine.runtime.crashpoints import POINTS
from tests.crash.lives import SCENARIOS
from tests.crash.zygote import ROOT, Remains, Zygote, remains, zygote

pytestmark = pytest.mark.crash

KILLED = -9

OF_TOOLS = {"tool.before", "tool.after"}
RUN_TOOLS = {"parallel", "approval"}
"""Scenarios in which the engine runs a function tool; the others never pass its points."""


@pytest.fixture(scope="module")
def forks() -> Generator[Zygote]:
    """One process that forks, for all tests of this file."""
    with zygote() as process:
        yield process


def test_every_point_in_the_code_is_named() -> None:
    """The points that the code passes are those that these tests know."""
    passed = [
        point
        for file in sorted((ROOT / "engine").rglob("*.py"))
        for point in re.findall(r'\breach\("([^"]+)"\)', file.read_text(encoding="utf-8"))
    ]
    assert sorted(passed) == sorted(POINTS)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("point", POINTS)
def test_whatever_the_moment_the_next_process_goes_on(
    point: str, scenario: str, forks: Zygote, tmp_path: Path
) -> None:
    """Killed at any pass of any point: nothing is lost, nothing is done twice, all goes on."""
    deaths = 0
    while True:
        directory = tmp_path / str(deaths + 1)
        directory.mkdir()
        code = forks.live(directory, scenario, f"{point}:{deaths + 1}")
        if code != KILLED:
            break
        deaths += 1
        died = remains(directory)
        what_was_told_is_in_the_log(died)
        assert forks.live(directory, "after") == 0, f"killed at {point}:{deaths}"
        went_on = remains(directory)
        nothing_is_lost(died, went_on)
        every_turn_ended(went_on)
        nothing_ran_twice(went_on)
    assert code == 0
    never = point in OF_TOOLS and scenario not in RUN_TOOLS
    assert (deaths == 0) == never


def test_the_second_process_may_die_too(forks: Zygote, tmp_path: Path) -> None:
    """A process that dies while it recovers leaves the same to the one after it."""
    assert forks.live(tmp_path, "parallel", "tool.before:1") == KILLED
    for point in POINTS:
        before = remains(tmp_path)
        forks.live(tmp_path, "after", point)
        nothing_is_lost(before, remains(tmp_path))
    assert forks.live(tmp_path, "after") == 0
    went_on = remains(tmp_path)
    every_turn_ended(went_on)
    nothing_ran_twice(went_on)


def test_a_tool_that_ran_when_the_process_died_has_an_unknown_outcome(
    forks: Zygote, tmp_path: Path
) -> None:
    """It is not run again, and the model is told (protocol.md section 2)."""
    assert forks.live(tmp_path, "approval", "tool.after:1") == KILLED
    assert forks.live(tmp_path, "after") == 0
    left = remains(tmp_path)
    errors = [e["error"]["message"] for e in left.payloads("operator", "tool.call.errored")]
    assert "outcome unknown: the process ended while the tool ran" in errors
    assert max(left.outbox.values()) == 1


# --------------------------------------------------------------- what holds


def what_was_told_is_in_the_log(died: Remains) -> None:
    """A receipt, and an event that a reader saw, are durable."""
    for session_id, seq in died.told.items():
        assert len(died.logs[session_id]) >= seq


def nothing_is_lost(died: Remains, went_on: Remains) -> None:
    """The log before the crash begins the log after it, byte for byte; `seq` has no gap."""
    for session_id, lines in died.logs.items():
        assert went_on.logs[session_id][: len(lines)] == lines
    for lines in went_on.logs.values():
        assert [line[0] for line in lines] == list(range(1, len(lines) + 1))


def every_turn_ended(went_on: Remains) -> None:
    """One start and one end a turn, and an end to every call, decision and interrupt."""
    for session_id, lines in went_on.logs.items():
        started = Counter(line[2] for line in lines if line[1] == "turn.started")
        ended = Counter(line[2] for line in lines if line[1] == "turn.completed")
        assert set(started.values()) <= {1}
        assert started == ended
        asked = {e["call_id"] for e in went_on.payloads(session_id, "tool.call.requested")}
        ends = Counter(
            e["call_id"]
            for kind in ("tool.call.completed", "tool.call.errored")
            for e in went_on.payloads(session_id, kind)
            if e.get("retry") is None
        )
        assert ends == dict.fromkeys(asked, 1)
        last = went_on.payloads(session_id, "turn.completed")[-1]
        assert last.get("error") is None


def nothing_ran_twice(went_on: Remains) -> None:
    """A tool leaves at most one line for a call; one that may be tried again, one an attempt."""
    for key, count in went_on.outbox.items():
        assert count <= (3 if key.startswith("again-") else 1), key
