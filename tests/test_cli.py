"""The command line, as a person uses it."""

import json
from pathlib import Path

import pytest
import uvicorn
from typer.testing import CliRunner

from agui_server import cli
from agui_server.demo import agents, get_time, get_weather
from engine import ToolError
from engine.store.migrations import HEAD
from tests.databases import record

runner = CliRunner()


def test_events_are_printed_one_a_line(tmp_path: Path) -> None:
    """By thread or by session id, each a JSON object with its `seq`."""
    path = tmp_path / "a.db"
    record(path, "a")
    by_thread = runner.invoke(cli.app, ["sessions", "events", "t", "--db", str(path)])
    events = [json.loads(line) for line in by_thread.stdout.splitlines()]

    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "session.created"
    session_id = events[0]["session_id"]
    by_id = runner.invoke(cli.app, ["sessions", "events", session_id, "--db", str(path)])
    assert by_id.stdout == by_thread.stdout


@pytest.mark.parametrize(
    ("address", "said"),
    [("nobody", "There is no session or thread 'nobody'"), ("t", "Several agents have")],
    ids=["unknown", "ambiguous"],
)
def test_an_address_that_names_no_session_says_why(tmp_path: Path, address: str, said: str) -> None:
    """Status 1 and a sentence."""
    path = tmp_path / "a.db"
    record(path, "a", "b")
    result = runner.invoke(cli.app, ["sessions", "events", address, "--db", str(path)])
    assert result.exit_code == 1
    assert said in result.stderr


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """Looking changes nothing."""
    path = tmp_path / "none.db"
    result = runner.invoke(cli.app, ["sessions", "events", "t", "--db", str(path)])
    assert result.exit_code == 1
    assert str(path) in result.stderr.replace("\n", "")
    assert not path.exists()


def test_a_database_is_migrated(tmp_path: Path) -> None:
    """A current one stays what it is; one that is not there is a sentence."""
    path = tmp_path / "a.db"
    record(path, "a")
    result = runner.invoke(cli.app, ["migrate", "--db", str(path)])
    assert (result.exit_code, f"schema {HEAD}" in result.stderr) == (0, True)
    missing = runner.invoke(cli.app, ["migrate", "--db", str(tmp_path / "none.db")])
    assert missing.exit_code == 1
    assert not (tmp_path / "none.db").exists()


def test_the_demo_serves_on_loopback_with_what_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Port, database and allowed origins reach the server; the address is 127.0.0.1."""
    served: list[uvicorn.Server] = []

    async def serve(server: uvicorn.Server) -> None:
        server.started = True
        served.append(server)

    monkeypatch.setattr(uvicorn.Server, "serve", serve)
    arguments = ["demo", "--port", "8765", "--db", str(tmp_path / "x.db")]
    result = runner.invoke(cli.app, [*arguments, "--allow-origin", "http://localhost:3000"])

    assert result.exit_code == 0
    [server] = served
    assert (server.config.host, server.config.port) == ("127.0.0.1", 8765)


def test_a_database_that_cannot_be_opened_is_a_sentence(tmp_path: Path) -> None:
    """Status 1, what is wrong, and no stack trace."""
    path = tmp_path / "nowhere" / "x.db"
    result = runner.invoke(cli.app, ["demo", "--db", str(path)])
    assert result.exit_code == 1
    assert "does not exist" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_server_that_does_not_start_is_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port in use, for instance: uvicorn says it, and so does the status."""

    async def serve(_server: uvicorn.Server) -> None:
        return

    monkeypatch.setattr(uvicorn.Server, "serve", serve)
    result = runner.invoke(cli.app, ["demo", "--db", str(tmp_path / "x.db")])
    assert result.exit_code == 1


def test_the_demo_has_its_agents() -> None:
    """The mailer's tool is its worker's own; the secretary's says that it needs approval."""
    specs = {agent.id: agent.spec() for agent in agents(None)}
    assert list(specs) == ["assistant", "mailer", "operator", "secretary"]
    assert specs["mailer"].tools["send_email"].handler == "worker"
    assert specs["operator"].tools["send_email"].handler == "function"
    assert specs["operator"].wants == frozenset({"tool.execute"})
    assert specs["secretary"].tools["send_email"].approve


def test_the_assistants_tools_answer() -> None:
    """The same city has the same weather; an unknown one has no time."""
    assert get_weather("Lisbon") == get_weather("Lisbon")
    assert "in Lisbon" in get_time("Lisbon")
    with pytest.raises(ToolError, match="no time zone known for Nowhere"):
        get_time("Nowhere")
