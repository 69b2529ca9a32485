"""Every stream that the clients were sent, read again by other eyes."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from ag_ui_validate import ValidatorOptions
from ag_ui_validate.transport import TransportOptions, validate_body

from tests.conformance.player import CRASHES, SHARED, VERSIONS, Player
from tests.conformance.strict import problems
from tests.e2e.servers import Server

pytestmark = pytest.mark.conformance

PROFILE = {
    "AGUI105": "off",  # an empty delta is legal
    "AGUI301": "off",  # the input's state is the base of a delta
    "AGUI008": "error",
    "AGUI402": "error",
    "AGUI605": "error",
    "AGUI606": "error",
}
"""What `ag-ui-validate` says against its time, put right. Source: `agui-1.0.md` K."""

RESUMED = {
    "AGUI207": "off",  # the result of a call that another run announced
    "AGUI005": "off",  # RUN_FINISHED, then the late RUN_ERROR that `agui.md` 2.4 asks for
}

BROKEN_OFF = {
    "AGUI204": "off",  # a provider that fails in the middle of a call's arguments
}

CUT = dict.fromkeys(("AGUI003", "AGUI103", "AGUI203", "AGUI402", "AGUI604"), "off")
"""The server was killed in the middle: no end, and items that are open."""


class Recording:
    """One exchange: the bytes as they came, and what was asked."""

    def __init__(self, about: Path) -> None:
        self.name = f"{about.parent.name}/{about.stem}"
        self.about: dict[str, Any] = json.loads(about.read_text())
        self.body = about.with_suffix(".sse").read_bytes()

    @property
    def request(self) -> dict[str, Any]:
        """The RunAgentInput."""
        return self.about["request"]

    @property
    def complete(self) -> bool:
        """Whether the body was read to its end."""
        return self.about["isComplete"]

    def title(self) -> str:
        """Say which scenario it is of."""
        return f"{self.name} of {self.about['scenario']}"

    async def diagnostics(self) -> list[str]:
        """Return what `ag-ui-validate` finds, all but remarks."""
        rules = PROFILE | (RESUMED if self._shows_old_calls() else {})
        rules |= {} if self.complete else CUT
        rules |= BROKEN_OFF if b'"RUN_ERROR"' in self.body else {}
        options = TransportOptions(
            validator=ValidatorOptions(severity_overrides=rules), recorded=True
        )
        result = await validate_body(self._chunks(), self.about["contentType"], options)
        assert result.report.internal_errors == []
        found = [d for d in result.report.diagnostics if d.severity != "info"]
        return [f"{self.title()}: {d.rule} {d.message}" for d in found]

    def _shows_old_calls(self) -> bool:
        """Whether the run continues a turn: an answer, or a view of one that is under way."""
        return bool(self.request.get("resume"))

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield self.body


@pytest.fixture(params=VERSIONS)
def played(
    request: pytest.FixtureRequest, players: dict[str, Player], server: Server
) -> list[Recording]:
    """Return all recordings of a version; scenarios not played yet are played now."""
    player = players[request.param]
    for scenario in SHARED:
        player.play(scenario, server)
    found = sorted(player.recordings.glob("*.sse"))
    made = [Recording(body.with_suffix(".json")) for body in found]
    assert len({each.about["scenario"] for each in made} - set(CRASHES)) == len(SHARED)
    assert len(made) > len(SHARED)
    return made


async def test_ag_ui_validate_finds_nothing(played: list[Recording]) -> None:
    """No error and no warning in any stream, by the profile for 1.0."""
    found = [line for each in played for line in await each.diagnostics()]
    assert found == [], "\n".join(found)


def test_nothing_outside_the_schema_is_sent(played: list[Recording]) -> None:
    """No unknown field, no null, both ends agree, LF only, nothing new for old clients."""
    found = [
        f"{each.title()}: {problem}"
        for each in played
        for problem in problems(each.body, each.request, complete=each.complete)
    ]
    assert found == [], "\n".join(found)


def test_every_refusal_is_a_problem_document(
    played: list[Recording], players: dict[str, Player]
) -> None:
    """A run is answered 200 `text/event-stream`, or refused with a code; nothing is a 500."""
    for each in played:
        assert each.about["status"] == 200, each.title()
        assert each.about["contentType"].startswith("text/event-stream"), each.title()
    for player in players.values():
        for path in player.recordings.glob("*.json"):
            about = json.loads(path.read_text())
            assert about["status"] < 500, path
            is_problem = about["contentType"].startswith("application/problem+json")
            assert is_problem == (about["status"] >= 400), path


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        pytest.param({"nonsense": 1}, "/nonsense is outside the schema", id="unknown field"),
        pytest.param({"name": None}, "/name is null", id="null"),
        pytest.param({"message_id": "m"}, "/message_id is outside", id="snake case"),
    ],
)
def test_the_strict_check_is_strict(frame: dict[str, Any], problem: str) -> None:
    """The check itself sees what it is for."""
    ends = {"threadId": "t", "runId": "r", "protocolVersion": "1.0"}
    events = [
        {"type": "RUN_STARTED", **ends},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", **frame},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
    assert [p for p in problems(body, ends) if problem in p]
    frames = body.replace(b"\n\n", b"\r\n\r\n")
    assert "a carriage return in the stream" in problems(frames, ends)
