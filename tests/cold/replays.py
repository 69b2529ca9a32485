"""One random life of a session, lived on both sides at once."""

import asyncio
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from engine.core import commands as cmd
from tests.cold.lives import imagine
from tests.cold.scenes import Scene, some_agent, some_time
from tests.cold.sides import Side, Told, a_snapshot_with_every_commit


@dataclass(frozen=True, slots=True)
class Difference:
    """The first command of a life that the sides take differently, or that breaks one."""

    seed: int
    step: int
    command: cmd.Command
    warm: Told
    cold: Told

    def __str__(self) -> str:
        told = [f"replay({self.seed}, {self.step}): {self.command}"]
        for side, crash in (("in memory", self.warm.crash), ("loaded", self.cold.crash)):
            told += [] if crash is None else [f"{side}: {crash}"]
        for part in self.warm.parts_unlike(self.cold):
            told.append(f"{part} in memory: {getattr(self.warm, part)}")
            told.append(f"{part} loaded: {getattr(self.cold, part)}")
        return "\n  ".join(told)


def replay(seed: int, steps: int) -> Difference | None:
    """Live a life again, as far as this step; return where the sides part, if they do."""
    with a_snapshot_with_every_commit():
        return asyncio.run(_live(seed, steps))


def differences(seeds: Iterable[int], steps: int) -> list[Difference]:
    """Live one life for each seed."""
    found = (replay(seed, steps) for seed in seeds)
    return [difference for difference in found if difference is not None]


async def _live(seed: int, steps: int) -> Difference | None:
    chance = Random(seed)  # noqa: S311 - the same life each time
    numbers = itertools.count(1)
    spec = some_agent(chance)
    async with asyncio.TaskGroup() as group:
        warm, cold = Side(spec, group, forgets=False), Side(spec, group, forgets=True)
        await warm.open()
        await cold.open()
        told = Told()
        for step in range(1, steps + 1):
            scene = Scene(
                chance=chance,
                numbers=numbers,
                now=warm.clock.now(),
                state=warm.state,
                questions=told.questions,
            )
            command, pause = imagine(scene), some_time(chance)
            told = await warm.do(command, after=pause)
            other = await cold.do(command, after=pause)
            if told.crash is not None or told.parts_unlike(other):
                return Difference(seed, step, command, told, other)
    return None
