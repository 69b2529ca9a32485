"""Where our server's time goes, by layer and by function.

    python -m tests.bench.profile [--clients 32] [--seconds 10]

A sampling profiler watches the server from outside while a load runs. Each sample is
counted for the innermost function of the stack that belongs to a layer of ours or of the
HTTP stack: what the standard library does, it does for its caller. Time in C (the event
loop, sockets, SQLite) is counted for the Python function that called it.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.bench.environments import FOLDER, ROOT, python_of
from tests.bench.servers import finish_load, make_load, running, start_load, start_ours

SAMPLES_A_SECOND = 100
FUNCTIONS = 30
"""How many functions are listed."""

LAYERS = (
    # The writer and the readers of the database spend their time in SQLite.
    ("SQLite (its threads)", re.compile(r"engine/store/(writer|reader|lane)\.py")),
    ("model (scripted)", re.compile(r"engine/adapters/")),
    ("engine.core", re.compile(r"engine/core/")),
    ("engine.store (encoding)", re.compile(r"engine/store/")),
    ("engine.runtime", re.compile(r"engine/(runtime/|engine\.py|agent\.py)")),
    ("agui_server", re.compile(r"agui_server/")),
    ("ag-ui-protocol", re.compile(r"ag_ui/")),
    ("uvicorn, starlette, sse-starlette", re.compile(r"(uvicorn|starlette|sse_starlette|anyio)/")),
    ("event loop", re.compile(r"asyncio/runners\.py")),
)
"""In this order; `asyncio/runners.py` is below every callback, so it ends each search."""

WAITS = frozenset({"Lane._take (engine/store/lane.py)", "_worker (concurrent/futures/thread.py)"})
"""Threads that wait for work; the profiler takes them for busy."""

_OTHER = "other"
_FRAME = re.compile(r"^(?P<function>.*) \((?P<file>[^:)]+)(:\d+)?\)$")


def layer_of(stack: Sequence[str]) -> tuple[str, str]:
    """Return a stack's layer, and the function of that layer that was the innermost."""
    for frame in reversed(stack):
        found = _FRAME.match(frame)
        if found is None:
            continue
        for layer, files in LAYERS:
            if files.search(found["file"]):
                return layer, f"{found['function']} ({found['file']})"
    return _OTHER, re.sub(r":\d+\)$", ")", stack[-1])


def read_samples(text: str) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Add up collapsed stacks, `frame;frame;… count` a line: by layer, and by function."""
    layers: Counter[str] = Counter()
    functions: Counter[tuple[str, str]] = Counter()
    for line in text.splitlines():
        frames, _, count = line.rpartition(" ")
        layer, function = layer_of(frames.split(";"))
        if function in WAITS:
            continue
        layers[layer] += int(count)
        functions[layer, function] += int(count)
    return layers, functions


def record(clients: int, seconds: int) -> tuple[str, float]:
    """Run a load under the profiler; return the collapsed stacks, and the runs a second."""
    profiler = python_of("profile").with_name("py-spy")
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        output = Path(folder) / "stacks.txt"
        with running(start_ours(Path(folder) / "profile.db")) as server:
            warm = make_load(server, clients=clients, runs=300, tag="warm")
            load = start_load(
                server, clients=clients, runs=int(warm.runs_per_s * (seconds + 4)), tag="profiled"
            )
            subprocess.run(
                [profiler, "record", "--pid", str(server.pid), "--duration", str(seconds),
                 "--rate", str(SAMPLES_A_SECOND), "--format", "raw", "--output", output],
                cwd=ROOT,
                check=True,
                capture_output=True,
            )  # fmt: skip
            runs_per_s = finish_load(load).runs_per_s
        return output.read_text(), runs_per_s


def main() -> None:
    """Profile, and print both lists."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=10)
    chosen = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    text, runs_per_s = record(chosen.clients, chosen.seconds)
    layers, functions = read_samples(text)
    total = layers.total()
    lines = [
        f"{chosen.clients} clients, {runs_per_s:.0f} runs/s while watched, {total} samples",
        "",
        "| layer | share |",
        "| --- | ---: |",
        *(f"| {layer} | {count / total:.1%} |" for layer, count in layers.most_common()),
        "",
        "| function | layer | share |",
        "| --- | --- | ---: |",
        *(
            f"| {function} | {layer} | {count / total:.1%} |"
            for (layer, function), count in functions.most_common(FUNCTIONS)
        ),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
