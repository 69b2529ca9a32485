"""Starting and stopping servers, each on the same processor."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.environments import FOLDER, HERE, ROOT, python_of
from tests.bench.load import Load

START_S = 60.0
STOP_S = 10.0
LOAD_S = 600.0


@dataclass(frozen=True, slots=True)
class Peer:
    """Another server that does the same work. `is_framework`: one we are compared with."""

    label: str
    environment: str
    script: str
    options: tuple[str, ...] = ()
    is_framework: bool = True


PEERS = (
    Peer("raw ASGI", "sdk", "raw.py", is_framework=False),
    Peer("ag-ui-protocol", "sdk", "sdk.py", is_framework=False),
    Peer("agent-framework-ag-ui", "agent-framework", "agent_framework_peer.py"),
    Peer("pydantic-ai", "sdk", "pydantic_ai_peer.py"),
    Peer("ag-ui-langgraph", "langgraph", "langgraph_peer.py"),
    Peer("ag-ui-langgraph, no raw", "langgraph", "langgraph_peer.py", ("--raw", "0")),
)
OURS = "agui-server"


def pinned(processor: int) -> list[str]:
    """Return the words before a command that keep it on one processor; none when there is one."""
    if shutil.which("taskset") is None or (os.cpu_count() or 1) <= 1:
        return []
    return ["taskset", "-c", str(processor)]


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(slots=True)
class Server:
    """A server that runs. `log` has what it wrote."""

    label: str
    url: str
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    def kill(self) -> None:
        """End it as a power cut would: no handler of it runs."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ask it to end, and see that it does."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()


def start_peer(peer: Peer) -> Server:
    """Start a peer in its own environment."""
    command = [str(python_of(peer.environment)), str(HERE / "peers" / peer.script), *peer.options]
    return _start(peer.label, command, "/")


def start_ours(db: Path) -> Server:
    """Start our demo on a database."""
    command = [sys.executable, "-m", "tests.bench.serve", "--db", str(db)]
    return _start(OURS, command, "/api/channels/ag-ui/agents/assistant/run")


@contextmanager
def running(server: Server) -> Generator[Server]:
    """Stop a server at the end, whatever happens."""
    try:
        yield server
    finally:
        server.stop()


def _start(label: str, command: Sequence[str], path: str) -> Server:
    port = free_port()
    log = FOLDER / f"{label.replace(' ', '-').replace(',', '')}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*pinned(0), *command, "--port", str(port)],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    server = Server(label, f"http://127.0.0.1:{port}{path}", log, process)
    try:
        _await_port(server, port)
    except BaseException:
        server.stop()
        raise
    return server


def _await_port(server: Server, port: int) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if server.process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{server.label} did not start:\n{server.log.read_text()[-2000:]}")


def start_load(server: Server, *, clients: int, runs: int, tag: str) -> subprocess.Popen[str]:
    """Start a load on the other processor."""
    return subprocess.Popen(
        [
            *pinned(1), sys.executable, "-m", "tests.bench.load", "--url", server.url,
            "--clients", str(clients), "--runs", str(runs), "--tag", tag,
            "--server-pid", str(server.pid),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def finish_load(load: subprocess.Popen[str]) -> Load:
    """Wait for a load and return what it measured."""
    said, _ = load.communicate(timeout=LOAD_S)
    if load.returncode:
        raise RuntimeError(f"the load ended with {load.returncode}")
    return Load.from_json(said)


def make_load(server: Server, *, clients: int, runs: int, tag: str) -> Load:
    """Run a load from its beginning to its end."""
    return finish_load(start_load(server, clients=clients, runs=runs, tag=tag))
