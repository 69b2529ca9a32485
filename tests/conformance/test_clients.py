"""The official clients against a real server. The scenarios are in `scenarios/*.mjs`.

A scenario fails, too, when the client logs a warning, a promise is rejected that nobody
holds, or a carriage return is in an answer.
"""

from pathlib import Path

import pytest

from tests.conformance.player import CRASHES, SHARED, VERSIONS, Player
from tests.e2e.servers import Server

pytestmark = pytest.mark.conformance


def _passed(player: Player, scenario: str, server: Server) -> None:
    outcome = player.play(scenario, server)
    told = "\n".join(outcome["details"])
    assert outcome["passed"], f"{told}\n{server.report()}"


@pytest.mark.parametrize("scenario", SHARED)
@pytest.mark.parametrize("version", VERSIONS)
def test_client(players: dict[str, Player], server: Server, version: str, scenario: str) -> None:
    """What the scenario's name says holds, and the page shows what the server has."""
    _passed(players[version], scenario, server)


@pytest.mark.crash
@pytest.mark.parametrize("scenario", CRASHES)
@pytest.mark.parametrize("version", VERSIONS)
def test_client_survives_a_crash(
    players: dict[str, Player], doomed: Server, version: str, scenario: str
) -> None:
    """The same page goes on after `kill -9` and a start on the same database."""
    _passed(players[version], scenario, doomed)


def test_both_clients_are_the_pinned_ones() -> None:
    """The lock names the two versions that front ends use today, and no registry."""
    lock = (Path(__file__).parent / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    for alias, version in {"client-1.0": "1.0.0", "client-0.0": "0.0.59"}.items():
        assert f'"{alias}": "npm:@ag-ui/client@{version}"' in lock
