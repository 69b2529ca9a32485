"""Approve a tool: nothing is sent before a person says so.

`approve=True` on a tool is all there is to it: no worker, no code of your own. The engine
asks, the run ends, and the answer continues the same turn.

    python examples/approve_a_tool.py

prints

    person: email ada about lunch
    (turn 1)
    agent asks: Run send_email with to: "ada@example.com", subject: "lunch"?
    person answers: {"approved": false, "reason": "ask her first"}
    (turn 1)
    tool: {"error":"a person declined: ask her first"}
    agent: send_email failed: a person declined: ask her first
    person: email ada about lunch
    (turn 2)
    agent asks: Run send_email with to: "ada@example.com", subject: "lunch"?
    person answers: {"approved": true}
    (turn 2)
    tool: sent to ada@example.com: lunch
    agent: send_email: sent to ada@example.com: lunch
"""

import asyncio

from page import page

from engine import Agent, Engine, FunctionTool
from engine.store.memory import MemoryStore


def send_email(to: str, subject: str) -> str:
    """Send an email."""
    return f"sent to {to}: {subject}"


secretary = Agent("secretary", tools=[FunctionTool(send_email, approve=True)])


async def main() -> None:
    """Decline once, approve once."""
    async with page(Engine(db=MemoryStore(), agents=[secretary]), "secretary") as chat:
        await chat.say("email ada about lunch")
        await chat.answer({"approved": False, "reason": "ask her first"})
        await chat.say("email ada about lunch")
        await chat.answer({"approved": True})


if __name__ == "__main__":
    asyncio.run(main())
