"""How a bug is planted: a few words of one function of the product are changed."""

import __future__

import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A planted bug. `place` is `module:function` or `module:Class.method`.

    `caught_by` names the law that finds it, `machine` for what the machine itself asserts
    (duplicates, deadlines, restarts), or `streams`.
    """

    bug: str
    place: str
    old: str
    new: str
    caught_by: str

    def plant(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put the changed function in the place of the real one, wherever it is imported."""
        module_name, _, path = self.place.partition(":")
        module = importlib.import_module(module_name)
        *owners, name = path.split(".")
        owner: Any = module
        for each in owners:
            owner = getattr(owner, each)
        original = cast("Callable[..., Any]", getattr(owner, name))
        source = textwrap.dedent(inspect.getsource(original))
        assert source.count(self.old) == 1, f"{self.place} has changed: plant this bug anew"
        changed = _compiled(source.replace(self.old, self.new), module.__dict__)[name]
        monkeypatch.setattr(owner, name, changed)
        for each in list(sys.modules.values()):
            is_ours = each.__name__.startswith(("engine", "agui_server", "tests"))
            if is_ours and each.__dict__.get(name) is original:
                monkeypatch.setattr(each, name, changed)


def _compiled(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a function's text among its module's names, and return what it defines."""
    defined: dict[str, Any] = {}
    code = compile(source, "<mutant>", "exec", __future__.annotations.compiler_flag)
    exec(code, names, defined)  # noqa: S102 - our own source, changed by the list below
    return defined
