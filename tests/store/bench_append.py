"""How many appends a second the SQL store commits, and how soon it misses a thread.

    PYTHONPATH=. python tests/store/bench_append.py [folder]

Each append is one event of about 300 bytes with its session's row. `folder` chooses
the disk; `synchronous` is FULL unless said.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from engine.store.dialect import Synchronous
from engine.store.sql import SqlStore
from tests.store import sample

TEXT = "x" * 240
SECONDS = 2.0


async def _produce(store: SqlStore, name: str, until: float) -> int:
    session_id = f"session-{name}"
    await store.append(sample.append(sample.created(session_id), session_id=session_id))
    seq = 1
    while time.perf_counter() < until:
        body = sample.replied(f"m{seq}", f"m{seq - 1}", TEXT)
        await store.append(sample.append(body, session_id=session_id, after=seq))
        seq += 1
    return seq


async def _measure(folder: Path, producers: int, synchronous: Synchronous) -> None:
    store = SqlStore(folder / f"{producers}-{synchronous}.db", synchronous=synchronous)
    await store.open()
    start = time.perf_counter()
    counts = await asyncio.gather(
        *(_produce(store, str(index), start + SECONDS) for index in range(producers))
    )
    took = time.perf_counter() - start
    appends = sum(counts)
    sys.stdout.write(
        f"{synchronous:6} {producers:4} producers {appends / took:8.0f} appends/s "
        f"{appends / store.transactions:5.1f} a transaction\n"
    )
    await _measure_misses(store)
    await store.close()


async def _measure_misses(store: SqlStore) -> None:
    count = 2000
    start = time.perf_counter()
    for index in range(count):
        await store.load_thread(tenant="t", owner="o", agent_id="a", thread_id=f"new-{index}")
    took = time.perf_counter() - start
    sys.stdout.write(f"{'':6} load_thread, a miss {took / count * 1e6:6.0f} µs\n")


async def _main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        for synchronous in ("FULL", "NORMAL"):
            for producers in (1, 8, 32, 128):
                await _measure(Path(folder), producers, synchronous)


if __name__ == "__main__":
    asyncio.run(_main())
