"""Random lives of a session keep every law of the protocol."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties.machine import Machine


def test_any_sequence_of_commands_keeps_the_laws() -> None:
    """Whatever clients, workers, models, tools, time and crashes do, every law holds."""
    run_state_machine_as_test(Machine, settings=settings(max_examples=200, stateful_step_count=40))


@pytest.mark.nightly
def test_fifty_thousand_commands_keep_the_laws() -> None:
    """The same for a thousand lives of fifty commands, other ones each time."""
    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=1_000, stateful_step_count=50, derandomize=False),
    )
