"""Whether a session was in memory or had to be loaded is nothing that anybody can tell."""

import secrets
from collections.abc import Iterable

import pytest

from engine.core.events import Event
from engine.core.state import Control
from engine.store import memory
from tests.cold.replays import differences, replay

STEPS = 60


def _only_the_active_path(control: Control, _events: Iterable[Event]) -> list[str]:
    return [] if control.head is None else [control.head]


def test_a_session_that_is_loaded_is_the_session() -> None:
    """Events, receipts, refusals, paths and questions are the same, whatever is done."""
    found = differences(range(60), STEPS)
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
def test_many_sessions_that_are_loaded_are_the_sessions() -> None:
    """The same for 1,500 lives, other ones each time."""
    first = secrets.randbelow(10**9)
    found = differences(range(first, first + 1_500), STEPS)
    assert not found, "\n".join(map(str, found))


def test_branches_that_are_not_loaded_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sides part when a load leaves out the branches on which something is open."""
    monkeypatch.setattr(memory, "ends_before", _only_the_active_path)
    assert any(replay(seed, STEPS) for seed in range(60))
