"""The one write path: lock, load, handle, append, apply, publish, start effects.

Everything that changes a session goes through :meth:`Sessions.submit`: a client's
input, a worker's answer, a model's reply, the passing of time.

Source: `architecture.md` section 2.
"""

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from engine.core import commands as cmd
from engine.core import values
from engine.core.env import Env, NotInMemory
from engine.core.errors import StorageUnavailable, ThreadTaken, UnknownAgent, UnknownSession
from engine.core.handle import Outcome, Receipt, handle
from engine.core.ports import Clock
from engine.core.request import decision_request
from engine.core.state import State, new_session
from engine.core.worker import DecisionRequest
from engine.runtime.agents import RunnableAgent
from engine.runtime.crashpoints import reach
from engine.runtime.effects import Effects
from engine.runtime.entry import Entry
from engine.runtime.feed import Told
from engine.runtime.loading import load_messages, load_tree, take, used_ids
from engine.runtime.summary import new_row, updated_row, wants_snapshot
from engine.runtime.timers import Timers
from engine.store.protocol import Append, Appended, Companion, Store

logger = logging.getLogger(__name__)

MAX_CACHED = 2_000
"""Sessions kept in memory that have nothing in flight and nobody reading."""

MAX_CONFLICTS = 20
"""Tries of one command against writers on other machines, before giving up."""


class Sessions:
    """The sessions of one engine: those in memory, and the way to all others."""

    def __init__(
        self,
        *,
        store: Store,
        agents: Mapping[str, RunnableAgent],
        clock: Clock,
        new_id: Callable[[str], str],
        conforms: Callable[[Any, Any], str | None],
        group: asyncio.TaskGroup,
    ) -> None:
        self.store = store
        self._agents = agents
        self._clock = clock
        self._new_id = new_id
        self._conforms = conforms
        self._group = group
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        # Whoever still holds an entry that was evicted, such as a reader, shares it with
        # the next one who asks.
        self._alive: WeakValueDictionary[str, Entry] = WeakValueDictionary()
        self.effects = Effects(self, clock=clock, new_id=new_id, group=group)
        self.timers = Timers(self, clock=clock, store=store)

    # ------------------------------------------------------------- writing

    async def submit(
        self,
        session_id: str,
        command: cmd.Command,
        *,
        birth: cmd.Birth | None = None,
        companions: Callable[[Receipt], Sequence[Companion]] | None = None,
    ) -> Receipt:
        """Run one command and return its receipt, once its events are durable.

        A caller that is cancelled stops waiting; the command goes on. `companions`
        are rows of other tables for the same transaction, made from the receipt.

        Raises:
            Refused: nothing changed.
            StorageUnavailable: nothing was recorded.
        """
        result: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                receipt = await self.write(session_id, command, birth, companions)
            except Exception as error:  # noqa: BLE001 - handed to the caller as it is
                if not result.done():
                    result.set_exception(error)
            else:
                if not result.done():
                    result.set_result(receipt)

        self._group.create_task(run())
        return await result

    async def write(
        self,
        session_id: str,
        command: cmd.Command,
        birth: cmd.Birth | None = None,
        companions: Callable[[Receipt], Sequence[Companion]] | None = None,
    ) -> Receipt:
        """Like :meth:`submit`, for callers that nobody cancels half-way."""
        entry = self._entry(session_id)
        async with entry.lock:
            for _ in range(MAX_CONFLICTS):
                state = await self._ready(entry, command)
                outcome = await self._handle(entry, command, birth)
                rows = tuple(companions(outcome.receipt)) if companions is not None else ()
                if not outcome.events and (not rows or state.control.seq == 0):
                    return outcome.receipt
                if await self._commit(entry, outcome, rows):
                    return outcome.receipt
                if birth is not None and state.control.seq == 0:
                    await self._refuse_taken(session_id, birth)
        message = f"session {session_id}: {MAX_CONFLICTS} conflicts in a row"
        raise StorageUnavailable(message)

    async def _handle(self, entry: Entry, command: cmd.Command, birth: cmd.Birth | None) -> Outcome:
        """Run the rules, with what they ask for from the log."""
        env = await self._env(entry, birth, command)
        while True:
            try:
                return handle(entry.loaded(), command, env, birth)
            except NotInMemory as missing:
                after = missing.seq - 1
                [event] = await self.store.events(entry.session_id, after_seq=after, limit=1)
                env = env.knowing(missing.seq, values.written(event.body))

    async def _refuse_taken(self, session_id: str, birth: cmd.Birth) -> None:
        """Find out why a session could not be created: it exists, or its thread does."""
        if await self.store.load(session_id) is None:
            raise ThreadTaken(birth.thread_id)

    async def _commit(
        self, entry: Entry, outcome: Outcome, companions: Sequence[Companion] = ()
    ) -> bool:
        """Append, and only then show the world the new state. False: somebody was faster."""
        before = entry.loaded()
        row = (
            new_row(outcome.state, self._clock.now(), outcome.events)
            if entry.row is None
            else updated_row(entry.row, outcome.state, self._clock.now(), outcome.events)
        )
        snapshot = wants_snapshot(entry.snapshot_seq, outcome.events)
        append = Append(
            session=row,
            expected_seq=before.control.seq,
            events=outcome.events,
            snapshot=outcome.state.control if snapshot else None,
            companions=companions,
        )
        reach("append.before")
        try:
            appended = isinstance(await self.store.append(append), Appended)
        except BaseException:
            entry.forget()
            raise
        reach("append.after")
        if not appended:
            entry.forget()
            return False
        entry.state, entry.row = outcome.state, row
        if snapshot:
            entry.snapshot_seq = outcome.state.control.seq
        entry.feed.publish(tuple(map(Told, outcome.events, outcome.controls)))
        reach("publish.after")
        agent = self._agents.get(outcome.state.control.agent_id)
        if agent is not None:
            self.effects.sync(entry, agent)
        self.timers.note(row.session_id, row.wake_at)
        reach("effects.after")
        return True

    async def stop(self) -> None:
        """Stop all outside work, and let the commits that are under way end.

        What was stopped stays recorded as in flight: the next start continues it.
        """
        self.effects.stopping = True
        for entry in self._entries.values():
            for running in entry.work.values():
                running.cancel()
        for entry in list(self._entries.values()):
            async with entry.lock:
                entry.feed.wake()

    # ------------------------------------------------------------- loading

    async def state(self, session_id: str) -> State | None:
        """Return a session as it is now, or `None` when there is none."""
        entry = self._entry(session_id)
        async with entry.lock:
            try:
                state = await self._ready(entry, None)
            except UnknownAgent:
                state = entry.loaded()
        return state if state.control.seq else None

    async def find_thread(
        self, *, tenant: str, owner: str, agent_id: str, thread_id: str
    ) -> str | None:
        """Return the session of a client's thread, and have it in memory."""
        loaded = await self.store.load_thread(
            tenant=tenant, owner=owner, agent_id=agent_id, thread_id=thread_id
        )
        if loaded is None:
            return None
        entry = self._entry(loaded.session.session_id)
        if entry.state is None and not entry.lock.locked():
            take(entry, loaded)
        return loaded.session.session_id

    def entry(self, session_id: str) -> Entry:
        """Return a session's place in memory, for reading its feed."""
        return self._entry(session_id)

    async def _ready(self, entry: Entry, command: cmd.Command | None) -> State:
        """Return the state a command meets: loaded, recovered, with the messages it names."""
        if entry.state is None and entry.is_new:
            entry.state = new_session(entry.session_id)
        if entry.state is None:
            loaded = await self.store.load(entry.session_id)
            if loaded is None:
                entry.state = new_session(entry.session_id)
            else:
                take(entry, loaded)
        if entry.orphaned:
            await self._recover(entry)
        if isinstance(command, cmd.ClientView | cmd.AppendMessages):
            await load_messages(self.store, entry, command)
        return entry.loaded()

    async def _recover(self, entry: Entry) -> None:
        """Continue what a process that is gone left in flight."""
        outcome = await self._handle(entry, cmd.Recover(), None)
        entry.orphaned = False
        if outcome.events:
            await self._commit(entry, outcome)
        else:
            agent = self._agents[entry.loaded().control.agent_id]
            self.effects.sync(entry, agent)

    async def _env(self, entry: Entry, birth: cmd.Birth | None, command: cmd.Command) -> Env:
        control = entry.loaded().control
        agent_id = control.agent_id or (birth.agent_id if birth is not None else "")
        if not agent_id:
            raise UnknownSession(entry.session_id)
        return self._world(agent_id, await used_ids(self.store, entry, command))

    def _world(self, agent_id: str, used: set[str]) -> Env:
        agent = self._agents.get(agent_id)
        if agent is None:
            raise UnknownAgent(agent_id)
        return Env(
            now=self._clock.now(),
            agent=agent.spec,
            new_id=self._new_id,
            conforms=self._conforms,
            jitter=random.random,
            was_used=used.__contains__,
            recorded=_not_in_memory,
        )

    async def question(self, entry: Entry, decision_id: str) -> DecisionRequest | None:
        """Return what a worker is asked, if the decision still stands."""
        state = entry.state
        if state is None:
            return None
        world = self._world(state.control.agent_id, set())
        if world.agent.send_tree:
            await self._load_tree(entry)
            state = entry.state or state
        decision = state.decision(decision_id)
        return decision_request(state, world, decision) if decision is not None else None

    async def whole_tree(self, session_id: str) -> State | None:
        """Return a session as it is now, with every branch of its conversation."""
        state = await self.state(session_id)
        if state is None or state.tree.complete:
            return state
        await self._load_tree(self._entry(session_id))
        return await self.state(session_id)

    async def _load_tree(self, entry: Entry) -> None:
        async with entry.lock:
            if entry.state is not None:
                await load_tree(self.store, entry)

    # -------------------------------------------------------------- memory

    def _entry(self, session_id: str) -> Entry:
        entry = self._alive.get(session_id)
        if entry is None:
            entry = self._alive[session_id] = Entry(session_id)
        self._entries[session_id] = entry
        self._entries.move_to_end(session_id)
        self._evict()
        return entry

    def mint(self) -> str:
        """Return the id of a new session. Nothing is recorded of it, and nothing to load."""
        session_id = self._new_id("session")
        self._entry(session_id).is_new = True
        return session_id

    def _evict(self) -> None:
        """Forget the least used; those with work or a writer stay, as the most used."""
        for _ in range(len(self._entries) - MAX_CACHED):
            session_id, entry = self._entries.popitem(last=False)
            if not entry.is_idle:
                self._entries[session_id] = entry


def _not_in_memory(seq: int) -> Any:
    raise NotInMemory(seq)
