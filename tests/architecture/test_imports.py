"""What import-linter cannot say: which modules are pure, and what pure means."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tracked import ROOT, tracked_files

IMPURE = {
    "asyncio", "concurrent", "logging", "multiprocessing", "os", "pathlib", "random", "secrets",
    "select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess",
    "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip
"""Modules of the standard library that wait, look at the world, or draw lots."""

CLOCKS = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}

PURE_SERVER_FILES = {
    "agui_server/agui/inbound.py": {"engine", "agui_server", "orjson"},
    "agui_server/agui/inbound_messages.py": {"engine", "agui_server"},
    "agui_server/agui/inbound_parts.py": {"engine", "agui_server"},
    "agui_server/agui/wire.py": {"engine", "agui_server", "orjson"},
    "agui_server/agui/translate.py": {"engine", "agui_server", "ag_ui", "pydantic", "orjson"},
    "agui_server/agui/ordering.py": {"engine", "agui_server", "ag_ui", "pydantic"},
    "agui_server/channels/prompts.py": {"engine", "agui_server"},
}
"""Files of the server that read and decide only, and the packages each may use for it."""


def _pure_modules() -> list[tuple[str, set[str]]]:
    core = [f for f in tracked_files() if f.match("engine/core/*.py")]
    server = [(name, uses) for name, uses in PURE_SERVER_FILES.items() if (ROOT / name).exists()]
    return [(str(f), {"engine"}) for f in core] + server


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield node.module or ""


def _reads_a_clock(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return (owner, name) in CLOCKS
        case ast.Attribute(value=ast.Attribute(attr=owner), attr=name):
            return (owner, name) in CLOCKS
        case _:
            return False


@pytest.mark.parametrize(("name", "uses"), [pytest.param(*m, id=m[0]) for m in _pure_modules()])
def test_pure_modules_are_pure(name: str, uses: set[str]) -> None:
    """A pure module awaits nothing, reads no clock, and imports only what decides."""
    tree = ast.parse((ROOT / name).read_text())
    imported = {module.partition(".")[0] for module in _imports(tree)}
    assert imported & IMPURE == set()
    assert imported - set(sys.stdlib_module_names) - uses == set()
    # An `async def` in a Protocol only describes the shell; waiting is something else.
    waits = (ast.Await, ast.AsyncFor, ast.AsyncWith)
    assert [node for node in ast.walk(tree) if isinstance(node, waits)] == []
    assert [node for node in ast.walk(tree) if _reads_a_clock(node)] == []


def test_core_imports_only_core() -> None:
    """`engine.core` knows nothing of the rest of the engine."""
    for path in (f for f in tracked_files() if f.match("engine/core/*.py")):
        ours = {m for m in _imports(ast.parse((ROOT / path).read_text())) if m.startswith("engine")}
        assert {m for m in ours if not f"{m}.".startswith("engine.core.")} == set(), path


def test_ag_ui_is_imported_in_the_server_only() -> None:
    """The protocol's package stays behind the server's wall."""
    users = {
        Path(f).parts[0]
        for f in tracked_files()
        if f.suffix == ".py"
        and any(m.partition(".")[0] == "ag_ui" for m in _imports(ast.parse((ROOT / f).read_text())))
    }
    assert users <= {"agui_server", "tests"}
