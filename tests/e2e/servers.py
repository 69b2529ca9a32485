"""Real servers for tests: one process each, on a free port, killed and started again at will.

    with serving(folder) as server:          # the demo agents and the test agents
        httpx.post(server.run_url("mailer"), json=…)
        server.kill()                        # SIGKILL: no time to say goodbye
        server.start()                       # the same port, the same database

What a server logs goes to a file; `report()` says what is in it, for a test that fails.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]

TEST_APP = (sys.executable, "-m", "tests.e2e.app")
"""The demo's agents and the test agents of `app.py`."""

DEMO = (str(Path(sys.executable).with_name("agui")), "demo")
"""What a person starts."""

START_S = 20.0
"""Longest wait for a start: a loaded machine imports slowly."""

STOP_S = 15.0
"""Longest wait for the end of a process that was told to stop."""

_LOG_TAIL = 4_000


@dataclass
class Server:
    """One server process, and the files it leaves behind when it is killed."""

    command: Sequence[str]
    folder: Path
    port: int
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def db(self) -> Path:
        """Its database."""
        return self.folder / "server.db"

    @property
    def outbox(self) -> Path:
        """Gets a line for each email sent."""
        return self.folder / "server.outbox"

    @property
    def log(self) -> Path:
        """What all its processes wrote."""
        return self.folder / "server.log"

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def run_url(self, agent_id: str) -> str:
        """Return where an agent is run."""
        return f"{self.url}/api/channels/ag-ui/agents/{agent_id}/run"

    def sent(self) -> list[str]:
        """Return the outbox's lines."""
        return self.outbox.read_text().splitlines() if self.outbox.exists() else []

    # ---------------------------------------------------------- life cycle

    def start(self) -> None:
        """Start the process; return once it answers.

        Raises:
            AssertionError: it ended, or does not answer in time; says what it logged.
        """
        assert self._process is None, "it runs already"
        options = ("--port", str(self.port), "--db", str(self.db), "--outbox", str(self.outbox))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.command, *options],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        self._await_life(self._process)

    def _await_life(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_S
        with httpx.Client(base_url=self.url, timeout=1.0, trust_env=False) as client:
            while time.monotonic() < deadline:
                assert process.poll() is None, (
                    f"it ended with {process.returncode}. {self.report()}"
                )
                try:
                    if client.get("/health/live").is_success:
                        return
                except httpx.TransportError:
                    pass  # nobody listens yet
                time.sleep(0.02)
        self.kill()
        raise AssertionError(f"no answer in {START_S:g} s. {self.report()}")

    def kill(self) -> None:
        """End the process as a power cut would: nothing of its own runs any more."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_S)

    def stop(self) -> int | None:
        """Tell the process to stop (SIGTERM); return its exit status, `None` if none ran.

        Raises:
            AssertionError: it does not end in time; it is killed then.
        """
        process = self._process
        if process is None:
            return None
        process.terminate()
        try:
            status = process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"SIGTERM did not end it in {STOP_S:g} s. {self.report()}"
            ) from None
        self._process = None
        return status

    # ------------------------------------------------------------- reading

    def log_text(self) -> str:
        """Return what all its processes logged."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def report(self) -> str:
        """Say where it answered and what it logged last."""
        return f"Server {self.url} logged:\n{self.log_text()[-_LOG_TAIL:] or '(nothing)'}"


def free_port() -> int:
    """Return a port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(folder: Path, command: Sequence[str] = TEST_APP) -> Generator[Server, None, None]:
    """Start a server with its files in a folder; end it, however the test ends.

    The log is printed at the end: pytest shows it for tests that fail.
    """
    server = Server(command, folder, free_port())
    server.start()
    try:
        yield server
    finally:
        server.kill()
        sys.stderr.write(server.report())
