"""Live through 50,000 commands and print what happened, as a Markdown table.

python -m tests.properties.statistics --seed 7
"""

import argparse
import secrets
import time
from datetime import UTC, datetime

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.machine import Machine
from tests.properties.tally import COMMANDS, PATHS, TALLY

LIVES, STEPS = 1_000, 50
AT_LEAST = 5
"""How often a long run must have taken each path: chance alone never falls below it."""


def live(number: int) -> None:
    """Live through many sessions; the same number gives the same ones."""

    @seed(number)
    class Seeded(Machine):
        """The machine, with chances of its own."""

    TALLY.clear()
    run_state_machine_as_test(
        Seeded,
        settings=settings(
            max_examples=LIVES,
            stateful_step_count=STEPS,
            derandomize=False,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def some_seed() -> int:
    """Return a number that nobody chose."""
    return secrets.randbits(32)


def too_rare() -> list[str]:
    """Return what happened less often than it must in a long run."""
    expected = (*(f"{name} taken" for name in COMMANDS), *PATHS)
    return [f"{each}: {TALLY[each]}" for each in expected if TALLY[each] < AT_LEAST]


def table() -> str:
    """Return what was counted: the kinds of commands, then the paths they took."""
    lines = ["| command | went through | refused |", "| --- | --- | --- |"]
    lines += [
        f"| `{name}` | {TALLY[f'{name} taken']:,} | {TALLY[f'{name} refused']:,} |"
        for name in COMMANDS
    ]
    lines += ["", "| what happened | times |", "| --- | --- |"]
    lines += [f"| {path} | {TALLY[path]:,} |" for path in PATHS]
    return "\n".join(lines)


def main() -> None:
    """Print the table of one long run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=some_seed())
    number = parser.parse_args().seed
    began = time.process_time()
    live(number)
    seconds = time.process_time() - began
    day = datetime.now(UTC).date()
    print(f"{day}, seed {number}: {LIVES * STEPS:,} moves, {seconds:.0f} s\n")  # noqa: T201
    print(table())  # noqa: T201
    for each in too_rare():
        print(f"too rare: {each}")  # noqa: T201


if __name__ == "__main__":
    main()
