"""What stops a model call closes its connection: the provider sees it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine import (
    Agent,
    DecisionRequest,
    DecisionResponse,
    Engine,
    done,
    llm_call,
    tool_call,
)
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.env import MODEL_CALL
from engine.core.ports import Clock
from engine.runtime.clock import FakeClock
from engine.runtime.reader import Item, Said
from engine.store.memory import MemoryStore
from engine.store.sql import SqlStore
from tests.agui.given import Server, is_saying, serving, until, user
from tests.runtime.given import Talk
from tests.runtime.provider import Provider, Reply, text


@asynccontextmanager
async def talking(
    agent: Agent | None = None, clock: Clock | None = None
) -> AsyncGenerator[tuple[Provider, Talk]]:
    """A conversation whose model is behind a provider's HTTP."""
    async with (
        Provider() as provider,
        Engine(
            agents=[agent or Agent("a", llm="far")],
            db=MemoryStore(),
            models={"far": provider.model},
            clock=clock,
        ) as engine,
    ):
        yield provider, await Talk.begin(engine)


async def heard(talk: Talk) -> None:
    """Read until some words of the model have come."""
    words = ""
    async for batch in talk.engine.reader(talk.session_id, 0).batches():
        words += "".join(item.piece.text for item in batch if isinstance(item, Said))
        if "word2" in words:
            return


async def bodies(talk: Talk, kind: type[Any]) -> list[Any]:
    """What is recorded of one type."""
    return [event.body for event in await talk.log() if isinstance(event.body, kind)]


# ----------------------------------------------------------------- cancel


async def test_a_cancel_in_the_middle_of_a_text_closes_the_connection() -> None:
    """Nothing of the text is recorded; the head stays where it was."""
    async with talking() as (provider, talk):
        asked = await talk.say("hi")
        connection = await provider.request(1)
        await heard(talk)
        head = (await talk.state()).control.head
        receipt = await talk.do(cmd.CancelSession())
        await connection.closed()

        assert receipt.ended == (asked.turn_id,)
        assert connection.said.startswith("word0 word1 word2 ")
        assert [message.role for message in await talk.path()] == ["user"]
        assert (await talk.state()).control.head == head
        log = await talk.log()
        assert [event.body.type for event in log[receipt.before.seq :]] == [
            "call.voided",
            "turn.completed",
        ]


async def test_a_cancel_before_the_first_word_closes_the_connection() -> None:
    """The request has gone out, and no answer has begun."""
    async with talking() as (provider, talk):
        provider.will(Reply(status=None))
        await talk.say("hi")
        connection = await provider.request(1)
        await talk.do(cmd.CancelSession())
        await connection.closed()
        assert connection.said == ""


async def test_a_cancel_before_the_next_attempt_keeps_it_from_being_sent() -> None:
    """The backoff of a call that was cancelled ends in nothing."""
    clock = FakeClock()
    async with talking(clock=clock) as (provider, talk):
        provider.will(Reply([], status=503))
        await talk.say("hi")
        await talk.until(lambda state: [call.attempt for call in state.control.calls] == [2])
        await talk.do(cmd.CancelSession())
        clock.advance(timedelta(hours=1))

        provider.will(text("here"))
        await talk.say("again")
        await talk.until_idle()
        assert [connection.attempt for connection in provider.connections] == [1, 1]
        first, second = (connection.body["call_id"] for connection in provider.connections)
        assert first != second


async def test_a_reader_hears_nothing_of_a_call_after_it_was_cancelled() -> None:
    """Not what it had no time to read either; the next turn's text follows."""
    items: list[Item] = []

    async def has_said_more() -> bool:
        [live] = reader.feed.live.values()
        return "word9 " in live.parts[0].text

    async with talking() as (provider, talk):
        await talk.say("hi")
        reader = talk.engine.reader(talk.session_id, 0)
        batches = reader.batches()
        while not any(isinstance(item, Said) for item in items):
            items.extend(await anext(batches))
        await until(has_said_more)
        await talk.do(cmd.CancelSession())
        await (await provider.request(1)).closed()
        provider.will(text("here"))
        await talk.say("again")
        while sum(is_end(item) for item in items) < 2:
            items.extend(await anext(batches))

    told = [item if isinstance(item, Said) else item.event.body for item in items]
    [voided] = [index for index, item in enumerate(told) if isinstance(item, ev.CallVoided)]
    before = [item for item in told[:voided] if isinstance(item, Said)]
    after = [item for item in told[voided:] if isinstance(item, Said)]
    assert "".join(said.piece.text for said in before).startswith("word0 ")
    assert "".join(said.piece.text for said in after) == "here"
    assert {said.call_id for said in before}.isdisjoint(said.call_id for said in after)


def is_end(item: Item) -> bool:
    """Whether a turn has ended."""
    return not isinstance(item, Said) and isinstance(item.event.body, ev.TurnCompleted)


async def test_two_streams_over_http_end_with_the_cancel() -> None:
    """Both have the cancelled outcome and no text after it; the provider was left."""
    async with (
        Provider() as provider,
        serving(Agent("a", llm="far"), models={"far": provider.model}) as server,
    ):
        first = asyncio.create_task(server.run(user("u1", "hi"), runId="same"))
        await until(lambda: is_saying(server))
        second = asyncio.create_task(server.run(user("u1", "hi"), runId="same"))
        await until(lambda: has_two_readers(server))
        answer = await server.cancel()
        connection = await provider.request(1)
        await connection.closed()

        for stream in (await first, await second):
            assert answer == {"cancelled": True, "turn_ids": [stream.turn_id]}
            assert stream.types[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
            assert stream.outcome == "cancelled"
            assert stream.text.startswith("word0 ")
            assert connection.said.startswith(stream.text)
        assert len(provider.connections) == 1
        assert await server.cancel() == {"cancelled": False, "turn_ids": []}

        provider.will(text("here"))
        following = await server.run(user("u1", "hi"), user("u2", "again"))
        assert (following.text, following.outcome) == ("here", "success")


async def has_two_readers(server: Server) -> bool:
    """Whether two streams wait for more."""
    [row] = await server.engine.store.sessions(limit=1)
    return server.engine.reader(row.session_id, 0).feed.readers == 2


# ----------------------------------------------------- what else stops one


async def test_an_interrupt_from_outside_closes_the_connection() -> None:
    """The turn is paused, its partial text is dropped; the answer asks the model anew."""
    async with talking() as (provider, talk):
        asked = await talk.say("hi")
        connection = await provider.request(1)
        await heard(talk)
        await talk.do(cmd.RaiseInterrupt(reason="hold"))
        await connection.closed()

        state = await talk.state()
        assert [turn.id for turn in state.control.turns] == [asked.turn_id]
        assert state.control.calls == ()
        assert [voided.reason for voided in await bodies(talk, ev.CallVoided)] == ["interrupted"]

        provider.will(text("here"))
        await talk.answer()
        await talk.until_idle()
        again = await provider.request(2)
        assert again.messages == connection.messages
        assert [message.content for message in await talk.path()] == ["hi", "here"]


@pytest.mark.parametrize(
    ("fails", "code"),
    [pytest.param(False, None, id="done"), pytest.param(True, "worker_error", id="failed")],
)
async def test_a_worker_that_ends_the_turn_closes_the_connection(
    *, fails: bool, code: str | None
) -> None:
    """`done`, or giving up, while a model call of the turn is in flight."""
    spoken = asyncio.Event()

    async def look() -> str:
        """Never run: the worker ends the turn instead."""
        return "never"

    agent = Agent("a", llm="far", tools=[look])

    @agent.decide(on=("client.messages", "tool.execute"))
    async def decide(request: DecisionRequest) -> Any:
        if request.trigger.type == "client.messages":
            actions = (llm_call(), tool_call("look"))
            return DecisionResponse(messages=request.trigger.messages, actions=actions)
        await spoken.wait()
        if fails:
            raise ValueError
        return done("enough")

    async with talking(agent) as (provider, talk):
        await talk.say("hi")
        connection = await provider.request(1)
        await heard(talk)
        spoken.set()
        await connection.closed()

        [completed] = await bodies(talk, ev.TurnCompleted)
        assert completed.data == (None if fails else "enough")
        assert (completed.error and completed.error.code) == code
        assert len(await bodies(talk, ev.CallVoided)) == 1


async def test_a_deadline_closes_the_connection() -> None:
    """The attempt that took too long is ended, and the next one has a connection of its own."""
    clock = FakeClock()
    async with talking(clock=clock) as (provider, talk):
        await talk.say("hi")
        first = await provider.request(1)
        await heard(talk)
        clock.advance(MODEL_CALL.run)
        await first.closed()

        provider.will(text("here"))
        clock.advance(timedelta(seconds=MODEL_CALL.max_backoff_s))
        second = await provider.request(2)
        await talk.until_idle()
        assert (first.attempt, second.attempt) == (1, 2)
        assert second.body["call_id"] == first.body["call_id"]
        [errored] = await bodies(talk, ev.LlmCallErrored)
        assert errored.error.code == "deadline_exceeded"
        assert [message.content for message in await talk.path()] == ["hi", "here"]


async def test_an_engine_that_stops_closes_the_connection_and_the_next_one_asks_again(
    tmp_path: Path,
) -> None:
    """Nothing is recorded of the stop: the call is in the log as in flight, and goes on."""
    path = tmp_path / "a.db"
    async with Provider() as provider:

        def engine() -> Engine:
            return Engine(agents=[Agent("a", llm="far")], db=path, models={"far": provider.model})

        async with engine() as first:
            talk = await Talk.begin(first)
            asked = await talk.say("hi")
            connection = await provider.request(1)
            await heard(talk)
            before = await talk.log()
        await connection.closed()

        store = SqlStore(path)
        await store.open()
        assert await store.events(talk.session_id) == before
        await store.close()
        assert before[-1].body.type == "llm.call.requested"

        provider.will(text("here"))
        async with engine() as second:
            talk = await Talk.begin(second)
            await talk.until_idle()
            log = await talk.log()

        again = await provider.request(2)
        assert (again.attempt, again.body["call_id"]) == (2, connection.body["call_id"])
        assert again.messages == connection.messages
        assert [event.body.type for event in log].count("llm.call.requested") == 1
        ended = [event for event in log if isinstance(event.body, ev.TurnCompleted)]
        assert [event.turn_id for event in ended] == [asked.turn_id]


async def test_an_engine_that_stops_in_a_backoff_sends_the_attempt_once(tmp_path: Path) -> None:
    """It had not started, so nothing of it failed: the next engine sends that very attempt."""
    path, clock = tmp_path / "a.db", FakeClock()
    async with Provider() as provider:

        def engine() -> Engine:
            agent = Agent("a", llm="far")
            return Engine(agents=[agent], db=path, models={"far": provider.model}, clock=clock)

        provider.will(Reply([], status=503), text("here"))
        async with engine() as first:
            talk = await Talk.begin(first)
            await talk.say("hi")
            await talk.until(lambda state: [call.attempt for call in state.control.calls] == [2])
        async with engine() as second:
            talk = await Talk.begin(second)
            await talk.state()
            clock.advance(timedelta(seconds=MODEL_CALL.max_backoff_s))
            await talk.until_idle()
        assert [connection.attempt for connection in provider.connections] == [1, 2]
