"""`agui sessions …`: on a file, beside an engine, and through the server that holds the file."""

import asyncio
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from agui_server import cli
from agui_server.cli.shown import summary
from agui_server.cli.terminal import one_line
from engine.store.lock import EngineLock, holder
from tests.databases import left_paused, left_running, record
from tests.e2e.conversation import of, run, run_input, running, user
from tests.e2e.servers import DEMO, Server, serving

runner = CliRunner()

THREAD = "th"


def agui(path: Path, *words: str) -> Result:
    """Run a command on a database."""
    return runner.invoke(cli.app, ["sessions", *words, "--db", str(path)])


def printed(result: Result) -> Any:
    """Return the JSON that a command printed."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def said(result: Result) -> str:
    """Return what a command that failed said: one sentence, and status 1."""
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


# ------------------------------------------------------------ without a server


def test_a_file_is_listed(tmp_path: Path) -> None:
    """A line for each session, the latest updated first; as JSON with the whole ids."""
    path = tmp_path / "a.db"
    record(path, "a", "b")
    heading, _rule, *lines = agui(path, "list").stdout.splitlines()
    assert heading.split() == ["session", "agent", "status", "updated", "thread", "title"]
    listed = printed(agui(path, "list", "--json"))["sessions"]
    assert [session["agent_id"] for session in listed] == ["b", "a"]
    for line, session in zip(lines, listed, strict=True):
        assert line.split()[:3] == [session["session_id"], session["agent_id"], session["status"]]
    assert printed(agui(path, "list", "--json", "--agent", "a"))["sessions"] == listed[1:]
    assert printed(agui(path, "list", "--json", "--status", "waiting")) == {"sessions": []}


def test_a_long_list_goes_on(tmp_path: Path) -> None:
    """The command says how; a cursor that is none is a sentence."""
    path = tmp_path / "a.db"
    record(path, "a", "b")
    first = agui(path, "list", "--limit", "1")
    cursor = first.stderr.split()[-1]
    assert "There are more: --cursor " in first.stderr
    rest = agui(path, "list", "--limit", "1", "--cursor", cursor)
    assert rest.stderr == ""
    assert first.stdout != rest.stdout
    assert "begin the list again" in said(agui(path, "list", "--cursor", "x"))
    assert "no status" in said(agui(path, "list", "--status", "busy"))


def test_a_session_is_shown(tmp_path: Path) -> None:
    """What is open, who is asked what and how it can be answered, and the conversation."""
    path = tmp_path / "a.db"
    session_id, _ = asyncio.run(left_paused(path))
    shown = printed(agui(path, "show", session_id, "--json"))
    turn_id, question = shown["turn_id"], shown["interrupts"][0]
    lines = agui(path, "show", session_id).stdout.splitlines()
    assert lines[:8] == [
        f"session  {session_id}",
        "agent    a",
        "thread   th of o",
        "status   interrupted",
        f"turn     {turn_id} (paused)",
        f"asks     {question['interrupt_id']} (confirm)",
        "         Look?",
        "         0: Approve",
    ]
    assert lines[-2:] == [
        'user      /tool look {"what": "it"}',
        'assistant → look {"what": "it"}',
    ]


def test_everything_of_a_session_is_shown() -> None:
    """Queued turns, who a question is for, parts, calls beside a text, and why a tool failed."""
    parts = [{"type": "text", "text": "look"}, {"type": "image", "source": {}}]
    calls = [{"id": "c", "name": "look", "arguments": "{}"}]
    question = {
        "interrupt_id": "i",
        "reason": "audit",
        "payload": None,
        "answer_by": "machine",
    }
    session = {
        "session_id": "s",
        "agent_id": "a",
        "thread_id": "t",
        "owner": "o",
        "status": "interrupted",
        "turns": [{"turn_id": "one", "status": "parked"}],
        "queue": ["two"],
        "interrupts": [question],
        "messages": [
            {"role": "user", "content": parts},
            {"role": "assistant", "content": "well", "tool_calls": calls},
            {"role": "tool", "content": "", "error": "too dark"},
            {"role": "activity", "content": {"a": 1}},
        ],
    }
    assert list(summary(session)) == [
        "session  s",
        "agent    a",
        "thread   t of o",
        "status   interrupted",
        "turn     one (parked)",
        "queued   two",
        "asks     i (audit)",
        "         a machine answers this one",
        "",
        "user      look [image]",
        "assistant well",
        "assistant → look {}",
        "tool      too dark",
    ]


def test_what_somebody_wrote_moves_no_cursor() -> None:
    """Control characters are not printed, and a long text is cut."""
    assert one_line("a\n\tb \x1b[31mred\x07\u202e") == "a b [31mred"
    assert one_line("x" * 10, limit=4) == "xxx…"


def test_a_session_of_a_file_is_cancelled(tmp_path: Path) -> None:
    """Without the agents of that file: nothing is continued. Twice is the same as once."""
    path = tmp_path / "a.db"
    session_id = asyncio.run(left_running(path))
    turn_id = printed(agui(path, "show", session_id, "--json"))["turn_id"]
    assert agui(path, "cancel", session_id).stdout == f"cancelled {turn_id}\n"
    assert printed(agui(path, "show", session_id, "--json"))["status"] == "idle"
    assert agui(path, "cancel", session_id).stdout == "nothing was open\n"
    again = printed(agui(path, "cancel", session_id, "--json"))
    assert again == {"cancelled": False, "turn_ids": []}


def test_a_thread_of_a_file_is_cancelled(tmp_path: Path) -> None:
    """By its name; one that several agents have is a sentence."""
    path = tmp_path / "a.db"
    record(path, "a")
    assert agui(path, "cancel", "t").exit_code == 0
    record(path, "b")
    assert "Several agents have a thread 't'" in said(agui(path, "cancel", "t"))


@pytest.mark.parametrize("command", ["show", "events", "cancel"])
def test_an_address_that_names_nothing_is_a_sentence(tmp_path: Path, command: str) -> None:
    """Status 1, also for one that cannot be an id."""
    path = tmp_path / "a.db"
    record(path, "a")
    for address in ("nobody", "", "a\nb"):
        assert "There is no session or thread" in said(agui(path, command, address))


@pytest.mark.parametrize("command", [["list"], ["show", "t"], ["events", "t"], ["cancel", "t"]])
def test_a_database_that_is_not_there_is_not_made(tmp_path: Path, command: list[str]) -> None:
    """Neither is its lock."""
    path = tmp_path / "none.db"
    assert f"There is no database {path}" in said(agui(path, *command))
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------- beside an engine


def test_an_engine_without_an_address_is_only_looked_at(tmp_path: Path) -> None:
    """A cancel says who is in the way; looking works beside it."""
    path = tmp_path / "a.db"
    session_id, _ = asyncio.run(left_paused(path))
    lock = EngineLock(path)
    lock.acquire()
    try:
        owner = holder(path)
        assert owner is not None
        assert owner.url is None
        for command in (["list"], ["show", session_id], ["events", session_id]):
            assert agui(path, *command).exit_code == 0
        refused = said(agui(path, "cancel", session_id))
        assert f"Another engine already runs on {path} (process {owner.pid})" in refused
    finally:
        lock.release()
    assert holder(path) is None
    assert agui(path, "cancel", session_id).exit_code == 0


@pytest.mark.parametrize("command", [["list"], ["show", "t"], ["cancel", "t"]])
def test_a_server_that_does_not_answer_is_a_sentence(tmp_path: Path, command: list[str]) -> None:
    """It names the process."""
    path = tmp_path / "a.db"
    record(path, "a")
    lock = EngineLock(path)
    lock.acquire()
    lock.set_owner("http://127.0.0.1:9")
    try:
        refused = said(agui(path, *command))
        assert "(process" in refused
        assert "http://127.0.0.1:9) does not answer" in refused
    finally:
        lock.release()


# ------------------------------------------------------------ with a server


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """Start `agui demo` as a person does."""
    with serving(tmp_path_factory.mktemp("demo"), DEMO) as server:
        yield server


def test_a_running_turn_is_cancelled_through_its_server(demo: Server) -> None:
    """From another terminal: the stream of the run ends, cancelled, and the server lives on."""
    body = run_input("long", "r1", user("/tokens 4000 every 20"))
    with running(demo, "assistant", body) as events:
        first = next(events)
        while next(events)["type"] != "TEXT_MESSAGE_CONTENT":
            pass
        assert holder(demo.db) is not None
        cancelled = printed(agui(demo.db, "cancel", "long", "--json"))
        rest = list(events)
    assert cancelled == {"cancelled": True, "turn_ids": [first["metadata"]["agui-server/turnId"]]}
    assert rest[-1]["outcome"]["type"] == "cancelled"
    assert agui(demo.db, "cancel", "long").stdout == "nothing was open\n"
    later = run(demo, "assistant", run_input("long", "r2", user("/say on", "m2")))
    assert later[-1]["outcome"] == {"type": "success"}


def test_a_running_server_is_asked_for_its_sessions(demo: Server) -> None:
    """By thread or by id, with the config that only the server knows."""
    asked = run(demo, "mailer", run_input("mail", "r1", user("email ada about lunch")))
    [question] = of(asked, "RUN_FINISHED")[0]["outcome"]["interrupts"]
    shown = printed(agui(demo.db, "show", "mail", "--json"))
    assert shown["agent"] == {"model": "demo", "system": None}
    assert printed(agui(demo.db, "show", shown["session_id"], "--json")) == shown
    assert question["id"] in agui(demo.db, "show", "mail").stdout
    listed = printed(agui(demo.db, "list", "--json", "--status", "interrupted"))["sessions"]
    assert [session["session_id"] for session in listed] == [shown["session_id"]]
    assert shown["session_id"] in agui(demo.db, "list").stdout
    assert agui(demo.db, "cancel", shown["session_id"]).exit_code == 0


def test_a_server_says_what_is_wrong(demo: Server) -> None:
    """Its sentence is the command's."""
    for agent in ("assistant", "operator"):
        run(demo, agent, run_input("both", f"r-{agent}", user("/say hi", f"m-{agent}")))
    for command in ("show", "cancel"):
        assert "There is no session or thread 'nobody'" in said(agui(demo.db, command, "nobody"))
        assert "There is no session or thread 'a/b'" in said(agui(demo.db, command, "a/b"))
        assert "Several agents have a thread 'both'" in said(agui(demo.db, command, "both"))
    assert "begin the list again" in said(agui(demo.db, "list", "--cursor", "x"))


def test_a_file_that_a_killed_server_left_is_nobodys(tmp_path: Path) -> None:
    """Its lock names the dead process; the commands work on the file."""
    with serving(tmp_path, DEMO) as server:
        with running(server, "assistant", run_input(THREAD, "r", user("/hang"))) as events:
            turn_id = next(events)["metadata"]["agui-server/turnId"]
            server.kill()
        assert holder(server.db) is None
        shown = printed(agui(server.db, "show", THREAD, "--json"))
        assert (shown["status"], shown["turn_id"]) == ("running", turn_id)
        assert agui(server.db, "cancel", THREAD).stdout == f"cancelled {turn_id}\n"
        assert printed(agui(server.db, "show", THREAD, "--json"))["status"] == "idle"
        server.start()
        ended = run(server, "assistant", run_input(THREAD, "r2", user("/say on", "m2")))
        assert ended[-1]["outcome"] == {"type": "success"}
