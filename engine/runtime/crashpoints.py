"""Named places at which the process may die. Tests kill it there.

In production `reach` is one failed comparison. With `AGUI_CRASH_AT` set to a name
(optionally `name:n`, the n-th time) the process kills itself with SIGKILL there:
no handler runs, nothing is flushed, exactly as `kill -9` does it.
"""

import os
import signal

POINTS = (
    "append.before",
    "append.after",
    "publish.after",
    "effects.after",
    "effect.started",
    "effect.finished",
    "tool.before",
    "tool.after",
)
"""Every point. A test reads this list, so that a new point without a test fails."""

_name, _, _count = os.environ.get("AGUI_CRASH_AT", "").partition(":")
_left = int(_count or 1)


def reach(point: str) -> None:
    """Die here, if a test asked for it."""
    global _left  # noqa: PLW0603 - a countdown that ends with the process
    if point != _name:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
