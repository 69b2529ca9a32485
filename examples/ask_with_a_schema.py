"""Ask for input: a question with a schema becomes a form, and its answer is checked.

The worker is asked what to do about the person's message, and asks back. An answer that
does not fit is not taken: the question stays open and comes again.

    python examples/ask_with_a_schema.py

prints

    person: A table, please.
    (turn 1)
    agent asks: When, and for how many?
    person answers: {"people": "many", "day": "friday"}
    (turn 1)
    warning: invalid_answer
    agent asks: When, and for how many?
    person answers: {"people": 4, "day": "friday"}
    (turn 1)
    agent: A table for 4 on friday.
"""

import asyncio
from typing import Any

from page import page

from engine import Agent, DecisionRequest, Engine, done, interrupt
from engine.store.memory import MemoryStore

booker = Agent("booker", description="Books a table. It needs no model at all.")

BOOKING = {
    "type": "object",
    "properties": {
        "people": {"type": "integer", "minimum": 1, "maximum": 12},
        "day": {"enum": ["friday", "saturday"]},
    },
    "required": ["people", "day"],
}


@booker.decide(on=("client.messages", "interrupt.resumed"))
def decide(request: DecisionRequest) -> Any:
    """Ask for what is missing; then say what was booked, and be done."""
    trigger = request.trigger
    if trigger.type == "client.messages":
        question = {"message": "When, and for how many?", "responseSchema": BOOKING}
        return interrupt("details", payload=question)
    if trigger.type == "interrupt.resumed":
        said = "Nothing is booked."
        if trigger.status == "resolved":
            said = f"A table for {trigger.answer['people']} on {trigger.answer['day']}."
        reply = {"id": f"booked:{trigger.interrupt_id}", "role": "assistant", "content": said}
        return {"messages": [reply], "actions": [done(trigger.answer)]}
    return request.proposed


async def main() -> None:
    """Answer wrongly, then rightly."""
    async with page(Engine(db=MemoryStore(), agents=[booker]), "booker") as chat:
        await chat.say("A table, please.")
        await chat.answer({"people": "many", "day": "friday"})
        await chat.answer({"people": 4, "day": "friday"})


if __name__ == "__main__":
    asyncio.run(main())
