"""A person with curl: runs over HTTP, read event by event as they arrive."""

import json
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.conformance.strict import problems
from tests.e2e.servers import ROOT, Server

TURN_ID = "agui-server/turnId"

SILENCE_S = 20.0
"""Longest wait for the next byte of a stream. The server's keep-alives come every 15 s."""

Event = dict[str, Any]


def user(text: str, message_id: str = "m1") -> Event:
    """Return a user's message."""
    return {"id": message_id, "role": "user", "content": text}


def run_input(thread_id: str, run_id: str, *messages: Event, **more: Any) -> dict[str, Any]:
    """Return a RunAgentInput of a 1.0 client."""
    ids = {"threadId": thread_id, "runId": run_id, "protocolVersion": "1.0"}
    return {**ids, "messages": list(messages), **more}


def answer(interrupt_id: str, payload: Any) -> dict[str, Any]:
    """Return one entry of a `resume` list."""
    return {"interruptId": interrupt_id, "status": "resolved", "payload": payload}


def run(server: Server, agent_id: str, body: dict[str, Any]) -> list[Event]:
    """Run to the end; return the events. The stream is checked as strictly as any.

    Raises:
        AssertionError: the run was refused, or something is wrong with its stream.
    """
    with _posted(server, agent_id, body) as response:
        content = response.read()
    found = problems(content, body)
    assert found == [], "\n".join(found)
    return list(_events(content.decode().split("\n")))


@contextmanager
def running(
    server: Server, agent_id: str, body: dict[str, Any]
) -> Generator[Iterator[Event], None, None]:
    """Run, and yield the events while they arrive; leaving the block hangs up."""
    with _posted(server, agent_id, body) as response:
        yield _events(response.iter_lines())


@contextmanager
def _posted(
    server: Server, agent_id: str, body: dict[str, Any]
) -> Generator[httpx.Response, None, None]:
    with (
        httpx.Client(timeout=SILENCE_S, trust_env=False) as client,
        client.stream("POST", server.run_url(agent_id), json=body) as response,
    ):
        if response.status_code != 200:
            raise AssertionError(f"{response.status_code}: {response.read().decode()}")
        yield response


def _events(lines: Iterator[str] | list[str]) -> Iterator[Event]:
    for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def of(events: list[Event], event_type: str) -> list[Event]:
    """Return the events of a type."""
    return [event for event in events if event["type"] == event_type]


def said(events: list[Event]) -> str:
    """Return the text that a run streamed."""
    return "".join(event["delta"] for event in of(events, "TEXT_MESSAGE_CONTENT"))


def turn_of(events: list[Event]) -> str:
    """Return the id of the turn that a run shows."""
    return events[0]["metadata"][TURN_ID]


def stored_events(address: str, db: Path) -> list[Event]:
    """Return what `agui sessions events` prints, also while a server runs on the database."""
    command = [Path(sys.executable).with_name("agui"), "sessions", "events", address, "--db", db]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in printed.stdout.split("\n") if line]
