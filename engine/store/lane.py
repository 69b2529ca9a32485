"""A thread that answers what the event loop asks, in order.

Drivers of databases block, so each connection lives in a thread of its own. A lane
takes everything that is queued at once and wakes the loop once for the whole group.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

Question = TypeVar("Question")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Job(Generic[Question]):
    question: Question
    answer: asyncio.Future[Any]


class Lane(Generic[Question]):
    """One queue and the threads that empty it.

    Each of `answers` gets a thread. It is called with everything that waits (at most
    `at_once`) and returns an answer, or an exception to raise, for each question.
    The queue has no bound of its own: who asks waits for the answer, so it is never
    longer than the number of callers.
    """

    def __init__(
        self,
        name: str,
        *answers: Callable[[Sequence[Question]], Sequence[Any]],
        loop: asyncio.AbstractEventLoop,
        at_once: int | None = None,
    ) -> None:
        self._queue: SimpleQueue[_Job[Question] | None] = SimpleQueue()
        self._loop = loop
        self._at_once = at_once
        self._threads = [
            threading.Thread(target=self._run, args=(answer,), name=name, daemon=True)
            for answer in answers
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def ask(self, question: Question) -> asyncio.Future[Any]:
        """Queue a question. Cancelling the future only drops its answer."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put(_Job(question, future))
        return future

    def finish(self) -> None:
        """Let what is queued be answered, then end the threads. Blocks."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self, answer: Callable[[Sequence[Question]], Sequence[Any]]) -> None:
        while jobs := self._take():
            try:
                answers = answer([job.question for job in jobs])
            except Exception as error:
                # A bug below must not leave callers waiting for ever.
                logger.exception("A database thread failed on %d questions.", len(jobs))
                answers = [error] * len(jobs)
            # A loop that is closed has nobody left who waits.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_deliver, jobs, answers)

    def _take(self) -> list[_Job[Question]]:
        """Return what is queued, at least one; nothing when the lane ends."""
        jobs: list[_Job[Question]] = []
        with contextlib.suppress(Empty):
            while self._at_once is None or len(jobs) < self._at_once:
                job = self._queue.get(block=not jobs)
                if job is None:
                    if jobs:
                        # Answer these first, then come back for the end.
                        self._queue.put(None)
                    return jobs
                jobs.append(job)
        return jobs


def _deliver(jobs: Sequence[_Job[Any]], answers: Sequence[Any]) -> None:
    for job, answer in zip(jobs, answers, strict=True):
        if job.answer.done():
            continue
        if isinstance(answer, BaseException):
            job.answer.set_exception(answer)
        else:
            job.answer.set_result(answer)
