"""One server and two clients for all scenarios."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.conformance.player import VERSIONS, Player
from tests.e2e.servers import Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    """Start the test agents once; a database on disk, as in production."""
    with serving(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="session")
def a_server_to_kill(
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Server, None, None]:
    """Start another one, which scenarios may kill. They start it again, or the next test does."""
    with serving(tmp_path_factory.mktemp("killed")) as started:
        yield started


@pytest.fixture
def doomed(a_server_to_kill: Server) -> Server:
    """Return a running server that a scenario may kill."""
    if not a_server_to_kill.is_running:
        a_server_to_kill.start()
    return a_server_to_kill


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where every exchange is recorded, a folder for each version."""
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="session")
def players(recordings: Path) -> Generator[dict[str, Player], None, None]:
    """Return the players by version. Node starts with the first scenario."""
    made = {version: Player(version, recordings / version) for version in VERSIONS}
    yield made
    for player in made.values():
        player.end()
