"""Commits are the cost that matters: how many each scenario makes (architecture.md 2)."""

from collections.abc import Sequence
from typing import Any

import pytest

from engine import Agent, DecisionRequest, Engine, Tool, interrupt
from engine.core import commands as cmd
from engine.core.interrupts import pausing
from engine.core.messages import Json, UserMessage, members
from engine.store.memory import MemoryStore

BIRTH = {"owner": "o", "tenant": "t", "thread_id": "thread"}


def send(to: str) -> str:
    """Send something."""
    return f"sent to {to}"


def _gated() -> Agent:
    agent = Agent("gated", tools=[send])

    @agent.decide(on=("tool.execute",))
    def ask_first(request: DecisionRequest) -> Any:
        return interrupt("confirm", payload={"message": "Send it?"})

    return agent


def _decided() -> Agent:
    def decide(request: DecisionRequest) -> Any:
        trigger = request.trigger
        if trigger.type == "tool.execute":
            return interrupt("confirm", payload={"message": "Send it?"})
        if trigger.type == "interrupt.resumed" and members(trigger.payload).get("approved"):
            return {"actions": [{"type": "tool.result", "result": "sent"}]}
        return request.proposed

    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    return Agent("decided", tools=[Tool("send", "Send.", schema)], worker=decide)


CASES = [
    pytest.param(
        Agent("alone"),
        "/say hello",
        [],
        2,
        id="a plain turn: the input; the reply with the turn's end",
    ),
    pytest.param(
        Agent("alone", tools=[send]),
        '/tool send {"to": "a"}',
        [],
        4,
        id="one tool: the input; the call; its result; the reply",
    ),
    pytest.param(
        Agent("alone", tools=[send]),
        '/tool send {"to": "a"}\n/tool send {"to": "b"}\n/tool send {"to": "c"}',
        [],
        6,
        id="three tools of one reply: the input; the calls; each result; the reply",
    ),
    pytest.param(
        _gated(),
        '/tool send {"to": "a"}',
        [True],
        6,
        id="a worker that gates: the input; the call; the question; the answer; "
        "the result; the reply",
    ),
    pytest.param(
        _decided(),
        '/tool send {"to": "a"}',
        [{"approved": True}],
        11,
        id="a worker that decides everything",
    ),
    pytest.param(
        Agent("alone"), "/fail 400", [], 2, id="a provider that refuses: the input; the end"
    ),
]


@pytest.mark.parametrize(("agent", "text", "answers", "commits"), CASES)
async def test_a_scenario_makes_this_many_commits(
    agent: Agent, text: str, answers: Sequence[Json], commits: int
) -> None:
    """The number of transactions over all runs of the scenario."""
    store = MemoryStore()
    async with Engine(db=store, agents=[agent]) as engine:
        birth = cmd.Birth(agent_id=agent.id, **BIRTH)
        view = cmd.ClientView(messages=(UserMessage(id="u1", content=text),))
        await engine.submit("session", view, birth=birth)
        await _settled(engine)
        for payload in answers:
            state = await engine.state("session")
            assert state is not None
            given = tuple(
                cmd.Answer(interrupt_id=i.id, payload=payload) for i in state.control.interrupts
            )
            assert given
            path = tuple(node.message for node in state.tree.path(state.control.head))
            await engine.submit("session", cmd.ClientView(messages=path, answers=given))
            await _settled(engine)
        state = await engine.state("session")
        assert state is not None
        assert not state.control.turns
    assert store.transactions == commits


async def _settled(engine: Engine) -> None:
    """Follow the session until no turn runs."""
    state = await engine.state("session")
    assert state is not None
    if not state.control.turns or pausing(state):
        return
    async for _ in engine.reader("session", state.control.seq).batches():
        state = await engine.state("session")
        assert state is not None
        if not state.control.turns or pausing(state):
            return
