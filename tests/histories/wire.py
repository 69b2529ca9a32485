"""Histories in files: one event a line, as clients and machines see events."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.core.events import Event
from engine.core.state import Control
from engine.store import codec

FOLDER = Path(__file__).parent


def recorded() -> list[Path]:
    """Return every history there is."""
    return sorted(FOLDER.glob("*.jsonl"))


def read(file: Path) -> list[Event]:
    """Return the events of a history."""
    return [read_line(line) for line in file.read_text(encoding="utf-8").splitlines()]


def read_line(line: str) -> Event:
    """Return the event that a line holds."""
    wire: dict[str, Any] = json.loads(line)
    return Event(
        wire["session_id"],
        wire["seq"],
        datetime.fromisoformat(wire["occurred_at"]),
        wire.get("turn_id"),
        codec.decode_body(wire["type"], write_json(wire["payload"])),
    )


def write_line(event: Event) -> str:
    """Return an event as a line."""
    return write_json(codec.to_json(event))


def write_json(value: object) -> str:
    """Return a value as the shortest JSON of one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def state_file(file: Path) -> Path:
    """Return where the state stands that a history leads to."""
    return file.with_suffix(".state.json")


def read_state(file: Path) -> Control:
    """Return what was open at the end of a history when it was recorded."""
    return codec.decode_control(state_file(file).read_text(encoding="utf-8"))


def write(name: str, events: Sequence[Event], control: Control) -> None:
    """Write a history, and beside it the state it leads to."""
    file = FOLDER / f"{name}.jsonl"
    _write_lines(file, map(write_line, events))
    _write_lines(state_file(file), [codec.encode_control(control)])


def _write_lines(file: Path, lines: Iterable[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
