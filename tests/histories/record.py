"""Record histories: `python -m tests.histories.record [name …]`, or all without a name.

The recorder plays each scenario on the pure core, with a fixed clock and counted ids, and
writes its log and the state at its end. A person runs it who adds a scenario, a test never:
what is recorded must be read and folded the same by every later version.
"""

import sys

from tests.histories import people, wire, work
from tests.histories.judge import walk_log
from tests.histories.played import SCENARIOS

HOMES = (people, work)
"""Where the scenarios are; importing them fills the list."""


def main() -> None:
    """Play what is named on the command line, else everything."""
    for name in sys.argv[1:] or SCENARIOS:
        session = SCENARIOS[name]()
        walk_log(session.log)
        wire.write(name, session.log, session.state.control)


if __name__ == "__main__":
    main()
