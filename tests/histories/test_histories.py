"""Recorded histories are read and folded the same for ever.

A file is never recorded anew because a test fails here: it stands for the logs that are
stored somewhere already.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from engine.core.apply import apply
from engine.core.events import Body, Event, LlmCallRequested
from engine.core.state import State, new_session
from engine.core.status import LIVES
from engine.store import codec
from tests.histories import wire
from tests.histories.judge import Row, walk_log
from tests.histories.record import SCENARIOS

FILES = wire.recorded()

every_history = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def fold(events: list[Event]) -> State:
    """Return the state that a log leads to."""
    state = new_session(events[0].session_id)
    for event in events:
        state = apply(state, event)
    return state


def kept(recorded: Any, written: Any) -> Any:
    """Return what is written of a recorded value, without members that came later."""
    if isinstance(recorded, dict) and isinstance(written, dict):
        return {
            name: kept(value, written[name]) for name, value in recorded.items() if name in written
        }
    if isinstance(recorded, list) and isinstance(written, list) and len(recorded) == len(written):
        return [kept(old, new) for old, new in zip(recorded, written, strict=True)]
    return written


@every_history
def test_the_fold_is_what_it_was(file: Path) -> None:
    """The fold of the log is the state that stands beside it, and goes on with the same `seq`."""
    events = wire.read(file)
    assert fold(events).control == wire.read_state(file)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


@every_history
def test_a_snapshot_anywhere_changes_nothing(file: Path) -> None:
    """A log folded in two parts, with a stored snapshot between them, is the same log."""
    events = wire.read(file)
    state = new_session(events[0].session_id)
    for event in events:
        stored = codec.decode_control(codec.encode_control(state.control))
        state = apply(State(stored, state.tree), event)
    assert state.control == wire.read_state(file)


@every_history
def test_a_line_is_read_and_written_back(file: Path) -> None:
    """Reading and writing a line is the identity.

    A later version may write a new field beside the old ones, with its default; it keeps
    each of them, in the same order, and reads back what it wrote.
    """
    for line in file.read_text(encoding="utf-8").splitlines():
        event = wire.read_line(line)
        again = codec.to_json(event)
        recorded = codec.from_json(line)
        assert wire.write_json(kept(recorded, again)) == line
        assert wire.read_line(wire.write_line(event)) == event


@every_history
def test_the_state_beside_it_is_read_and_written_back(file: Path) -> None:
    """So are the snapshots of an older version."""
    line = wire.state_file(file).read_text(encoding="utf-8").strip()
    again = codec.from_json(codec.encode_control(codec.decode_control(line)))
    assert wire.write_json(kept(codec.from_json(line), again)) == line


@every_history
def test_every_status_walks_a_row(file: Path) -> None:
    """Whatever changes at an event, its table has the row."""
    assert walk_log(wire.read(file))


def test_every_row_is_walked_by_a_history() -> None:
    """A row without a history is only a claim: record one that walks it."""
    walked: set[Row] = set().union(*(walk_log(wire.read(file)) for file in FILES))
    rows: set[Row] = {(kind, step) for kind, steps in LIVES.items() for step in steps}
    assert rows - walked == set()


def test_every_type_of_event_is_in_a_history() -> None:
    """An old log may hold any of them."""
    found = {type(event.body) for file in FILES for event in wire.read(file)}
    assert set(get_args(Body)) - found == set()


def test_each_history_has_its_scenario_and_its_state() -> None:
    """No file is left of a scenario that is gone, and none is missing."""
    names = {file.stem for file in FILES}
    assert names == set(SCENARIOS)
    states = {file.name.removesuffix(".state.json") for file in wire.FOLDER.glob("*.state.json")}
    assert states == names


def test_a_wrong_log_is_told() -> None:
    """The judge is no rubber stamp: a call that begins twice walks no row."""
    events = wire.read(wire.FOLDER / "approve_and_run.jsonl")
    [first, *_] = [e for e in events if isinstance(e.body, LlmCallRequested)]
    with pytest.raises(AssertionError, match="no row of its table says so"):
        walk_log([*events[: first.seq], replace(first, seq=first.seq + 1)])


def test_what_is_over_does_not_begin_again() -> None:
    """A turn that starts a second time is told too."""
    events = wire.read(wire.FOLDER / "approve_and_run.jsonl")
    again = replace(events[1], seq=len(events) + 1)
    with pytest.raises(AssertionError, match="is over"):
        walk_log([*events, again])


def test_the_story_of_the_concepts_is_a_history() -> None:
    """The log that `docs/concepts.md` shows in parts is one that was recorded."""
    page = (wire.FOLDER.parents[1] / "docs" / "concepts.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    shown = [line.split() for line in "".join(blocks).splitlines()]
    events = wire.read(wire.FOLDER / "ask_leave_come_back_answer.jsonl")
    told = {
        event.seq: [str(event.seq), event.body.type, *filter(None, [event.turn_id])]
        for event in events
    }
    assert {int(line[0]): line[: len(told[int(line[0])])] for line in shown} == told
