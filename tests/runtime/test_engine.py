"""The engine as a whole: commits, effects, time, restarts."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine import Agent, DecisionRequest, Engine, EngineError, interrupt
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.calls import OUTCOME_UNKNOWN
from engine.core.env import MODEL_CALL
from engine.core.errors import EngineLocked, SessionInterrupted, ThreadTaken, UnknownSession
from engine.core.messages import AssistantMessage, ToolMessage, UserMessage
from engine.engine import ModelMissing
from engine.runtime import sessions as runtime_sessions
from engine.runtime.clock import FakeClock
from engine.runtime.feed import Told
from engine.store.memory import MemoryStore
from engine.store.sql import SqlStore
from tests.runtime.given import THREAD, Slow, Talk


def engine(*tools: Any, db: Any = None, **more: Any) -> Engine:
    """An engine with one agent, `a`."""
    return Engine(agents=[Agent("a", tools=tools)], db=db or MemoryStore(), **more)


async def test_a_turn_runs_to_its_end_with_nobody_reading() -> None:
    """A reader is not what drives a turn."""
    async with engine() as running:
        talk = await Talk.begin(running)
        await talk.say("/say hello")
        await talk.until_idle()
        [_, reply] = await talk.path()
        assert isinstance(reply, AssistantMessage)
        assert reply.content == "hello"


async def test_tools_of_one_reply_run_side_by_side() -> None:
    """Two tools that wait for each other both end."""
    both = asyncio.Barrier(2)

    async def meet(name: str) -> str:
        """Wait for the other one."""
        await both.wait()
        return name

    async with engine(meet) as running:
        talk = await Talk.begin(running)
        await talk.say('/tool meet {"name": "x"}\n/tool meet {"name": "y"}\n/then /say met')
        await talk.until_idle()
        path = await talk.path()
        results = [str(m.content) for m in path if isinstance(m, ToolMessage)]
        assert sorted(results) == ["x", "y"]


async def test_a_cancel_closes_the_models_stream() -> None:
    """For real: the generator ends, and with it its connection."""
    model = Slow()
    async with Engine(
        agents=[Agent("a", llm="slow")], db=MemoryStore(), models={"slow": model}
    ) as running:
        talk = await Talk.begin(running)
        await talk.say("hi")
        await model.said.wait()
        receipt = await talk.do(cmd.CancelSession())
        await model.closed.wait()
        assert len(receipt.ended) == 1


async def test_a_cancel_stops_an_async_tool() -> None:
    """Its task is cancelled; its result, had it come, would be refused."""
    started, stopped = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    async with engine(wait) as running:
        talk = await Talk.begin(running)
        await talk.say("/tool wait {}")
        await started.wait()
        await talk.do(cmd.CancelSession())
        await stopped.wait()
        [result] = [m for m in await talk.path() if isinstance(m, ToolMessage)]
        assert result.content == "cancelled: the turn ended"


async def test_an_interrupt_from_outside_closes_the_models_stream() -> None:
    """The partial text is dropped; the answer sends the model again."""
    model = Slow()
    async with Engine(
        agents=[Agent("a", llm="slow")], db=MemoryStore(), models={"slow": model}
    ) as running:
        talk = await Talk.begin(running)
        await talk.say("hi")
        await model.said.wait()
        await talk.do(cmd.RaiseInterrupt(reason="hold"))
        await model.closed.wait()
        with pytest.raises(SessionInterrupted):
            await talk.say("more")
        model.said.clear()
        await talk.answer()
        await model.said.wait()
        assert len(model.requests) == 2


async def test_a_caller_that_goes_away_does_not_take_its_command_along() -> None:
    """Cancelled while the append is under way: the commit happens, once."""
    async with engine() as running:
        talk = await Talk.begin(running)
        caller = asyncio.create_task(talk.say("/say hello"))
        entry = running.reader(talk.session_id, 0)._entry  # pyright: ignore[reportPrivateUsage]
        while not entry.lock.locked():  # noqa: ASYNC110 - a lock has no event for being taken
            await asyncio.sleep(0)
        caller.cancel()
        await asyncio.wait([caller])
        await talk.until(lambda s: s.control.seq > 0 and not s.control.turns)
        assert len(await talk.path()) == 2


async def test_an_overdue_model_call_is_tried_again() -> None:
    """The engine's own clock ends an attempt that takes too long."""
    clock, model = FakeClock(), Slow()
    async with Engine(
        agents=[Agent("a", llm="slow")],
        db=MemoryStore(),
        models={"slow": model},
        clock=clock,
    ) as running:
        talk = await Talk.begin(running)
        await talk.say("hi")
        await model.said.wait()
        model.said.clear()
        for _ in range(int(MODEL_CALL.run / timedelta(seconds=10)) + 30):
            clock.advance(timedelta(seconds=10))
            for _ in range(20):
                await asyncio.sleep(0)
        await model.said.wait()
        assert [request.attempt for request in model.requests][:2] == [1, 2]
        await talk.do(cmd.CancelSession())


# --------------------------------------------------------------- restarts


def gated(sent: list[str]) -> Agent:
    """An agent whose worker asks before its function tool runs."""

    def send(to: str) -> str:
        """Send."""
        sent.append(to)
        return f"sent to {to}"

    agent = Agent("a", tools=[send])

    @agent.decide(on="tool.execute")
    def ask(request: DecisionRequest) -> Any:
        return interrupt("confirm", payload={"message": "Send?"})

    return agent


async def test_a_pause_survives_a_restart_and_forty_days(tmp_path: Path) -> None:
    """Case 17b: the held call has not timed out; the same turn goes on."""
    sent: list[str] = []
    clock = FakeClock()
    path = tmp_path / "a.db"
    async with Engine(agents=[gated(sent)], db=path, clock=clock) as first:
        talk = await Talk.begin(first)
        await talk.say('/tool send {"to": "ada"}\n/then /say done')
        await talk.until_paused()

    clock.advance(timedelta(days=40))
    async with Engine(agents=[gated(sent)], db=path, clock=clock) as second:
        talk = await Talk.begin(second)
        await talk.answer({"approved": True})
        await talk.until_idle()
        log = await talk.log()

    assert sent == ["ada"]
    assert sum(isinstance(e.body, ev.TurnStarted) for e in log) == 1
    assert sum(isinstance(e.body, ev.TurnCompleted) for e in log) == 1
    assert len({e.turn_id for e in log[1:]}) == 1


async def test_a_question_expires_by_itself(tmp_path: Path) -> None:
    """By the engine's own clock, also when it was down at that time."""
    clock, path = FakeClock(), tmp_path / "a.db"
    soon = (clock.now() + timedelta(hours=1)).isoformat()

    def agent() -> Agent:
        asking = Agent("a", tools=[])

        @asking.decide(on="client.messages")
        def ask(request: DecisionRequest) -> Any:
            return interrupt("confirm", payload={"expiresAt": soon})

        return asking

    async with Engine(agents=[agent()], db=path, clock=clock) as first:
        talk = await Talk.begin(first)
        await talk.say("/say done")
        await talk.until_paused()
    clock.advance(timedelta(hours=2))
    async with Engine(agents=[agent()], db=path, clock=clock) as second:
        talk = await Talk.begin(second)
        await talk.until_idle()
        log = await talk.log()
    [resumed] = [e.body for e in log if isinstance(e.body, ev.SessionInterruptResumed)]
    assert resumed.status == "expired"


async def test_a_stop_in_the_middle_goes_on_after_the_start(tmp_path: Path) -> None:
    """Leaving the engine is no cancel: the model is sent again, the turn is the same."""
    path, model = tmp_path / "a.db", Slow()
    async with Engine(agents=[Agent("a", llm="m")], db=path, models={"m": model}) as first:
        talk = await Talk.begin(first)
        receipt = await talk.say("hi")
        await model.said.wait()
    assert model.closed.is_set()

    again = Slow()
    async with Engine(agents=[Agent("a", llm="m")], db=path, models={"m": again}) as second:
        await again.said.wait()
        state = await (await Talk.begin(second)).state()
        assert [turn.id for turn in state.control.turns] == [receipt.turn_id]
        assert again.requests[0].attempt == 2


async def test_a_tool_that_ran_is_not_run_again_after_a_restart(tmp_path: Path) -> None:
    """Its outcome is unknown, and the model hears it."""
    path = tmp_path / "a.db"
    runs: list[str] = []
    started = asyncio.Event()

    async def charge() -> str:
        """Charge a card."""
        runs.append("charged")
        started.set()
        await asyncio.Event().wait()
        return "never"

    async with engine(charge, db=path) as first:
        await (await Talk.begin(first)).say("/tool charge {}\n/then /say so be it")
        await started.wait()

    async with engine(charge, db=path) as second:
        talk = await Talk.begin(second)
        await talk.until_idle()
        [result] = [m for m in await talk.path() if isinstance(m, ToolMessage)]
    assert result.content == OUTCOME_UNKNOWN
    assert runs == ["charged"]


async def test_a_second_engine_on_the_file_ends_with_a_sentence(tmp_path: Path) -> None:
    """Case 41: it names the first one's process and address."""
    path = tmp_path / "a.db"
    async with engine(db=path, url="http://127.0.0.1:1"):
        with pytest.raises(EngineLocked) as refused:
            async with engine(db=path):
                pass
        assert "http://127.0.0.1:1" in str(refused.value)


async def test_a_cold_session_is_loaded_from_its_snapshot(tmp_path: Path) -> None:
    """After many turns a restart reads what is open, not the log; and goes on from there."""
    path = tmp_path / "a.db"
    turns = 45
    async with engine(db=path) as first:
        talk = await Talk.begin(first)
        for _ in range(turns):
            await talk.say("/say ok")
            await talk.until_idle()
        state = await talk.state()

    store = SqlStore(path)
    async with engine(db=store) as second:
        talk = await Talk.begin(second)
        loaded = await store.load(talk.session_id)
        assert loaded is not None
        assert loaded.snapshot is not None
        assert len(loaded.events) < len(await talk.log()) / 2
        again = await talk.state()
        assert again.control == state.control
        assert [n.message for n in again.tree.path(again.control.head)] == [
            n.message for n in state.tree.path(state.control.head)
        ]
        await talk.say("/say more")
        await talk.until_idle()


async def test_a_branch_that_is_not_in_memory_is_found(tmp_path: Path) -> None:
    """Only the active path is loaded; a view of another branch loads what it names."""
    path = tmp_path / "a.db"
    async with engine(db=path) as first:
        talk = await Talk.begin(first)
        await talk.say("/say one")
        await talk.until_idle()
        old = await talk.path()
        await talk.do(cmd.ClientView(messages=(UserMessage(id="edit", content="/say two"),)))
        await talk.until_idle()
        for _ in range(45):
            await talk.say("/say ok")
            await talk.until_idle()

    async with engine(db=path) as second:
        talk = await Talk.begin(second)
        assert old[0].id not in (await talk.state()).tree
        await talk.do(cmd.ClientView(messages=tuple(old)))
        assert await talk.path() == old


# ----------------------------------------------------------------- memory


async def test_sessions_that_rest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded; a forgotten session is loaded again when it is asked for."""
    monkeypatch.setattr(runtime_sessions, "MAX_CACHED", 3)
    async with engine() as running:
        first = await Talk.begin(running)
        await first.say("/say x")
        await first.until_idle()
        for index in range(10):
            talk = Talk(running, f"other{index}", f"thread{index}")
            await talk.say("/say y")
            await talk.until_idle()
        held = running._sessions._entries  # pyright: ignore[reportPrivateUsage]
        assert len(held) <= 3
        assert first.session_id not in held
        assert len(await first.path()) == 2


async def test_a_reader_of_a_forgotten_session_still_hears(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It shares the session's place with whoever asks next."""
    monkeypatch.setattr(runtime_sessions, "MAX_CACHED", 1)
    async with engine() as running:
        talk = await Talk.begin(running)
        await talk.say("/say x")
        await talk.until_idle()
        reader = running.reader(talk.session_id, (await talk.state()).control.seq)
        await Talk(running, "other", "thread").say("/say y")
        await talk.say("/say z")
        batch = await anext(reader.batches())
        assert isinstance(batch[0], Told)


# ----------------------------------------------------------------- misuse


async def test_a_thread_is_one_session() -> None:
    """A second session for it is refused; nothing of it is recorded."""
    async with engine() as running:
        talk = await Talk.begin(running)
        await talk.say("/say x")
        with pytest.raises(ThreadTaken):
            await Talk(running, "other").say("/say y")
        assert await running.state("other") is None


async def test_an_agent_needs_its_model() -> None:
    """Said when the engine is built, not when the first person writes."""
    with pytest.raises(ModelMissing, match="llm='gpt'"):
        Engine(agents=[Agent("a", llm="gpt")], db=MemoryStore())


async def test_an_engine_that_does_not_run_says_so() -> None:
    """It must be entered first."""
    with pytest.raises(EngineError, match="async with engine"):
        await engine().session_of(THREAD)


async def test_an_error_in_the_callers_block_is_the_callers() -> None:
    """Not wrapped into a group of the engine's own."""
    with pytest.raises(ZeroDivisionError):
        async with engine():
            raise ZeroDivisionError


async def test_a_session_that_does_not_exist_is_not_changed() -> None:
    """404, and nothing is made."""
    async with engine() as running:
        with pytest.raises(UnknownSession):
            await running.submit("nobody", cmd.CancelSession())
        assert await running.state("nobody") is None
