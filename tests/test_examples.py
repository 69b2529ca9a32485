"""The examples do what they say they print."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
PLAYED = sorted(p.name for p in EXAMPLES.glob("*.py") if "prints\n" in p.read_text("utf-8"))


def said(example: str) -> str:
    """Return what an example's docstring says that it prints."""
    text = (EXAMPLES / example).read_text(encoding="utf-8")
    found = re.search(r'prints\n\n(.*?)"""', text, re.DOTALL)
    assert found is not None
    return textwrap.dedent(found[1])


@pytest.mark.parametrize("example", PLAYED)
def test_an_example_prints_what_it_says(example: str, tmp_path: Path) -> None:
    """Run as its docstring says, in a process of its own."""
    command = [sys.executable, str(EXAMPLES / example)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120
    )
    assert done.stderr == ""
    assert done.stdout == said(example)


def test_there_is_one_for_each_thing_people_ask_for() -> None:
    """A new one is found here by itself; these must stay."""
    assert {
        "approve_a_tool.py",
        "ask_with_a_schema.py",
        "cancel.py",
        "leave_and_come_back.py",
        "two_approvers.py",
    } <= set(PLAYED)
