"""The same thing twice over HTTP. Source: `protocol.md` section 2."""

import asyncio
from typing import Any

import pytest

from engine import Agent, DecisionRequest, interrupt
from engine.core import events as ev
from tests.agui.given import resolved, user
from tests.protocol.given import history, log_of, path_of, results, served

TOOLS = [{"name": "pick", "description": "", "parameters": {"type": "object"}}]


def careful(sent: list[str]) -> Agent:
    """An agent whose worker asks before it sends."""

    def send(to: str) -> str:
        """Send."""
        sent.append(to)
        return f"sent to {to}"

    agent = Agent("a", tools=[send])

    @agent.decide(on="tool.execute")
    def ask(request: DecisionRequest) -> Any:
        return interrupt("confirm", payload={"message": "Send?"})

    return agent


@pytest.mark.parametrize("second", [True, False], ids=["the same", "another answer"])
async def test_2_twice_an_old_interrupt_id_does_nothing_over_http(
    second: bool,  # noqa: FBT001
) -> None:
    """The tool runs once, and nothing is recorded for the second answer."""
    sent: list[str] = []
    async with served(careful(sent)) as (server, _):
        asked = await server.run(user("u1", '/tool send {"to": "ada"}\n/then /say done'))
        question = asked.interrupts[0]["id"]
        shown = await history(server)
        await server.run(*shown, resume=[resolved(question, True)])
        length = len(await log_of(server))
        again = await server.run(*shown, resume=[resolved(question, second)])
        assert again.outcome == "success"
        assert "unknown_interrupt" in again.warnings
        assert len(await log_of(server)) == length
        assert sent == ["ada"]


async def test_2_twice_an_answer_at_the_same_time_counts_once_over_http() -> None:
    """Ten pages answer at once."""
    sent: list[str] = []
    async with served(careful(sent)) as (server, _):
        asked = await server.run(user("u1", '/tool send {"to": "ada"}\n/then /say done'))
        answers = [resolved(asked.interrupts[0]["id"], True)]
        shown = await history(server)
        streams = await asyncio.gather(*(server.run(*shown, resume=answers) for _ in range(10)))
        assert {stream.turn_id for stream in streams} == {asked.turn_id}
        assert sent == ["ada"]


async def test_2_twice_a_frontends_result_again_changes_nothing_over_http() -> None:
    """Under the same id it is history, under another one it is taken out."""
    async with served() as (server, _):
        await server.run(user("u1", "/tool pick {}\n/then /say picked"), tools=TOOLS)
        shown = await history(server)
        call_id = shown[-1]["toolCalls"][0]["id"]
        for message_id in ("t1", "t1", "t2"):
            result = {"id": message_id, "role": "tool", "toolCallId": call_id, "content": "blue"}
            await server.run(*shown, result, user("u2", "/say ok"), tools=TOOLS)
        assert results(await path_of(server)) == [(call_id, "blue")]


async def test_2_twice_a_run_starts_one_turn_over_http() -> None:
    """The same request again attaches to the turn that runs or has run."""
    async with served() as (server, heard):
        streams = await asyncio.gather(
            *(server.run(user("u1", "/tokens 20 every 1"), runId="same") for _ in range(5))
        )
        streams = [*streams, await server.run(user("u1", "/tokens 20 every 1"), runId="same")]
        assert {stream.status for stream in streams} == {200}
        assert len({stream.turn_id for stream in streams}) == 1
        assert len(heard.requests) == 1
        started = [e for e in await log_of(server) if isinstance(e.body, ev.TurnStarted)]
        assert len(started) == 1
