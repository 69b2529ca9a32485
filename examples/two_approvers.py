"""Two approvers: a worker that reads who answered, and asks again.

The engine vouches for who answered (`trigger.responder`); whether that is enough is the
worker's rule. This one wants two people: it remembers the first in its own state, and asks
again until somebody else has agreed. The answers come from a backend that knows its
people, such as a chat bot; the page only looks on.

    python examples/two_approvers.py

prints

    person: email ada about the contract
    (turn 1)
    agent asks: Write to ada@example.com?
    grace answers: {"approved": true}
    (turn 1)
    agent asks: grace agrees. Who else?
    grace answers: {"approved": true}
    (turn 1)
    agent asks: grace agrees. Who else?
    joan answers: {"approved": true}
    tool: sent to ada@example.com: the contract
"""

import asyncio
from typing import Any

from page import page

from engine import Agent, DecisionRequest, Engine, interrupt, tool_error, tool_run
from engine.store.memory import MemoryStore

NEEDED = 2


def send_email(to: str, subject: str) -> str:
    """Send an email."""
    return f"sent to {to}: {subject}"


careful = Agent("careful", tools=[send_email])


@careful.decide(on=("tool.execute", "interrupt.resumed"))
def two_people(request: DecisionRequest) -> Any:
    """Ask; ask again until two different people have agreed."""
    trigger = request.trigger
    if trigger.type == "tool.execute":
        return interrupt("confirm", payload={"message": f"Write to {trigger.input.value['to']}?"})
    if trigger.type != "interrupt.resumed":
        return request.proposed
    if trigger.answer != {"approved": True}:
        return tool_error("a person declined")
    agreed = sorted({*(request.state or []), trigger.responder["user"]})
    if len(agreed) < NEEDED:
        again = interrupt("confirm", payload={"message": f"{agreed[0]} agrees. Who else?"})
        return {"state": agreed, "actions": [again]}
    return {"state": {}, "actions": [tool_run()]}


async def main() -> None:
    """One person agrees twice, then a second one."""
    async with page(Engine(db=MemoryStore(), agents=[careful]), "careful") as chat:
        await chat.say("email ada about the contract")
        for person in ("grace", "grace", "joan"):
            await chat.answer_as(person, {"approved": True})


if __name__ == "__main__":
    asyncio.run(main())
