"""What the peers share: the text, the command line, and how uvicorn runs them.

They stand in environments of their own, so they import nothing of this repository.
"""

import argparse
from typing import Any

TOKENS = 200
DELTAS = [f"word{index} " for index in range(TOKENS)]


def arguments(**options: str) -> argparse.Namespace:
    """Read `--port`, and options of one peer with their defaults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    for name, default in options.items():
        parser.add_argument(f"--{name}", default=default)
    return parser.parse_args()


def serve(app: Any, port: int) -> None:
    """Serve as our own server is served: one process, the fast loop and parser, no log."""
    import uvicorn  # noqa: PLC0415 - peers are imported by tools that have no uvicorn

    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
