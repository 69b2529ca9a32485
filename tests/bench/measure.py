"""Rounds of loads over several servers, interleaved, and the table they give."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from tests.bench.load import Load
from tests.bench.servers import OURS, PEERS, Server, make_load

RUNS = {1: 60, 32: 128}
"""Runs of one load of a framework peer, by clients: one to three seconds each."""

FAST = 4
"""How many times as many the others make, to take about as long."""

SLOW = 2
"""What langgraph's are divided by."""

FRAMEWORKS = tuple(peer.label for peer in PEERS if peer.is_framework)


@dataclass(slots=True)
class Measured:
    """All loads of one number of clients: by server, one a round."""

    clients: int
    loads: dict[str, list[Load]] = field(default_factory=dict[str, list[Load]])

    def ratio(self, label: str, to: str) -> float:
        """Return the median of the rounds' ratios in runs per second."""
        pairs = zip(self.loads[label], self.loads[to], strict=True)
        return median(one.runs_per_s / other.runs_per_s for one, other in pairs)

    def fastest_framework(self) -> str:
        """Return the framework peer that we are the least ahead of."""
        measured = [label for label in FRAMEWORKS if label in self.loads]
        return min(measured, key=lambda label: self.ratio(OURS, label))

    def faults(self) -> list[str]:
        """Say what was wrong with whose runs."""
        return [
            f"{label}, {self.clients} clients: {sum(load.failed for load in loads)} runs failed: "
            + "; ".join(dict.fromkeys(fault for load in loads for fault in load.faults))
            for label, loads in self.loads.items()
            if any(load.failed for load in loads)
        ]


def runs_of(label: str, clients: int, share: float) -> int:
    """Return how many runs one load of a server makes."""
    runs = RUNS.get(clients, 4 * clients) * share
    if label not in FRAMEWORKS:
        runs *= FAST
    elif "langgraph" in label:
        runs /= SLOW
    return max(clients, round(runs))


def measure(servers: Sequence[Server], clients: int, rounds: int, share: float = 1.0) -> Measured:
    """Load each server in turn, so that what else the machine does meets them all."""
    measured = Measured(clients)
    for server in servers:
        make_load(server, clients=clients, runs=max(clients, 8), tag=f"warm-{clients}")
    for turn in range(rounds):
        for server in servers:
            load = make_load(
                server,
                clients=clients,
                runs=runs_of(server.label, clients, share),
                tag=f"r-{clients}-{turn}",
            )
            measured.loads.setdefault(server.label, []).append(load)
            sys.stderr.write(".")
            sys.stderr.flush()
    sys.stderr.write("\n")
    return measured


def table(measured: Measured) -> list[str]:
    """Return the table of one number of clients, in Markdown."""
    fastest = measured.fastest_framework()
    one = "client" if measured.clients == 1 else "clients"
    columns = (
        f"{measured.clients} {one}",
        "runs/s",
        f"to {fastest}",
        "to ag-ui-protocol",
        "to raw ASGI",
        "server CPU a run",
        "first text, p50 and p99",
        "events a run",
    )
    lines = [f"| {' | '.join(columns)} |", "| --- |" + " ---: |" * (len(columns) - 1)]
    for label, loads in measured.loads.items():
        cells = [
            f"{median(load.runs_per_s for load in loads):,.0f}",
            *(_ratio(measured, label, to) for to in (fastest, "ag-ui-protocol", "raw ASGI")),
            _cpu(loads),
            _first_text(loads),
            f"{median(load.events / load.runs for load in loads):.0f}",
        ]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return lines


def _ratio(measured: Measured, label: str, to: str) -> str:
    return f"{measured.ratio(label, to):.2f}" if to in measured.loads else ""


def _first_text(loads: Sequence[Load]) -> str:
    p50, p99 = (median(getattr(x.first_text, q) for x in loads) for q in ("p50", "p99"))
    return f"{p50:.1f}, {p99:.1f} ms"


def _cpu(loads: Sequence[Load]) -> str:
    spent = [x.server_cpu_s / x.runs * 1000 for x in loads if x.server_cpu_s is not None]
    return f"{median(spent):.2f} ms" if spent else ""
