"""`agui demo`, which also says how durable its commits are.

    python -m tests.bench.serve --port 8000 --db agents.db

`PRAGMA synchronous` belongs to a connection: another one that asks the file gets its
own. So the server's own writer is asked, right after the store was opened.
"""

import sys

from agui_server.cli import demo
from engine.store.sql import SqlStore

SAYS = "PRAGMA synchronous of the writer:"
_NAMES = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}

_open = SqlStore.open


async def _open_and_say(self: SqlStore) -> None:
    await _open(self)
    value = await self.pragma("synchronous")
    sys.stderr.write(f"{SAYS} {value} ({_NAMES[value]})\n")
    sys.stderr.flush()


def main() -> None:
    """Serve the demo."""
    import typer  # noqa: PLC0415 - only the command needs it

    SqlStore.open = _open_and_say
    typer.run(demo)


if __name__ == "__main__":
    main()
