"""Databases for tests, as an engine that has ended leaves them."""

import asyncio
from pathlib import Path

from engine import Agent, Engine
from engine.core import commands as cmd
from engine.core.messages import UserMessage
from engine.core.state import State
from engine.engine import Thread
from tests.api.given import LOOK, asking
from tests.runtime.given import Slow, Talk


def record(path: Path, *agent_ids: str) -> None:
    """Let a conversation named `t` happen with each agent."""

    async def talk() -> None:
        async with Engine(agents=[Agent(agent_id) for agent_id in agent_ids], db=path) as engine:
            for agent_id in agent_ids:
                thread = Thread("local", "local", agent_id, "t")
                session_id = await engine.session_of(thread)
                await engine.submit(
                    session_id,
                    cmd.ClientView(messages=(UserMessage(id="u", content="/say hi"),)),
                    birth=cmd.Birth(
                        agent_id=agent_id, owner="local", tenant="local", thread_id="t"
                    ),
                )

    asyncio.run(talk())


async def left_running(path: Path) -> str:
    """Leave a session whose model call was in flight when its engine ended; return its id."""
    model = Slow()
    async with Engine(agents=[Agent("a", llm="slow")], db=path, models={"slow": model}) as engine:
        talk = await Talk.begin(engine)
        await talk.say("hello")
        await model.said.wait()
        return talk.session_id


async def left_paused(path: Path) -> tuple[str, State]:
    """Leave a session that asks a person; return its id and its state."""
    async with Engine(agents=[asking({"message": "Look?"})], db=path) as engine:
        talk = await Talk.begin(engine)
        await talk.say(LOOK)
        return talk.session_id, await talk.until_paused()
