"""Stopping over HTTP. Source: `protocol.md` section 7."""

import asyncio
from typing import Any

import pytest

from engine import Agent, DecisionRequest, Tool, interrupt
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import CallNotOpen
from engine.core.messages import NO_RESULT, AssistantMessage, UserMessage
from tests.agui.given import Server, Stream, is_running, is_saying, resolved, until, user
from tests.protocol.given import (
    history,
    ids,
    log_of,
    path_of,
    results,
    served,
    session_of,
    state_of,
)

TOOLS = [{"name": "pick", "description": "", "parameters": {"type": "object"}}]
STOPPED = "cancelled: the turn ended"


class Slow:
    """A tool that waits for ever, and whether it was begun and stopped."""

    def __init__(self) -> None:
        self.begun, self.stopped = asyncio.Event(), asyncio.Event()

    def agent(self) -> Agent:
        """Declare it."""

        async def wait() -> str:
            """Wait."""
            self.begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped.set()
            return "never"

        return Agent("a", tools=[wait])


def careful(tool: str = "send") -> Agent:
    """An agent whose worker asks before its tool runs."""

    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    agent = Agent("a", tools=[send])

    @agent.decide(on="tool.execute")
    def ask(request: DecisionRequest) -> Any:
        return interrupt("confirm", payload={"message": "Send?"})

    return agent


def hands_off() -> Agent:
    """An agent whose worker leaves the calls of its tool open."""
    agent = Agent("a", tools=[Tool("own", "", {"type": "object"})])

    @agent.decide(on="tool.execute")
    def leave(request: DecisionRequest) -> Any:
        return {}

    return agent


async def running(server: Server, text: str, **more: Any) -> asyncio.Task[Stream]:
    """Start a run that does not end by itself."""
    task = asyncio.create_task(server.run(user("u1", text), **more))
    await until(lambda: is_running(server))
    return task


# --------------------------------------------------------------------- step 1


async def test_7_step_1_model_calls_are_voided_over_http() -> None:
    """The provider's stream is closed while it speaks; the run ends, everything closed."""
    async with served() as (server, heard):
        run = await running(server, "/tokens 100000 every 5")
        await until(lambda: is_saying(server))
        await server.cancel()
        stream = await run
        assert stream.types[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
        await until(lambda: is_closed(heard.closed))
        assert len(await path_of(server)) == 1


async def is_closed(count: int) -> bool:
    """Whether a stream was closed."""
    return count > 0


async def test_7_step_1_tools_that_the_engine_runs_are_stopped_over_http() -> None:
    """An async one is stopped for real."""
    slow = Slow()
    async with served(slow.agent()) as (server, _):
        run = await running(server, "/tool wait {}")
        await slow.begun.wait()
        await server.cancel()
        await asyncio.wait_for(slow.stopped.wait(), timeout=10)
        assert (await run).outcome == "cancelled"


# --------------------------------------------------------------------- step 2


async def test_7_step_2_every_call_without_a_result_gets_one_over_http() -> None:
    """The next model call reads that they were cancelled; the page hears of the tool's end."""
    slow = Slow()
    async with served(slow.agent()) as (server, heard):
        run = await running(server, "/tool wait {}\n/tool pick {}", tools=TOOLS)
        await slow.begun.wait()
        await server.cancel()
        stream = await run
        shown = await history(server)
        await server.run(*shown, user("u2", "/say ok"), tools=TOOLS)
        assert [content for _, content in results(heard.last)] == [STOPPED, STOPPED]
        mine, theirs = stream.all("TOOL_CALL_START", "toolCallId")
        told = stream.all("TOOL_CALL_RESULT", "toolCallId")
        assert theirs not in told
        assert mine != theirs


async def test_7_step_2_a_worker_is_not_told_and_its_result_is_refused_over_http() -> None:
    """Whoever settles the call afterwards is told that it is not open."""
    async with served(hands_off()) as (server, _):
        run = await running(server, "/tool own {}")
        session_id = await session_of(server)
        await until(lambda: has_open_call(server))
        [call] = (await state_of(server)).control.calls
        await server.cancel()
        assert (await run).outcome == "cancelled"
        settle = cmd.SettleCall(call_id=call.id, result="late", caller="machine")
        with pytest.raises(CallNotOpen):
            await server.engine.submit(session_id, settle)
        assert results(await path_of(server)) == [(call.id, STOPPED)]


async def has_open_call(server: Server) -> bool:
    """Whether a worker has left a call open."""
    control = (await state_of(server)).control
    return [c.kind for c in control.calls] == ["worker"] and not control.decisions


# --------------------------------------------------------------------- step 4


async def test_7_step_4_queued_turns_are_dropped_over_http() -> None:
    """They have no start; the answer names only the turn that ran."""
    async with served() as (server, _):
        run = await running(server, "/hang")
        session_id = await session_of(server)
        message = UserMessage(id="q1", content="/say queued")
        receipt = await server.engine.submit(
            session_id, cmd.AppendMessages(messages=(message,), queue=True)
        )
        assert receipt.queued
        answer = await server.cancel()
        assert answer == {"cancelled": True, "turn_ids": [(await run).turn_id]}
        log = await log_of(server)
        [dropped] = [e.turn_id for e in log if isinstance(e.body, ev.TurnDropped)]
        assert dropped == receipt.turn_id
        assert sum(isinstance(e.body, ev.TurnStarted) for e in log) == 1


# --------------------------------------------------------------------- step 5


async def test_7_step_5_each_open_interrupt_ends_as_cancelled_over_http() -> None:
    """It is not offered again, and a late answer does nothing."""
    async with served(careful()) as (server, _):
        asked = await server.run(user("u1", '/tool send {"to": "ada"}'))
        [question] = asked.interrupts
        await server.cancel()
        shown = await history(server)
        again = await server.run()
        assert again.interrupts == []
        late = await server.run(*shown, resume=[resolved(question["id"], True)])
        assert late.outcome == "cancelled"
        [ended] = [e.body for e in await log_of(server) if e.body.type == RESUMED]
        assert isinstance(ended, ev.SessionInterruptResumed)
        assert (ended.status, ended.payload) == ("cancelled", {"status": "cancelled"})


RESUMED = "session.interrupt_resumed"

# --------------------------------------------------------------------- step 6


async def test_7_step_6_every_open_turn_completes_as_cancelled_over_http() -> None:
    """The one that is parked and the one that runs; each result on its own branch."""
    async with served(careful()) as (server, _):
        first = await server.run(user("u1", '/tool send {"to": "ada"}'))
        left = await history(server)
        run = asyncio.create_task(server.run(user("edit", "/hang")))
        await until(lambda: is_running(server))
        answer = await server.cancel()
        second = await run
        assert sorted(answer["turn_ids"]) == sorted([first.turn_id or "", second.turn_id or ""])
        assert second.outcome == "cancelled"
        assert ids(await path_of(server)) == ["edit"]
        state = await state_of(server)
        [below] = state.tree.children(left[-1]["id"])
        assert results([below.message])[0][1] == STOPPED


# ------------------------------------------------------------------- afterwards


async def test_7_the_session_stays_usable_over_http() -> None:
    """The next message is a new turn, and the model is sent something valid."""
    async with served(careful()) as (server, heard):
        asked = await server.run(user("u1", '/tool send {"to": "ada"}'))
        shown = await history(server)
        await server.cancel()
        stream = await server.run(*shown, user("u2", "/say free"))
        assert stream.text == "free"
        assert stream.turn_id != asked.turn_id
        [reply] = [m for m in heard.last if isinstance(m, AssistantMessage)]
        assert [i for i, _ in results(heard.last)] == [call.id for call in reply.tool_calls]
        assert NO_RESULT not in [content for _, content in results(heard.last)]


@pytest.mark.parametrize("side", ["client", "machine"])
async def test_7_a_cancel_may_come_from_either_side_over_http(side: str) -> None:
    """The page's own address, and the backend's."""
    async with served() as (server, _):
        run = await running(server, "/hang")
        address = f"/api/{side}/sessions/{await session_of(server)}/cancel"
        answer = (await server.client.post(address)).json()
        stream = await run
        assert answer == {"cancelled": True, "turn_ids": [stream.turn_id]}
        assert stream.outcome == "cancelled"


async def test_7_nothing_open_is_no_event_over_http() -> None:
    """The answer says so, and the log is as long as it was."""
    async with served() as (server, _):
        await server.run(user("u1", "/say hi"))
        length = len(await log_of(server))
        assert await server.cancel() == {"cancelled": False, "turn_ids": []}
        assert len(await log_of(server)) == length


async def test_7_twice_is_once_over_http() -> None:
    """At the same time and one after the other."""
    async with served() as (server, _):
        run = await running(server, "/hang")
        answers = await asyncio.gather(*(server.cancel() for _ in range(5)))
        assert sorted(answer["cancelled"] for answer in answers) == [False] * 4 + [True]
        assert (await run).outcome == "cancelled"
        assert await server.cancel() == {"cancelled": False, "turn_ids": []}
