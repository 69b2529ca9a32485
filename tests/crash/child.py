"""A process that gives birth to processes that die.

It imports everything once and forks for each life it is asked for, so that a life
costs a few hundredths of a second. It reads a JSON line for each,
`{directory, scenario, crash_at?}`, and answers `{"code": …}`: the exit code, or minus
the signal, as `subprocess` has it.
"""

import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from engine.adapters import scripted
from engine.runtime import crashpoints
from engine.store import sql
from tests.crash import lives

IMPORTED_ONCE = (scripted, sql)
"""What the engine imports when it is first used: here, before the first fork."""


def fork(order: dict[str, Any]) -> int:
    """Live one life in a process of its own, and return how it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.environ["AGUI_CRASH_AT"] = order.get("crash_at", "")
            # Read the variable as a process does that starts with it.
            importlib.reload(crashpoints)
            lives.live(Path(order["directory"]), order["scenario"])
            code = 0
        except BaseException:  # noqa: BLE001 - told to the parent, whatever it is
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    """Serve orders until the input ends."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps({"code": fork(json.loads(line))}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
