"""A database without an engine: sessions are read and cancelled, and nothing goes on."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine import Agent, DecisionRequest, Engine
from engine.core.errors import EngineLocked, StorageUnavailable, UnknownSession
from engine.core.events import Event
from engine.offline import cancel_stored, stored
from engine.runtime.summary import SNAPSHOT_EVERY
from engine.store.codec import to_json
from engine.store.memory import MemoryStore
from engine.store.protocol import Append, Appended, Conflict
from engine.store.sql import SqlStore
from tests.databases import left_paused, left_running
from tests.runtime.given import Slow, Talk


@asynccontextmanager
async def opened(path: Path, *, read_only: bool = False) -> AsyncGenerator[SqlStore]:
    """Open a database."""
    store = SqlStore(path, read_only=read_only)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def kinds(log: list[Event]) -> list[str]:
    """Return the types of events."""
    return [event.body.type for event in log]


async def test_a_session_is_read_as_it_is_recorded(tmp_path: Path) -> None:
    """The same state as the engine's, with every branch; one that is not there is none."""
    path = tmp_path / "a.db"
    session_id, state = await left_paused(path)
    async with opened(path, read_only=True) as store:
        found = await stored(store, session_id)
        assert found is not None
        assert found.state.control == state.control
        assert list(found.state.tree.nodes()) == list(state.tree.nodes())
        assert (found.row.session_id, found.row.status) == (session_id, "interrupted")
        assert await stored(store, "nobody") is None


async def test_a_cancel_ends_what_was_in_flight(tmp_path: Path) -> None:
    """No attempt is made again: neither now nor by the engine that starts next."""
    path = tmp_path / "a.db"
    session_id = await left_running(path)
    async with opened(path) as store:
        assert await store.busy() == (session_id,)
        receipt = await cancel_stored(store, session_id)
        assert len(receipt.ended) == 1
        log = list(await store.events(session_id))
        assert kinds(log)[-2:] == ["call.voided", "turn.completed"]
        assert to_json(log[-1])["payload"]["error"]["code"] == "cancelled"
        assert await store.busy() == ()
        again = await cancel_stored(store, session_id)
        assert not again.recorded
        assert list(await store.events(session_id)) == log

    model = Slow()
    async with Engine(agents=[Agent("a", llm="slow")], db=path, models={"slow": model}) as engine:
        talk = await Talk.begin(engine)
        assert (await talk.state()).control.turns == ()
        await talk.say("again")
        await model.said.wait()
        assert len(model.requests) == 1


async def test_a_cancel_ends_a_question(tmp_path: Path) -> None:
    """Each call gets its result, and the row says that nothing is open."""
    path = tmp_path / "a.db"
    session_id, _ = await left_paused(path)
    async with opened(path) as store:
        await cancel_stored(store, session_id)
        found = await stored(store, session_id)
        assert found is not None
        assert found.row.status == "idle"
        assert found.state.control.interrupts == ()
        last = list(found.state.tree.nodes())[-1].message
        assert last.role == "tool"


async def test_a_cancel_reaches_a_branch_that_was_left_long_ago(tmp_path: Path) -> None:
    """A snapshot does not show it; its call gets a result on its own branch."""
    path = tmp_path / "a.db"
    agent = Agent("a")

    @agent.decide(on=("llm.finished",))
    def ask(request: DecisionRequest) -> Any:
        message = getattr(request.trigger, "message", None)
        if message is None or not message.tool_calls:
            return request.proposed
        return {"messages": [message], "actions": [{"type": "interrupt", "reason": "wait"}]}

    async with Engine(agents=[agent], db=path) as engine:
        talk = await Talk.begin(engine)
        await talk.say('/tool look {"what": "it"}')
        asked = (await talk.until_paused()).control.head
        await engine.submit(talk.session_id, other_branch())
        await talk.until(lambda state: [turn.parked for turn in state.control.turns] == [True])
        while len(await talk.log()) < SNAPSHOT_EVERY + 10:
            await talk.say("/say more")
            await talk.until(lambda state: [turn.parked for turn in state.control.turns] == [True])
    async with opened(path) as store:
        loaded = await store.load(talk.session_id)
        assert loaded is not None
        assert loaded.snapshot is not None
        await cancel_stored(store, talk.session_id)
        found = await stored(store, talk.session_id)
        assert found is not None
        assert [node.message.role for node in found.state.tree.children(asked)] == ["tool"]


def other_branch() -> Any:
    """Return a view of which nothing is known."""
    from engine.core import commands as cmd  # noqa: PLC0415
    from engine.core.messages import UserMessage  # noqa: PLC0415

    return cmd.ClientView(messages=(UserMessage(id="other", content="/say other"),))


async def test_what_cannot_be_cancelled_says_why(tmp_path: Path) -> None:
    """No such session, a store that is only read, a database that an engine holds."""
    path = tmp_path / "a.db"
    session_id, _ = await left_paused(path)
    async with opened(path) as store:
        with pytest.raises(UnknownSession):
            await cancel_stored(store, "nobody")
        with pytest.raises(EngineLocked):
            async with opened(path):
                raise AssertionError
    async with opened(path, read_only=True) as store:
        with pytest.raises(StorageUnavailable):
            await cancel_stored(store, session_id)


class Overtaken(MemoryStore):
    """A store in which somebody else is always faster."""

    async def append(self, append: Append) -> Appended | Conflict:
        """Refuse every change; what creates a session is none."""
        return await super().append(append) if append.expected_seq == 0 else Conflict()


async def test_a_cancel_that_comes_second_says_so() -> None:
    """Somebody else has changed the session: nothing is recorded."""
    store = Overtaken()
    async with Engine(agents=[Agent("a", llm="slow")], db=store, models={"slow": Slow()}) as engine:
        talk = await Talk.begin(engine)
        await talk.say("hello")
    await store.open()
    with pytest.raises(StorageUnavailable):
        await cancel_stored(store, talk.session_id)
