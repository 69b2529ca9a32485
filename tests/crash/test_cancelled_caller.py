"""A caller that goes away while its commit is under way."""

import asyncio
from pathlib import Path

import pytest

from engine import Agent, Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.messages import UserMessage
from engine.core.state import State
from engine.store.memory import MemoryStore
from engine.store.protocol import Append, Appended, Conflict, Store
from engine.store.sql import SqlStore

BIRTH = cmd.Birth(agent_id="assistant", owner="o", tenant="t", thread_id="thread")


class HeldStore(MemoryStore):
    """A store whose appends wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()

    async def append(self, append: Append) -> Appended | Conflict:
        """Commit, but not before the test says so."""
        self.begun.set()
        await self.let_go.wait()
        return await super().append(append)


def _message(text: str, *before: UserMessage) -> cmd.ClientView:
    new = UserMessage(id=f"u{len(before) + 1}", content=text)
    return cmd.ClientView(messages=(*before, new))


async def _settled(engine: Engine, session_id: str) -> State:
    """Follow a session until no turn of it is open."""
    state = await engine.state(session_id)
    assert state is not None
    if not state.control.turns:
        return state
    async for _ in engine.reader(session_id, state.control.seq).batches():
        state = await engine.state(session_id)
        assert state is not None
        if not state.control.turns:
            return state
    raise AssertionError(session_id)


async def test_a_cancelled_caller_does_not_stop_its_commit() -> None:
    """The caller is cancelled during the append: the commit happens, once, and all goes on."""
    store = HeldStore()
    async with Engine(db=store, agents=[Agent("assistant")]) as engine:
        caller = asyncio.create_task(engine.submit("session", _message("/say one"), birth=BIRTH))
        await store.begun.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        store.let_go.set()
        state = await _settled(engine, "session")
        before = [node.message for node in state.tree.path(state.control.head)]
        await engine.submit(
            "session",
            cmd.ClientView(messages=(*before, UserMessage(id="u2", content="/say two"))),
        )
        await _settled(engine, "session")
        log = await store.events("session")
    assert [e.seq for e in log] == list(range(1, len(log) + 1))
    assert next(e.body.message.id for e in log if isinstance(e.body, ev.MessageNew)) == "u1"
    assert sum(isinstance(e.body, ev.TurnStarted) for e in log) == 2
    assert sum(isinstance(e.body, ev.TurnCompleted) for e in log) == 2


async def test_the_next_command_waits_for_the_commit_of_a_cancelled_one() -> None:
    """A second caller of the same session meets the state after the first one's commit."""
    store = HeldStore()
    async with Engine(db=store, agents=[Agent("assistant")]) as engine:
        first = asyncio.create_task(engine.submit("session", _message("/hang"), birth=BIRTH))
        await store.begun.wait()
        second = asyncio.create_task(engine.submit("session", cmd.CancelSession()))
        first.cancel()
        store.let_go.set()
        receipt = await second
        with pytest.raises(asyncio.CancelledError):
            await first
        assert len(receipt.ended) == 1
        log = await store.events("session")
    assert [e.seq for e in log] == list(range(1, len(log) + 1))


@pytest.mark.parametrize("at_once", [1, 8])
async def test_cancelled_callers_on_a_file_leave_a_whole_log(at_once: int, tmp_path: Path) -> None:
    """Callers are cancelled at every step of their way: each input is recorded once or not."""
    store: Store = SqlStore(tmp_path / "agents.db")
    async with Engine(db=store, agents=[Agent("assistant")]) as engine:
        for steps in range(12):
            callers = [
                asyncio.create_task(
                    engine.submit(
                        f"s{steps}-{index}",
                        _message("/say one"),
                        birth=cmd.Birth(
                            agent_id="assistant",
                            owner="o",
                            tenant="t",
                            thread_id=f"{steps}-{index}",
                        ),
                    )
                )
                for index in range(at_once)
            ]
            for _ in range(steps):
                await asyncio.sleep(0)
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)
            for index in range(at_once):
                session_id = f"s{steps}-{index}"
                if await engine.state(session_id) is None:
                    continue
                await _settled(engine, session_id)
                log = await store.events(session_id)
                assert [e.seq for e in log] == list(range(1, len(log) + 1))
                assert sum(isinstance(e.body, ev.TurnStarted) for e in log) == 1
                assert sum(isinstance(e.body, ev.TurnCompleted) for e in log) == 1
                texts = [e.body.message.role for e in log if isinstance(e.body, ev.MessageNew)]
                assert texts == ["user", "assistant"]
