"""A thread beside the event loop: order, groups, and an end without a lost answer."""

import asyncio
from collections.abc import Sequence
from threading import Event

import pytest

from engine.store.lane import Lane


async def test_answers_come_to_who_asked() -> None:
    """Each question gets its own answer, also when many are answered at once."""
    lane = Lane[int]("double", lambda asked: [2 * n for n in asked], loop=_loop())
    lane.start()
    assert await asyncio.gather(*(lane.ask(n) for n in range(50))) == [2 * n for n in range(50)]
    await asyncio.to_thread(lane.finish)


async def test_what_waits_is_taken_together() -> None:
    """While a group is answered the next one gathers, up to `at_once`."""
    groups, go = list[int](), Event()

    def answer(asked: Sequence[int]) -> Sequence[int]:
        go.wait(timeout=60)
        groups.append(len(asked))
        return asked

    lane = Lane[int]("groups", answer, loop=_loop(), at_once=4)
    lane.start()
    asked = [lane.ask(n) for n in range(10)]
    go.set()
    assert await asyncio.gather(*asked) == list(range(10))
    assert sum(groups) == 10
    assert max(groups) <= 4
    # Whatever the first group was, the rest was taken in full ones.
    assert len(groups) <= 4
    await asyncio.to_thread(lane.finish)


async def test_a_bug_below_reaches_who_asked() -> None:
    """When answering raises, every question of the group does, and the thread goes on."""

    def answer(asked: Sequence[int]) -> Sequence[int]:
        return [1 // n for n in asked]

    lane = Lane[int]("bug", answer, loop=_loop())
    lane.start()
    with pytest.raises(ZeroDivisionError):
        await lane.ask(0)
    assert await lane.ask(1) == 1
    await asyncio.to_thread(lane.finish)


async def test_finishing_answers_what_is_queued() -> None:
    """Questions asked before `finish` are answered; both threads of a lane end."""
    lane = Lane[int]("end", list, list, loop=_loop(), at_once=1)
    lane.start()
    asked = [lane.ask(n) for n in range(20)]
    await asyncio.to_thread(lane.finish)
    assert await asyncio.gather(*asked) == list(range(20))


async def test_a_cancelled_question_is_dropped() -> None:
    """An answer nobody waits for any more disturbs nobody."""
    go = Event()

    def answer(asked: Sequence[int]) -> Sequence[int]:
        go.wait(timeout=60)
        return asked

    lane = Lane[int]("cancelled", answer, loop=_loop())
    lane.start()
    lane.ask(1).cancel()
    go.set()
    assert await lane.ask(2) == 2
    await asyncio.to_thread(lane.finish)


def test_a_loop_that_is_gone_needs_no_answer() -> None:
    """When the event loop was closed first, the thread ends all the same."""
    loop = asyncio.new_event_loop()
    lane = Lane[int]("gone", list, loop=loop)
    lane.ask(1)
    loop.close()
    lane.start()
    lane.finish()


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()
