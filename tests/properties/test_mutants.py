"""The properties find every bug that is planted."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.properties import laws, machine
from tests.properties.judges import Stream, verified
from tests.properties.machine import Machine
from tests.properties.mutants import MUTANTS
from tests.properties.planted import Mutant
from tests.properties.steps import Step
from tests.properties.stories import STORIES, Story, tell
from tests.properties.test_streams import judge_all
from tests.properties.world import World

HUNT = settings(
    max_examples=6_000,  # most take some dozens
    stateful_step_count=40,
    phases=[Phase.generate],  # it is enough to find it
    report_multiple_bugs=False,
    database=None,
)


def _nothing(world: World, step: Step) -> None:
    """Leave it to what the machine itself asserts."""


LAWS_BY_NAME = {law.__name__: law for law in laws.LAWS} | {"machine": _nothing}
OF_THE_CORE = [mutant for mutant in MUTANTS if mutant.caught_by != "streams"]
OF_STREAMS = [mutant for mutant in MUTANTS if mutant.caught_by == "streams"]


@pytest.mark.parametrize("mutant", OF_THE_CORE, ids=lambda mutant: mutant.bug)
def test_the_machine_finds_a_bug_of_the_core(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random lives with the planted bug break the law that forbids it."""
    law = LAWS_BY_NAME[mutant.caught_by]

    def only(world: World, step: Step) -> None:
        law(world, step)

    monkeypatch.setattr(machine, "judge", only)
    mutant.plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Machine, settings=HUNT)


@pytest.mark.parametrize("mutant", OF_STREAMS, ids=lambda mutant: mutant.bug)
def test_the_judges_find_a_bug_of_the_streams(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outside judge refuses a stream of the first stories."""
    mutant.plant(monkeypatch)
    streams: list[Stream] = []

    @given(STORIES)
    @settings(HUNT, max_examples=60)
    def stories(story: Story) -> None:
        page = asyncio.run(tell(story))
        streams.extend(told.stream for told in page.told)
        judge_all(page)

    try:
        stories()
    except AssertionError:
        return
    assert any(verdict is not None for verdict in verified(streams))


def test_the_list_is_long_enough() -> None:
    """There are at least twelve, each another bug."""
    assert len({mutant.bug for mutant in MUTANTS}) == len(MUTANTS) >= 12


def test_the_documentation_lists_them() -> None:
    """`docs/testing.md` has a line for each planted bug, and no other."""
    page = Path(__file__).parents[2].joinpath("docs", "testing.md").read_text(encoding="utf-8")
    table = page.split("| planted | found by |\n| --- | --- |\n")[1].split("\n\n")[0]
    assert table.split("\n") == [f"| {each.bug} | `{each.caught_by}` |" for each in MUTANTS]
