"""What the documents show is run as printed."""

import json
import re
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine import Engine
from tests.agui.given import Event, Server, resolved, serving, user

ROOT = Path(__file__).parent.parent


def blocks(document: str, language: str) -> list[str]:
    """Return a document's code blocks in a language, as printed."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def module(code: str, folder: Path) -> dict[str, Any]:
    """Run a block as a file of its own."""
    file = folder / "app.py"
    file.write_text(code, encoding="utf-8")
    return runpy.run_path(str(file))


def bodies(document: str) -> list[Event]:
    """Return the JSON that a document's `curl` commands send."""
    found = re.findall(r"-d '(.*?)'", "".join(blocks(document, "sh")), re.DOTALL)
    return [json.loads(body) for body in found]


def printed(events: Sequence[Event]) -> list[str]:
    """Return a stream as the README prints it: type, and what matters of it.

    Neighbouring deltas are one: how a text is cut is a matter of timing.
    """
    lines: list[list[str]] = []
    for event in events:
        kind, said = event["type"], event.get("toolCallName") or event.get("content") or ""
        if kind == "RUN_FINISHED":
            outcome = event["outcome"]
            asked = outcome.get("interrupts", [{}])[0].get("message")
            said = outcome["type"] + (f": {asked}" if asked else "")
        if "delta" in event and lines and lines[-1][0] == kind:
            lines[-1][1] += event["delta"]
        else:
            lines.append([kind, event.get("delta", said)])
    return [" ".join(f"{kind} {said}".split()) for kind, said in lines]


def lines_of(block: str) -> list[str]:
    """Return a printed block, whatever its columns."""
    return [" ".join(line.split()) for line in block.splitlines()]


async def test_the_readme_shows_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent, the two requests and their output, exactly as printed."""
    monkeypatch.chdir(tmp_path)
    worker = module(blocks("README.md", "python")[0], tmp_path)
    engine: Engine = worker["engine"]
    first, second = blocks("README.md", "text")
    asked_body, answer_body = bodies("README.md")

    async with serving(*engine.agents.values(), db=engine.store) as server:
        asked = await server.post("operator", asked_body)
        assert printed(asked.events) == lines_of(first)
        answer_body["resume"][0]["interruptId"] = asked.interrupts[0]["id"]
        done = await server.post("operator", answer_body)
        assert printed(done.events) == lines_of(second)
        assert done.turn_id == asked.turn_id
    assert (tmp_path / "agents.db").exists()


async def test_the_model_of_the_docs_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of one's own is a class with one method."""
    monkeypatch.chdir(tmp_path)
    engine: Engine = module(blocks("docs/models.md", "python")[0], tmp_path)["engine"]
    models = {"echo": module(blocks("docs/models.md", "python")[0], tmp_path)["Echo"]()}
    async with serving(*engine.agents.values(), db=engine.store, models=models) as server:
        stream = await server.run(user("u1", "hello"), agent="parrot")
        assert stream.text == "You said: hello"


async def test_the_page_names_the_requests_that_work(tmp_path: Path) -> None:
    """What `/` tells people to type is what the demo answers."""
    from agui_server.demo import agents  # noqa: PLC0415

    async with serving(*agents(tmp_path / "outbox")) as server:
        page = await server.client.get("/")
        asked_body, answer_body = (
            json.loads(body) for body in re.findall(r"-d '(.*?)'", page.text, re.DOTALL)
        )
        assert "http://127.0.0.1/api/channels/ag-ui/agents/mailer/run" in page.text
        asked = await _ask(server, asked_body)
        answer_body["resume"] = [resolved(asked, {"approved": True})]
        done = await server.post("mailer", answer_body)
        assert done.all("TOOL_CALL_RESULT", "content") == ["sent"]


async def _ask(server: Server, body: Event) -> str:
    asked = await server.post("mailer", body)
    return asked.interrupts[0]["id"]


def test_documents_link_to_what_is_there() -> None:
    """No link of a document leads nowhere."""
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
