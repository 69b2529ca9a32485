"""Plays the Node scenarios: one Node process for each version of the client, a line each way."""

import json
import re
import shutil
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.servers import Server

HERE = Path(__file__).resolve().parent

VERSIONS = ("1.0", "0.0")
"""Of `@ag-ui/client`: 1.0.0, and 0.0.59, which older front ends resolve to."""

SETUP = "run `make setup`, or `npm ci` in tests/conformance"

SCENARIO_S = 60.0
"""Longest wait for one scenario. A Node process that takes longer is killed."""

_NAME = re.compile(r"^export async function (\w+)\(", re.MULTILINE)


def scenarios(file: str) -> list[str]:
    """Return the names of the scenarios in a file, without running Node."""
    return _NAME.findall((HERE / "scenarios" / file).read_text())


SHARED = [
    name
    for path in sorted((HERE / "scenarios").glob("*.mjs"))
    if path.name != "crashes.mjs"
    for name in scenarios(path.name)
]
"""What plays on one server for all."""

CRASHES = scenarios("crashes.mjs")
"""What kills its server, and so needs one of its own."""


@dataclass
class Player:
    """One version of the client. A scenario plays once; its outcome is remembered."""

    version: str
    recordings: Path
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)
    _played: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def play(self, scenario: str, server: Server) -> dict[str, Any]:
        """Play a scenario against a server; return `{passed, details, ms}`."""
        if scenario not in self._played:
            node = self._started()
            watchdog = threading.Timer(SCENARIO_S, node.kill)
            watchdog.start()
            try:
                self._played[scenario] = self._converse(node, scenario, server)
            finally:
                watchdog.cancel()
        return self._played[scenario]

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            node = shutil.which("node")
            assert node is not None, f"Node 20 or newer is not on the path; then {SETUP}"
            modules = HERE / "node_modules" / f"client-{self.version}"
            assert modules.is_dir(), f"@ag-ui/client {self.version} is not installed: {SETUP}"
            self._process = subprocess.Popen(
                [node, "main.mjs", "--client", self.version, "--record", str(self.recordings)],
                cwd=HERE,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
        return self._process

    def _converse(
        self, node: subprocess.Popen[str], scenario: str, server: Server
    ) -> dict[str, Any]:
        _say(node, {"scenario": scenario, "url": server.url, "outbox": str(server.outbox)})
        while True:
            heard = _hear(node, scenario)
            match heard.get("machine"):
                case "kill":
                    server.kill()
                    _say(node, {})
                case "start":
                    server.start()
                    _say(node, {})
                case _:
                    return heard

    def end(self) -> None:
        """End the Node process."""
        if self._process is None:
            return
        self._process.kill()
        self._process.communicate()


def _say(node: subprocess.Popen[str], message: dict[str, Any]) -> None:
    assert node.stdin is not None
    node.stdin.write(json.dumps(message) + "\n")
    node.stdin.flush()


def _hear(node: subprocess.Popen[str], scenario: str) -> dict[str, Any]:
    assert node.stdout is not None
    line = node.stdout.readline()
    assert line, f"Node ended in {scenario}, or took longer than {SCENARIO_S:g} s"
    return json.loads(line)
