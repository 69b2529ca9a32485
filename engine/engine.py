"""The engine: the one place that wires core, store, runtime and adapters.

Use it as an async context manager:

    engine = Engine(db="agents.db", agents=[operator])
    async with engine:
        receipt = await engine.submit(session_id, command)
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.agent import Agent
from engine.core import commands as cmd
from engine.core.errors import EngineError, UnknownAgent
from engine.core.handle import Receipt
from engine.core.ports import Clock, Model
from engine.core.state import State
from engine.runtime.agents import RunnableAgent
from engine.runtime.clock import SystemClock
from engine.runtime.identifiers import new_id
from engine.runtime.reader import Reader
from engine.runtime.recovery import recover_all
from engine.runtime.schemas import conforms
from engine.runtime.sessions import Sessions
from engine.store.dialect import Synchronous
from engine.store.protocol import Companion, SessionRow, Store

MAX_THREADS = 10_000
"""Thread names whose session id is remembered, so that a known thread needs no query."""


class ModelMissing(EngineError):
    """An agent names a model that the engine was not given."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A client's own name for a conversation: unique for an owner and an agent."""

    tenant: str
    owner: str
    agent_id: str
    thread_id: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session to look at: its row, and its state with every branch of the message tree."""

    row: SessionRow
    state: State


class Engine:
    """Runs agents over durable sessions.

    `db` is the path of an SQLite file, or a :class:`~engine.store.protocol.Store`.
    `models` are named by the agents' `llm`; `demo`, the offline scripted model, is
    always there. `url` is where the engine answers, for whoever finds its database
    locked. Use it as an async context manager: entering opens the database and
    continues what was in flight; leaving stops the work and closes it.

    Raises:
        ModelMissing: an agent's `llm` is not among the models.
    """

    def __init__(
        self,
        *,
        agents: Iterable[Agent],
        db: str | Path | Store = "agents.db",
        models: Mapping[str, Model] | None = None,
        synchronous: Synchronous = "FULL",
        clock: Clock | None = None,
        url: str | None = None,
    ) -> None:
        self.agents = {agent.id: agent for agent in agents}
        self.store = _store(db, synchronous)
        self._url = url
        self._clock = clock or SystemClock()
        self._runnable = {a.id: _runnable(a, dict(models or {})) for a in self.agents.values()}
        self._threads: OrderedDict[Thread, str] = OrderedDict()
        self._stack: AsyncExitStack | None = None
        self._running: Sessions | None = None

    # ---------------------------------------------------------- life cycle

    async def __aenter__(self) -> Self:
        """Open the database, continue what was in flight, begin to wake sessions."""
        async with AsyncExitStack() as stack:
            await self.store.open()
            stack.push_async_callback(self.store.close)
            if self._url is not None:
                self.store.set_owner(self._url)
            self._running = await stack.enter_async_context(self._work())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the work (it continues at the next start) and close the database."""
        stack, self._stack = self._stack, None
        if stack is not None:
            await stack.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def _work(self) -> AsyncGenerator[Sessions]:
        failure: Exception | None = None
        async with asyncio.TaskGroup() as group:
            sessions = Sessions(
                store=self.store,
                agents=self._runnable,
                clock=self._clock,
                new_id=new_id,
                conforms=conforms,
                group=group,
            )
            background = [
                group.create_task(recover_all(sessions, self.store)),
                group.create_task(sessions.timers.run()),
            ]
            try:
                yield sessions
            except Exception as error:  # noqa: BLE001 - raised again below
                failure = error
            finally:
                self._running = None
                for task in background:
                    task.cancel()
                await sessions.stop()
        # Out here the group cannot wrap what went wrong in the caller's own block.
        if failure is not None:
            raise failure

    @property
    def is_running(self) -> bool:
        """Whether the engine was entered and not left."""
        return self._running is not None

    # -------------------------------------------------------------- writing

    async def submit(
        self,
        session_id: str,
        command: cmd.Command,
        *,
        birth: cmd.Birth | None = None,
        companions: Callable[[Receipt], Sequence[Companion]] | None = None,
    ) -> Receipt:
        """Run a command on a session; see :meth:`Sessions.submit`."""
        receipt = await self._sessions.submit(
            session_id, command, birth=birth, companions=companions
        )
        if birth is not None and receipt.before.seq == 0 and receipt.recorded:
            # Whoever chose the id of a new session has also taken its thread.
            thread = Thread(birth.tenant, birth.owner, birth.agent_id, birth.thread_id)
            self._remember(thread, session_id)
        return receipt

    async def session_of(self, thread: Thread) -> str:
        """Return the session a thread stands for; a new thread gets an id, and no log yet.

        Raises:
            UnknownAgent: there is no such agent.
        """
        if thread.agent_id not in self.agents:
            raise UnknownAgent(thread.agent_id)
        if thread not in self._threads:
            found = await self._sessions.find_thread(
                tenant=thread.tenant,
                owner=thread.owner,
                agent_id=thread.agent_id,
                thread_id=thread.thread_id,
            )
            # Two requests for one new thread meet here; the second finds the first one's id.
            if thread not in self._threads:
                self._threads[thread] = found or self._sessions.mint()
        return self._remember(thread, self._threads[thread])

    def _remember(self, thread: Thread, session_id: str) -> str:
        """Note that a thread was used last, and forget the one used least."""
        self._threads[thread] = session_id
        self._threads.move_to_end(thread)
        if len(self._threads) > MAX_THREADS:
            self._threads.popitem(last=False)
        return session_id

    # -------------------------------------------------------------- reading

    async def state(self, session_id: str) -> State | None:
        """Return a session as it is now, or `None` when nothing is recorded of it."""
        return await self._sessions.state(session_id)

    async def conversation(self, session_id: str) -> Conversation | None:
        """Return a session as it is now with every branch, or `None` when there is none."""
        state = await self._sessions.whole_tree(session_id)
        # Nothing else runs between the two: the row is that of the state.
        row = self._sessions.entry(session_id).row
        return Conversation(row, state) if state is not None and row is not None else None

    def reader(self, session_id: str, after_seq: int) -> Reader:
        """Return a reader that begins behind an event."""
        return Reader(self._sessions.entry(session_id), self.store, after_seq)

    @property
    def _sessions(self) -> Sessions:
        if self._running is None:
            message = "the engine is not running: use it as `async with engine:`"
            raise EngineError(message)
        return self._running


def _store(db: str | Path | Store, synchronous: Synchronous) -> Store:
    if not isinstance(db, str | Path):
        return db
    from engine.store.sql import SqlStore  # noqa: PLC0415 - not everybody needs SQL

    return SqlStore(db, synchronous=synchronous)


def _runnable(agent: Agent, models: Mapping[str, Model]) -> RunnableAgent:
    model = models.get(agent.llm)
    if model is None and agent.llm == "demo":
        from engine.adapters.scripted import ScriptedModel  # noqa: PLC0415 - imported when used

        model = ScriptedModel()
    if model is None:
        message = f"Agent {agent.id!r} uses llm={agent.llm!r}: give Engine(models={{...}}) one."
        raise ModelMissing(message)
    return RunnableAgent(agent.spec(), model, agent.worker, agent.functions)
