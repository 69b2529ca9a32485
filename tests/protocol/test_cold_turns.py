"""Turns that were left, and a cancel, over a restart with a snapshot.

Only what is open and the active path is in memory then.
Source: `protocol.md` sections 2, 4 and 7.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine import Agent, DecisionRequest, DecisionResponse, Engine, interrupt
from engine.core import commands as cmd
from engine.core.messages import AssistantMessage, Message, ToolCall, ToolMessage
from engine.core.state import State
from engine.core.status import active_turn, status
from engine.core.worker import ClientMessages
from engine.runtime import summary
from tests.protocol.cold import Notebook, do, is_cold, person, tree
from tests.protocol.given import answer, append, ids, results, roles
from tests.runtime.given import Talk

PICK = cmd.ClientContext(
    tools=({"name": "pick", "description": "", "parameters": {"type": "object"}},)
)


@pytest.fixture(autouse=True)
def _snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write one at the end of each turn, and at each pause."""
    monkeypatch.setattr(summary, "SNAPSHOT_EVERY", 1)


# --------------------------------------------------------------- parked turns


def careful() -> Agent:
    """An agent whose worker asks before a tool runs."""

    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    agent = Agent("a", tools=[send])

    @agent.decide(on="tool.execute")
    def ask(request: DecisionRequest) -> Any:
        return interrupt("confirm", interrupt_id="i1")

    return agent


async def leave(talk: Talk) -> Sequence[Message]:
    """Edit the first message and run that turn to its end; return the branch that is left."""
    path = await talk.path()
    await do(talk, cmd.ClientView(messages=(person("edit"),)))
    return path


ASK = '/tool send {"to": "ada"}\n/then /say done'


def is_waiting(state: State) -> bool:
    """Whether the active turn waits for somebody."""
    turn = active_turn(state)
    return turn is not None and status(state, turn) != "running"


async def ask_and_leave(talk: Talk, script: str = ASK) -> Sequence[Message]:
    """Run into a question below everything, and go elsewhere; return the branch that is left."""
    path = await talk.path()
    await talk.do(cmd.ClientView(messages=(*path, person("u1", script)), client=PICK))
    await talk.until(is_waiting)
    return await leave(talk)


async def test_4_parked_comes_back_on_a_cold_session(tmp_path: Path) -> None:
    """Its branch is found, its question pauses it, and the answer goes on."""
    async with Engine(agents=[careful()], db=tmp_path / "a.db") as first:
        left = await ask_and_leave(await Talk.begin(first))

    async with Engine(agents=[careful()], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        assert await is_cold(talk)
        await talk.do(cmd.ClientView(messages=tuple(left)))
        state = await talk.state()
        turn = active_turn(state)
        assert turn is not None
        assert status(state, turn) == "paused"
        path = await do(talk, cmd.ClientView(messages=tuple(left), answers=(answer("i1"),)))
        assert results(path)[0][1] == "sent to ada"
        assert path[-1].content == "done"


async def test_4_parked_turn_is_abandoned_on_a_cold_session(tmp_path: Path) -> None:
    """The question is answered by id alone; the result is recorded where the call is."""
    async with Engine(agents=[careful()], db=tmp_path / "a.db") as first:
        left = await ask_and_leave(await Talk.begin(first))

    async with Engine(agents=[careful()], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        await talk.do(cmd.ResumeInterrupt(answer=answer("i1")))
        assert (await talk.state()).control.turns == ()
        path = await do(talk, cmd.ClientView(messages=(*left, person("u2"))))
        assert roles(path) == ["user", "assistant", "tool", "user", "assistant"]


def slow_to_decide(go: asyncio.Event) -> Agent:
    """An agent whose worker takes its time when a tool has ended."""

    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    agent = Agent("a", tools=[send])

    @agent.decide(on="tool.finished")
    async def decide(request: DecisionRequest) -> Any:
        await go.wait()
        return request.proposed

    return agent


OTHER_BRANCH: dict[str, Callable[[], cmd.Command]] = {
    "a message at the head": lambda: append(person("u2")),
    "an action": lambda: cmd.TakeAction(name="press"),
    "a question": lambda: cmd.RaiseInterrupt(reason="more"),
    "time": cmd.PassTime,
}


@pytest.mark.parametrize("command", OTHER_BRANCH.values(), ids=OTHER_BRANCH.keys())
async def test_4_parked_turn_whose_question_stands_above_its_end_is_kept_on_a_cold_session(
    tmp_path: Path, command: Callable[[], cmd.Command]
) -> None:
    """A result was recorded below the question before the branch was left: it is still paused."""
    go = asyncio.Event()
    async with Engine(agents=[slow_to_decide(go)], db=tmp_path / "a.db") as first:
        talk = await Talk.begin(first)
        await talk.do(cmd.ClientView(messages=(person("u1", '/tool send {"to": "ada"}'),)))
        await talk.until(lambda state: any(d.is_out for d in state.control.decisions))
        await talk.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
        go.set()
        await talk.until(lambda state: not any(d.is_out for d in state.control.decisions))
        left = await leave(talk)
        assert isinstance(left[-1], ToolMessage)
        assert len((await talk.state()).control.turns) == 1

    async with Engine(agents=[slow_to_decide(go)], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        assert await is_cold(talk)
        await talk.do(command())
        state = await talk.state()
        assert state.interrupt("i1") is not None
        assert [turn.parked for turn in state.control.turns][:1] == [True]


# --------------------------------------------------------------------- cancel


async def test_7_step_6_results_are_recorded_on_a_branch_that_is_cold(tmp_path: Path) -> None:
    """A frontend's call on the branch that was left; the head stays where it is."""
    async with Engine(agents=[Agent("a")], db=tmp_path / "a.db") as first:
        left = await ask_and_leave(await Talk.begin(first), "/tool pick {}")

    async with Engine(agents=[Agent("a")], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        here = await talk.path()
        await talk.do(cmd.CancelSession())
        assert await talk.path() == here
        path = await do(talk, cmd.ClientView(messages=(*left, person("u2"))))
        assert roles(path) == ["user", "assistant", "tool", "user", "assistant"]
        assert results(path)[0][1] == "cancelled: the turn ended"


TWO_PICKS = "/tool pick {}\n/tool pick {}"


async def test_7_step_6_a_cold_branch_has_its_place_after_it(tmp_path: Path) -> None:
    """A worker that is asked there is told how much stands before the new message."""
    book = Notebook()
    async with Engine(agents=[book.agent()], db=tmp_path / "a.db") as first:
        talk = await Talk.begin(first)
        await do(talk, cmd.ClientView(messages=(person("u0"),)))
        left = await ask_and_leave(talk, TWO_PICKS)

    async with Engine(agents=[book.agent()], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        assert await is_cold(talk)
        await talk.do(cmd.CancelSession())
        path = await do(talk, cmd.ClientView(messages=(*left, person("u2"))))
        trigger = book.seen["u2"].trigger
        assert isinstance(trigger, ClientMessages)
        assert ids(path).index("u2") == 6
        assert trigger.new_from == 6


@pytest.mark.parametrize("shown", [1, 3], ids=["the first message", "the call's input"])
async def test_7_step_6_a_cold_branch_is_one_path_after_it(tmp_path: Path, shown: int) -> None:
    """A turn waits at its end; a view that ends above that end changes nothing."""
    async with Engine(agents=[Agent("a")], db=tmp_path / "a.db") as first:
        talk = await Talk.begin(first)
        await do(talk, cmd.ClientView(messages=(person("u0"),)))
        left = await ask_and_leave(talk, TWO_PICKS)

    async with Engine(agents=[Agent("a")], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        assert await is_cold(talk)
        await talk.do(cmd.CancelSession())
        more = person("u2", "/tool pick {}")
        await talk.do(cmd.ClientView(messages=(*left, more), client=PICK))
        await talk.until(is_waiting)
        path = await talk.path()
        receipt = await talk.do(cmd.ClientView(messages=tuple(path[:shown])))
        assert not receipt.recorded
        assert await talk.path() == path


async def test_7_step_2_a_call_that_never_started_gets_its_result_on_a_cold_branch(
    tmp_path: Path,
) -> None:
    """A worker recorded the reply with the call and asked a person; then the client left."""

    def declared() -> Agent:
        agent = Agent("a")

        @agent.decide(on="llm.finished")
        def decide(request: DecisionRequest) -> Any:
            if len(request.messages) > 1 or request.messages[0].id != "u1":
                return request.proposed
            reply = AssistantMessage(id="x", tool_calls=(ToolCall(id="c9", name="send"),))
            return DecisionResponse(
                messages=(reply,), actions=(interrupt("confirm", interrupt_id="i1"),)
            )

        return agent

    async with Engine(agents=[declared()], db=tmp_path / "a.db") as first:
        await ask_and_leave(await Talk.begin(first), "/say hm")

    async with Engine(agents=[declared()], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        assert await is_cold(talk)
        await talk.do(cmd.CancelSession())
        assert results(list((await tree(talk)).values())) == [("c9", "cancelled: the turn ended")]
