"""A reader: one place in a session's events and live text, and what comes next there."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from engine.core import events as ev
from engine.core.messages import ReasoningMessage
from engine.runtime.entry import Entry
from engine.runtime.feed import Feed, Told
from engine.runtime.live import Cursor, LiveText, Piece
from engine.store.protocol import Store

BATCH = 500
"""Events read from the store at once by a reader that fell behind."""


@dataclass(frozen=True, slots=True)
class Said:
    """More of a model's reply that is not recorded yet."""

    call_id: str
    turn_id: str | None
    message_id: str
    piece: Piece


Item: TypeAlias = Told | Said


@dataclass(slots=True)
class _Heard:
    live: LiveText
    turn_id: str | None
    cursor: Cursor


class Reader:
    """Follows one session: each event once, in order, and the live text between them.

    What a call said stands before the event that ends it, and is never repeated.
    """

    def __init__(self, entry: Entry, store: Store, after_seq: int) -> None:
        self.seq = after_seq
        self._entry = entry
        self._store = store
        self._heard: dict[str, _Heard] = {}
        self._stopped = False

    def stop(self) -> None:
        """Yield nothing more."""
        self._stopped = True
        self._entry.feed.wake()

    @property
    def feed(self) -> Feed:
        """What this reader waits for."""
        return self._entry.feed

    def join(self, call_id: str, attempt: int, turn_id: str | None) -> list[ReasoningMessage]:
        """Listen to a call that was requested before this reader came.

        Its text will come from the beginning. Its thoughts so far are returned, and only
        the rest of them will come.
        """
        heard = self._hear(call_id, attempt, turn_id)
        if heard is None:
            return []
        heard.cursor.given = {
            index: len(part.pieces)
            for index, part in enumerate(heard.live.parts)
            if part.kind == "reasoning"
        }
        return list(heard.live.reasoning())

    async def batches(self) -> AsyncIterator[list[Item]]:
        """Yield what is new, whenever something is: a commit's events, or more text.

        Ends only after :meth:`stop`.
        """
        feed = self._entry.feed
        while not self._stopped:
            version = feed.live_version
            commits = feed.recent(self.seq)
            if commits is None:
                commits = await self._stored()
            for commit in commits:
                yield list(self._told(commit))
            if more := list(self._rest()):
                yield more
            elif not commits:
                await feed.wait(seq=self.seq, live_version=version)

    async def _stored(self) -> list[Sequence[Told]]:
        """Read on from the store. The events of one commit carry one moment."""
        events = await self._store.events(self._entry.session_id, after_seq=self.seq, limit=BATCH)
        commits = groupby(events, lambda event: event.occurred_at)
        return [tuple(Told(event, None) for event in commit) for _, commit in commits]

    def _told(self, commit: Sequence[Told]) -> Iterator[Item]:
        for told in commit:
            if told.event.seq <= self.seq:
                continue
            yield from self._before(told.event)
            yield told
            self.seq = told.event.seq
            self._after(told.event)

    def _rest(self) -> Iterator[Item]:
        for heard in self._heard.values():
            yield from _said(heard)

    def _before(self, event: ev.Event) -> Iterator[Item]:
        """A reply is heard to its end before the event that records it."""
        match event.body:
            case ev.LlmCallCompleted(call_id=call_id):
                heard = self._heard.pop(call_id, None)
                if heard is not None:
                    yield from _said(heard)
            case ev.LlmCallErrored(call_id=call_id) | ev.CallVoided(call_id=call_id):
                self._heard.pop(call_id, None)
            case _:
                return

    def _after(self, event: ev.Event) -> None:
        match event.body:
            case ev.LlmCallRequested(call_id=call_id, attempt=attempt):
                self._hear(call_id, attempt, event.turn_id)
            case ev.LlmCallErrored(call_id=call_id, retry=retry) if retry is not None:
                self._hear(call_id, retry.attempt, event.turn_id)
            case _:
                return

    def _hear(self, call_id: str, attempt: int, turn_id: str | None) -> _Heard | None:
        live = self._entry.feed.live.get((call_id, attempt))
        if live is None:
            return None
        self._heard[call_id] = _Heard(live, turn_id, Cursor())
        return self._heard[call_id]


def _said(heard: _Heard) -> Iterator[Item]:
    for piece in heard.live.read(heard.cursor):
        yield Said(heard.live.call_id, heard.turn_id, heard.live.message_id, piece)
