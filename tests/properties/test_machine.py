"""Random lives of a session keep every law of the protocol."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties import statistics
from tests.properties.machine import Machine


def test_any_sequence_of_commands_keeps_the_laws() -> None:
    """Whatever clients, workers, models, tools, time and crashes do, every law holds."""
    run_state_machine_as_test(Machine, settings=settings(max_examples=200, stateful_step_count=40))


@pytest.mark.nightly
def test_fifty_thousand_commands_keep_the_laws() -> None:
    """The same for a thousand lives, other ones each time; and nothing is missed in them."""
    number = statistics.some_seed()
    print(f"python -m tests.properties.statistics --seed {number}\n")  # noqa: T201
    statistics.live(number)
    print(statistics.table())  # noqa: T201
    assert not statistics.too_rare(), f"seed {number}"
