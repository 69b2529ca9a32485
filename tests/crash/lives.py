"""What a process lives through before it is killed, and how the next one goes on.

A life runs an engine on a file, in the process, through one scenario. What it was
told is durable it writes to a file at once, so that it can be held against the log
after a `kill -9`.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from engine import Agent, DecisionRequest, Engine, Tool, interrupt
from engine.core import commands as cmd
from engine.core.interrupts import pausing
from engine.core.messages import UserMessage, members
from engine.core.state import State
from engine.core.worker import RetryOverride
from engine.runtime.feed import Told
from engine.runtime.functions import FunctionTool

AT_ONCE = RetryOverride(run=60, total=600, attempts=3, max=0)
"""Three attempts without a pause between them."""

KEY: dict[str, Any] = {
    "type": "object",
    "properties": {"key": {"type": "string"}},
    "required": ["key"],
}


class Life:
    """One process's life: the engine, the outbox its tools write to, and what it was told."""

    def __init__(self, directory: Path) -> None:
        self._outbox = directory / "outbox"
        self._told = directory / "told"
        self.engine = Engine(db=directory / "agents.db", agents=self._agents())

    # ------------------------------------------------------------ the agents

    def _agents(self) -> list[Agent]:
        def note(key: str) -> str:
            """Write a line to the outbox, in a thread."""
            _append(self._outbox, key)
            return "noted"

        async def note_async(key: str) -> str:
            """Write a line to the outbox, in a task."""
            _append(self._outbox, key)
            return "noted"

        def note_again(key: str) -> str:
            """Write a line to the outbox; may be run again."""
            _append(self._outbox, key)
            return "noted"

        again = FunctionTool(note_again, retry=AT_ONCE)
        tools = [note, note_async, again]
        operator = Agent("operator", tools=tools, retry={"llm": AT_ONCE})

        @operator.decide(on=("tool.execute",))
        def ask_first(request: DecisionRequest) -> Any:
            return interrupt("confirm", payload={"message": "Send it?"})

        mailer = Agent(
            "mailer",
            tools=[Tool("send", "Send.", KEY, retry=AT_ONCE)],
            worker=_decide,
            retry={"default": AT_ONCE},
        )
        return [Agent("assistant", tools=tools, retry={"llm": AT_ONCE}), operator, mailer]

    # ------------------------------------------------------------- the moves

    async def say(self, agent_id: str, text: str, message_id: str) -> None:
        """Send a message behind everything that is recorded."""
        state = await self.engine.state(agent_id)
        path = [] if state is None else state.tree.path(state.control.head)
        messages = (*(n.message for n in path), UserMessage(id=message_id, content=text))
        await self._submit(agent_id, cmd.ClientView(messages=messages))

    async def answer(self, agent_id: str, payload: Any) -> None:
        """Answer every open question, in one input."""
        state = await self.engine.state(agent_id)
        assert state is not None
        answers = tuple(
            cmd.Answer(interrupt_id=i.id, payload=payload) for i in state.control.interrupts
        )
        messages = tuple(n.message for n in state.tree.path(state.control.head))
        await self._submit(agent_id, cmd.ClientView(messages=messages, answers=answers))

    async def cancel(self, agent_id: str) -> None:
        """Stop everything."""
        await self._submit(agent_id, cmd.CancelSession())

    async def _submit(self, agent_id: str, command: cmd.Command) -> None:
        birth = cmd.Birth(agent_id=agent_id, owner="o", tenant="t", thread_id="thread")
        receipt = await self.engine.submit(agent_id, command, birth=birth)
        self._was_told(agent_id, receipt.after.seq)

    async def until(self, session_id: str, reached: Callable[[State], bool]) -> State | None:
        """Follow a session, as a client does, until its state is so."""
        state = await self.engine.state(session_id)
        if state is None or reached(state):
            return state
        async for batch in self.engine.reader(session_id, state.control.seq).batches():
            for item in batch:
                if isinstance(item, Told):
                    self._was_told(session_id, item.event.seq)
            state = await self.engine.state(session_id)
            assert state is not None
            if reached(state):
                return state
        raise AssertionError(session_id)

    def _was_told(self, session_id: str, seq: int) -> None:
        _append(self._told, json.dumps([session_id, seq]))


def is_settled(state: State) -> bool:
    """Whether nothing runs: no turn is open, or it waits for a person."""
    return not state.control.turns or bool(pausing(state))


def _calls_a_model(state: State) -> bool:
    return any(call.kind == "llm" for call in state.control.calls)


def _decide(request: DecisionRequest) -> Any:
    """Decide everything: ask before sending, then act on the answer."""
    trigger = request.trigger
    if trigger.type == "tool.execute" and trigger.name == "send":
        return interrupt("confirm", payload={"message": "Send it?"})
    if trigger.type == "interrupt.resumed":
        if members(trigger.payload).get("approved"):
            return {"actions": [{"type": "tool.result", "result": "sent"}]}
        return {"actions": [{"type": "tool.error", "error": "declined"}]}
    return request.proposed


def _append(path: Path, line: str) -> None:
    """Write a line so that it is the system's before this process may die."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


# ------------------------------------------------------------------ scenarios


async def plain(life: Life) -> None:
    """A thought and a text."""
    await life.say("assistant", "/think hm\n/say hello", "u1")
    await life.until("assistant", is_settled)


async def parallel(life: Life) -> None:
    """Three tools of one reply side by side, and a second round."""
    text = (
        '/tool note {"key": "p1"}\n/tool note_async {"key": "p2"}\n'
        '/tool note_again {"key": "again-p3"}\n/tool nobody {}\n'
        '/then /tool note {"key": "p4"}\n/then /then /say done'
    )
    await life.say("assistant", text, "u1")
    await life.until("assistant", is_settled)


async def failing(life: Life) -> None:
    """A provider that fails once, then answers."""
    await life.say("assistant", "/fail 429 times 1\n/say at last", "u1")
    await life.until("assistant", is_settled)


async def approval(life: Life) -> None:
    """A worker that gates two function tools; a person approves both, one after another."""
    text = '/tool note {"key": "a1"}\n/tool note_async {"key": "a2"}'
    await life.say("operator", text, "u1")
    await life.until("operator", is_settled)
    await life.answer("operator", True)
    await life.until("operator", is_settled)
    await life.answer("operator", {"approved": True})
    await life.until("operator", is_settled)


async def decided(life: Life) -> None:
    """A worker that decides everything and owns the tool; a person approves."""
    await life.say("mailer", '/tool send {"key": "m1"}', "u1")
    await life.until("mailer", is_settled)
    await life.answer("mailer", {"approved": True})
    await life.until("mailer", is_settled)


async def cancelled(life: Life) -> None:
    """A model that never answers; somebody stops it, and says something else."""
    await life.say("assistant", "/hang", "u1")
    await life.until("assistant", _calls_a_model)
    await life.cancel("assistant")
    await life.say("assistant", "/say better", "u2")
    await life.until("assistant", is_settled)


SCENARIOS: dict[str, Callable[[Life], Awaitable[None]]] = {
    scenario.__name__: scenario
    for scenario in (plain, parallel, failing, approval, decided, cancelled)
}


async def after(life: Life) -> None:
    """The next process: everything settles by itself, questions can be answered, all is usable."""
    for agent_id in ("assistant", "operator", "mailer"):
        state = await life.until(agent_id, is_settled_or_hangs)
        while state is not None and state.control.interrupts:
            await life.answer(agent_id, {"approved": True})
            state = await life.until(agent_id, is_settled)
        if state is not None and state.control.turns:
            await life.cancel(agent_id)
        seq = state.control.seq if state is not None else 0
        await life.say(agent_id, "/say good morning", f"next-{seq}")
        await life.until(agent_id, is_settled)


def is_settled_or_hangs(state: State) -> bool:
    """Like :func:`is_settled`; a model that never answers is as far as it goes."""
    asked = [n.message for n in state.tree.path(state.control.head)]
    hangs = any(isinstance(m, UserMessage) and m.content == "/hang" for m in asked)
    return is_settled(state) or (hangs and _calls_a_model(state))


def live(directory: Path, scenario: str) -> None:
    """Run a whole life in this process."""

    async def main() -> None:
        life = Life(directory)
        async with life.engine:
            async with asyncio.timeout(30):
                await (after if scenario == "after" else SCENARIOS[scenario])(life)

    asyncio.run(main())
