"""Cancel: stop a conversation for real, in the middle of a text and over a question.

Stopping ends the model's stream at the provider, the tools that run, and every open
question. What was said stays on the screen, and the conversation goes on.

    python examples/cancel.py

prints

    person: /say Listen:
    /hang
    (turn 1)
    person: (stops it)
    agent: Listen:
    (cancelled)
    person: email ada about lunch
    (turn 2)
    agent asks: Run send_email with to: "ada@example.com", subject: "lunch"?
    person: (stops it)
    person: /say Good to see you again.
    (turn 3)
    agent: Good to see you again.
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
    """Stop a text that never ends, then a question nobody wants to answer."""
    async with page(Engine(db=MemoryStore(), agents=[secretary]), "secretary") as chat:
        talking = asyncio.create_task(chat.say("/say Listen:\n/hang"))
        await chat.is_hearing.wait()
        await chat.stop()
        await talking

        await chat.say("email ada about lunch")
        await chat.stop()
        await chat.say("/say Good to see you again.")


if __name__ == "__main__":
    asyncio.run(main())
