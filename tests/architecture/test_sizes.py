"""Sizes of files, and what no file may name."""

import re
from pathlib import Path

import pytest

from tests.architecture.tracked import ROOT, tracked_files

MAX_LINES = 450
"""A file past this wants a second room."""

SOURCE = {".py", ".ts", ".tsx", ".mjs", ".js", ".css"}
GENERATED = re.compile(r"(^|/)(generated|dist|versions)/|\.gen\.ts$|\.d\.ts$")
LOCKS = {"requirements.lock", "package-lock.json"}
BINARY = {".png", ".jpg", ".gif", ".ico", ".woff2", ".svg", ".db"}

# A path of somebody's machine: absolute, below a home or a workplace.
MACHINE_PATH = re.compile(r"(?<![\w.:/}])/(?:root|home|Users|work)/\w")


def _sources() -> list[str]:
    return [str(f) for f in tracked_files() if f.suffix in SOURCE and not GENERATED.search(str(f))]


def _texts() -> list[str]:
    return [str(f) for f in tracked_files() if f.suffix not in BINARY]


def test_no_file_is_too_long() -> None:
    """Every source file, tests too, fits in 450 lines."""
    lengths = {name: len((ROOT / name).read_text().splitlines()) for name in _sources()}
    too_long = {name: lines for name, lines in lengths.items() if lines > MAX_LINES}
    assert too_long == {}


def test_no_file_names_a_path_of_a_machine() -> None:
    """A file that names somebody's home works on that machine only."""
    found = {
        name: line.strip()[:80]
        for name in _texts()
        for line in (ROOT / name).read_text(errors="replace").splitlines()
        if MACHINE_PATH.search(line)
    }
    assert found == {}


def test_lock_files_name_no_registry() -> None:
    """Packages are locked by name and version; where they come from is each machine's own."""
    locks = [f for f in tracked_files() if f.name in LOCKS]
    assert Path("requirements.lock") in locks
    for lock in locks:
        text = (ROOT / lock).read_text()
        assert not re.search(r'"resolved": *"http', text), f"{lock} names a registry"
        assert lock.suffix == ".json" or "://" not in text, f"{lock} names an address"


@pytest.mark.parametrize("package", ["engine", "agui_server"])
def test_packages_say_that_they_are_typed(package: str) -> None:
    """Both packages ship their types."""
    assert (ROOT / package / "py.typed").is_file()
