"""Runs against one AG-UI endpoint, as many at a time as there are clients.

    python -m tests.bench.load --url http://127.0.0.1:8000/… --clients 32 --runs 640

Every run posts a fresh thread and run id on a connection that is kept. The bytes of a
response are only collected while the clock runs; they are read afterwards (`stream.py`),
so that checking the text costs no run any time. Prints one :class:`Load` as JSON.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Self, cast
from urllib.parse import urlsplit

import psutil
import uvloop

from tests.bench.stream import EXPECTED, read_stream

FIRST_TEXT = b"TEXT_MESSAGE_CONTENT"
LAST_CHUNK = b"\r\n0\r\n\r\n"
GOOD = b"HTTP/1.1 200 "
RUN_TIMEOUT_S = 60.0
MAX_FAULTS = 3
"""How many different faults are reported."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of times in milliseconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: list[float]) -> Self:
        """Return them; zeros for no times."""
        if not seconds:
            return cls(0.0, 0.0)
        ordered = sorted(seconds)
        last = len(ordered) - 1
        return cls(
            *(round(1000 * ordered[min(last, int(len(ordered) * q))], 3) for q in (0.5, 0.99))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one load measured. `server_cpu_s` is `None` when no process was named.

    `finished` are the run ids whose stream showed `RUN_FINISHED`, whatever came after.
    `faults` names what was wrong with the others, and with texts that were not whole.
    """

    clients: int
    runs: int
    seconds: float
    events: int
    server_cpu_s: float | None
    first_text: Percentiles
    total: Percentiles
    finished: list[str]
    failed: int
    faults: list[str]

    @property
    def runs_per_s(self) -> float:
        """Runs that were made in a second."""
        return self.runs / self.seconds

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what this script printed."""
        fields = json.loads(text)
        for name in ("first_text", "total"):
            fields[name] = Percentiles(**fields[name])
        return cls(**fields)


@dataclass(slots=True)
class Run:
    """One run under way: its times, and what was received."""

    run_id: str
    done: asyncio.Future[None]
    received: list[bytes] = field(default_factory=list[bytes])
    began: float = 0.0
    first_text: float | None = None
    total: float | None = None
    fault: str = ""


class Connection(asyncio.Protocol):
    """A kept HTTP connection that carries one run after another."""

    def __init__(self) -> None:
        self.is_open = False
        self._run: Run | None = None
        self._tail = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport, self.is_open = cast("asyncio.Transport", transport), True

    def start(self, run: Run, request: bytes) -> None:
        """Send a request; `run.done` is set when its response is through."""
        assert self._transport is not None
        self._run, self._tail = run, b""
        run.began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Collect a piece of the response, and look for its first text and its end."""
        run = self._run
        if run is None:
            return
        if not run.received and not data.startswith(GOOD):
            run.received.append(data)
            self.close()  # its body has another shape, and how it ends is of no interest
            self._end(run)
            return
        run.received.append(data)
        if run.first_text is None and FIRST_TEXT in self._tail + data:
            run.first_text = time.perf_counter() - run.began
        # Both marks may be cut in two by a read.
        self._tail = (self._tail + data)[-len(FIRST_TEXT) :]
        if self._tail.endswith(LAST_CHUNK):
            run.total = time.perf_counter() - run.began
            self._end(run)

    def _end(self, run: Run) -> None:
        self._run = None
        if not run.done.done():
            run.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the run that its stream ended too early."""
        self.is_open = False
        if self._run is not None:
            self._run.fault = f"connection lost: {exc!r}"
            self._end(self._run)

    def close(self) -> None:
        """Close at once."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()


class Client:
    """Makes runs one after another, taken from a list that all clients share."""

    def __init__(self, host: str, port: int, path: str) -> None:
        self._host, self._port, self._path = host, port, path
        self._connection: Connection | None = None

    async def make(self, run_ids: Iterator[str]) -> list[Run]:
        """Make runs until there are none left."""
        made: list[Run] = []
        loop = asyncio.get_running_loop()
        for run_id in run_ids:
            run = Run(run_id, loop.create_future())
            made.append(run)
            try:
                connection = await self._connected()
                connection.start(run, self._request(run_id))
                await asyncio.wait_for(run.done, RUN_TIMEOUT_S)
            except (OSError, TimeoutError) as error:
                run.fault = repr(error)
                self.close()
        self.close()
        return made

    async def _connected(self) -> Connection:
        if self._connection is None or not self._connection.is_open:
            loop = asyncio.get_running_loop()
            _, self._connection = await loop.create_connection(Connection, self._host, self._port)
        return self._connection

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _request(self, run_id: str) -> bytes:
        body = json.dumps(
            {
                "threadId": f"thread-{run_id}",
                "runId": run_id,
                "protocolVersion": "1.0",
                "state": {},
                "messages": [{"id": f"m-{run_id}", "role": "user", "content": "/tokens 200"}],
                "tools": [],
                "context": [],
                "forwardedProps": {},
            }
        ).encode()
        head = (
            f"POST {self._path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            "Content-Type: application/json\r\nAccept: text/event-stream\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


async def make_runs(url: str, tag: str, runs: int, clients: int) -> tuple[list[Run], float]:
    """Make runs named `tag-0`, `tag-1`, …; return them, in no order, and the seconds they took."""
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    run_ids = (f"{tag}-{index}" for index in range(runs))
    makers = [Client(host, port, parts.path or "/") for _ in range(clients)]
    began = time.perf_counter()
    made = await asyncio.gather(*(maker.make(run_ids) for maker in makers))
    seconds = time.perf_counter() - began
    return [run for runs_of_one in made for run in runs_of_one], seconds


def cpu_of(pid: int) -> float:
    """Return the processor time a process and its children have used, in seconds."""
    process = psutil.Process(pid)
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def summary(runs: list[Run], clients: int, seconds: float, server_cpu_s: float | None) -> Load:
    """Read what every run received, and add up."""
    faults: list[str] = []
    finished: list[str] = []
    events = failed = 0
    for run in runs:
        stream = read_stream(b"".join(run.received))
        events += stream.events
        if stream.is_finished:
            finished.append(run.run_id)
        fault = run.fault or stream.fault(EXPECTED)
        if fault:
            failed += 1
            faults.append(fault)
    return Load(
        clients=clients,
        runs=len(runs),
        seconds=round(seconds, 4),
        events=events,
        server_cpu_s=server_cpu_s,
        first_text=Percentiles.of([r.first_text for r in runs if r.first_text is not None]),
        total=Percentiles.of([r.total for r in runs if r.total is not None]),
        finished=finished,
        failed=failed,
        faults=list(dict.fromkeys(faults))[:MAX_FAULTS],
    )


def main() -> None:
    """Run one load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--tag", default=f"run-{time.time_ns()}")
    parser.add_argument("--server-pid", type=int)
    chosen = parser.parse_args()
    pid: int | None = chosen.server_pid
    before = cpu_of(pid) if pid else 0.0
    runs, seconds = uvloop.run(make_runs(chosen.url, chosen.tag, chosen.runs, chosen.clients))
    # The server may be gone: it is killed on purpose once.
    used = round(cpu_of(pid) - before, 4) if pid and psutil.pid_exists(pid) else None
    sys.stdout.write(json.dumps(asdict(summary(runs, chosen.clients, seconds, used))) + "\n")


if __name__ == "__main__":
    main()
