"""Leave an open question, talk about something else, come back and answer it.

A question belongs to one branch of the conversation. Editing a message above it starts
another branch, on which nothing waits; the first one keeps its question and its turn.

    python examples/leave_and_come_back.py

prints

    person: weather in Lisbon
    (turn 1)
    tool: sunny in Lisbon
    agent: get_weather: sunny in Lisbon
    person: email ada about lunch
    (turn 2)
    agent asks: Run send_email with to: "ada@example.com", subject: "lunch"?
    person edits: weather in Oslo
    (turn 3)
    tool: sunny in Oslo
    agent: get_weather: sunny in Oslo
    person: (goes back to the other branch)
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


def get_weather(city: str) -> str:
    """Say what the weather is like."""
    return f"sunny in {city}"


secretary = Agent("secretary", tools=[FunctionTool(send_email, approve=True), get_weather])


async def main() -> None:
    """Ask for one thing, edit it into another, go back."""
    async with page(Engine(db=MemoryStore(), agents=[secretary]), "secretary") as chat:
        await chat.say("weather in Lisbon")
        await chat.say("email ada about lunch")
        left = await chat.edit("weather in Oslo")
        await chat.show(left)
        await chat.answer({"approved": True})


if __name__ == "__main__":
    asyncio.run(main())
