"""Values, ids and the queue over a restart, with a snapshot.

Only what is open and the active path is in memory then.
Source: `protocol.md` sections 2, 3 and 4.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine import Agent, DecisionRequest, DecisionResponse, Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.handle import Receipt
from engine.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, in_call_order
from engine.core.worker import ClientMessages
from engine.runtime import summary
from tests.protocol.cold import Notebook, do, is_cold, is_idle, kinds, person
from tests.protocol.given import answer, append, roles
from tests.runtime.given import Talk


@pytest.fixture(autouse=True)
def _snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write one at the end of each turn, and at each pause."""
    monkeypatch.setattr(summary, "SNAPSHOT_EVERY", 1)


# --------------------------------------------------------------------- values


async def test_3_values_come_back_with_their_branch_on_a_cold_session(tmp_path: Path) -> None:
    """Each branch has its own after a restart, although its messages are not in memory."""
    mine: dict[str, Any] = {"state": {"n": 1}, "shared_state": {"s": 1}, "agent": {"model": "one"}}
    other: dict[str, Any] = {"state": {"n": 2}, "shared_state": {"s": 2}, "agent": {"model": "two"}}
    book = Notebook(u2=mine, u3=other)
    async with Engine(agents=[book.agent()], db=tmp_path / "a.db") as first:
        talk = await Talk.begin(first)
        root = await do(talk, cmd.ClientView(messages=(person("u1"),)))
        left = await do(talk, cmd.ClientView(messages=(*root, person("u2"))))
        right = await do(talk, cmd.ClientView(messages=(*root, person("u3"))))

    async with Engine(agents=[book.agent()], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        assert await is_cold(talk)
        found: list[Any] = []
        for number, path in enumerate((left, right, root, left)):
            await talk.do(cmd.ClientView(messages=tuple(path)))
            shared = (await talk.state()).control.shared_state
            await do(talk, cmd.ClientView(messages=(*path, person(f"w{number}"))))
            request = book.seen[f"w{number}"]
            found.append((request.state, shared, request.agent["model"]))
    assert found == [
        ({"n": 1}, {"s": 1}, "one"),
        ({"n": 2}, {"s": 2}, "two"),
        (None, None, "m"),
        ({"n": 1}, {"s": 1}, "one"),
    ]


async def test_3_values_written_before_any_message_are_found_on_a_cold_session(
    tmp_path: Path,
) -> None:
    """On the branch that has a value of its own, and on one that has none."""

    def declared() -> Agent:
        agent = Agent("a")

        @agent.decide(on=("client.action", "client.messages"))
        def decide(request: DecisionRequest) -> Any:
            if not isinstance(request.trigger, ClientMessages):
                return DecisionResponse(state={"n": 0})
            said = request.trigger.messages[-1].id
            seen[said] = request.state
            proposed = request.proposed
            mine = {"n": 1} if said == "u1" else None
            return DecisionResponse(
                messages=proposed.messages, actions=proposed.actions, state=mine
            )

        return agent

    seen: dict[str, Any] = {}
    async with Engine(agents=[declared()], db=tmp_path / "a.db") as first:
        talk = await Talk.begin(first)
        await talk.do(cmd.TakeAction(name="begin"))
        await talk.until(lambda state: not state.control.decisions)
        path = await do(talk, cmd.ClientView(messages=(person("u1"),)))
        await do(talk, cmd.ClientView(messages=(*path, person("u2"))))

    async with Engine(agents=[declared()], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        assert await is_cold(talk)
        await do(talk, cmd.ClientView(messages=(person("root2"),)))
        await do(talk, cmd.ClientView(messages=(*path, person("u3"))))
    assert seen == {"u1": {"n": 0}, "u2": {"n": 1}, "root2": {"n": 0}, "u3": {"n": 1}}


# ------------------------------------------------------------ turn ids, queue


async def test_2_twice_a_turn_id_returns_that_turn_on_a_cold_session(tmp_path: Path) -> None:
    """It is over, and only the log still knows it."""
    async with Engine(agents=[Agent("a")], db=tmp_path / "a.db") as first:
        talk = await Talk.begin(first)
        await do(talk, append(person("u1"), turn_id="mine"))
        await do(talk, append(person("u2")))

    async with Engine(agents=[Agent("a")], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        length = len(await talk.log())
        for message in (person("u1"), person("u9")):
            receipt = await talk.do(append(message, turn_id="mine"))
            assert (receipt.turn_id, receipt.recorded) == ("mine", False)
            receipt = await talk.do(cmd.ClientView(messages=(message,), turn_id="mine"))
            assert (receipt.turn_id, receipt.recorded) == ("mine", False)
        assert len(await talk.log()) == length


async def test_3_append_drops_ids_of_another_branch_on_a_cold_session(tmp_path: Path) -> None:
    """They are not in memory, and recorded all the same."""
    async with Engine(agents=[Agent("a")], db=tmp_path / "a.db") as first:
        talk = await Talk.begin(first)
        await do(talk, append(person("u1")))
        await do(talk, cmd.ClientView(messages=(person("edit"),)))

    async with Engine(agents=[Agent("a")], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        assert await is_cold(talk)
        receipt = await talk.do(append(person("u1")))
        assert not receipt.recorded
        await do(talk, append(person("u1"), person("u2")))
        assert [m.id for m in await talk.path() if m.role == "user"] == ["edit", "u2"]


async def test_4_queue_is_kept_over_a_restart(tmp_path: Path) -> None:
    """Behind a turn that is paused: it starts when that turn has ended in the next process."""
    async with Engine(agents=[Agent("a")], db=tmp_path / "a.db") as first:
        talk = await Talk.begin(first)
        await talk.do(append(person("u1", "/hang"), turn_id="first"))
        await talk.do(append(person("u2"), turn_id="second", queue=True))
        await talk.do(append(person("u3"), turn_id="third", queue=True))
        await talk.do(cmd.RaiseInterrupt(reason="hold"))

    async with Engine(agents=[hanging_no_more()], db=tmp_path / "a.db") as second:
        talk = await Talk.begin(second)
        assert [q.id for q in (await talk.state()).control.queue] == ["second", "third"]
        await talk.answer()
        await talk.until_idle()
        assert await kinds(talk, ev.TurnStarted, ev.TurnCompleted) == [
            ("turn.started", "first"),
            ("turn.completed", "first"),
            ("turn.started", "second"),
            ("turn.completed", "second"),
            ("turn.started", "third"),
            ("turn.completed", "third"),
        ]
        assert [m.id for m in await talk.path() if m.role == "user"] == ["u1", "u2", "u3"]


def hanging_no_more() -> Agent:
    """An agent whose worker ends a turn when it hears of an answer."""
    agent = Agent("a")

    @agent.decide(on="interrupt.resumed")
    def decide(request: DecisionRequest) -> Any:
        return {"actions": [{"type": "done"}]}

    return agent


# ----------------------------------- what views may show of a branch that is cold


LIVES = pytest.mark.parametrize("life", ["one process", "restarted"])
"""Nothing may depend on what is in memory: both lives have the same end."""


class Story:
    """An agent of which each process declares a fresh one, on one file."""

    def __init__(self, path: Path, declare: Callable[[], Agent], life: str) -> None:
        self.path = path / "a.db"
        self.declare = declare
        self.life = life

    async def tell(
        self,
        begin: Callable[[Talk], Awaitable[cmd.Command]],
    ) -> tuple[Receipt, Sequence[Message]]:
        """Run the beginning, maybe restart, and run the command it leads to."""
        async with Engine(agents=[self.declare()], db=self.path) as engine:
            talk = await Talk.begin(engine)
            command = await begin(talk)
            if self.life == "one process":
                return await self._end(talk, command)
        async with Engine(agents=[self.declare()], db=self.path) as engine:
            talk = await Talk.begin(engine)
            assert await is_cold(talk)
            return await self._end(talk, command)

    async def _end(self, talk: Talk, command: cmd.Command) -> tuple[Receipt, Sequence[Message]]:
        receipt = await talk.do(command)
        await talk.until(is_idle)
        return receipt, await talk.path()


def sender() -> Agent:
    """An agent with a tool."""

    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    return Agent("a", tools=[send])


async def asked_elsewhere(talk: Talk) -> AssistantMessage:
    """Run a call on one branch, and go to another; return the message with the call."""
    path = await do(talk, append(person("u1", '/tool send {"to": "ada"}')))
    await do(talk, cmd.ClientView(messages=(person("root2"),)))
    asked = path[1]
    assert isinstance(asked, AssistantMessage)
    return asked


@LIVES
async def test_3_rule_2_calls_of_a_cold_branch_are_known_in_a_view(
    tmp_path: Path, life: str
) -> None:
    """They stay on a page's own message."""

    async def begin(talk: Talk) -> cmd.Command:
        calls = (await asked_elsewhere(talk)).tool_calls
        shown = AssistantMessage(id="x2", content="both", tool_calls=calls)
        return cmd.ClientView(messages=(person("x1"), shown, person("x3")))

    _, path = await Story(tmp_path, sender, life).tell(begin)
    assert isinstance(path[1], AssistantMessage)
    assert len(path[1].tool_calls) == 1


@LIVES
async def test_3_rule_2_calls_of_a_cold_branch_are_known_at_the_head(
    tmp_path: Path, life: str
) -> None:
    """The same for messages that are appended."""

    async def begin(talk: Talk) -> cmd.Command:
        calls = (await asked_elsewhere(talk)).tool_calls
        shown = AssistantMessage(id="x2", content="both", tool_calls=calls)
        return append(shown, person("x3"))

    _, path = await Story(tmp_path, sender, life).tell(begin)
    [shown] = [m for m in path if m.id == "x2"]
    assert isinstance(shown, AssistantMessage)
    assert len(shown.tool_calls) == 1


@LIVES
async def test_3_rule_0_results_of_a_cold_branch_are_taken_out(tmp_path: Path, life: str) -> None:
    """Also of a call that a message there asks for and that never started."""

    def declare() -> Agent:
        agent = Agent("a")

        @agent.decide(on="client.messages")
        def decide(request: DecisionRequest) -> Any:
            assert isinstance(request.trigger, ClientMessages)
            if request.trigger.messages[0].id != "u1":
                return request.proposed
            reply = AssistantMessage(id="x", tool_calls=(ToolCall(id="c9", name="send"),))
            return DecisionResponse(messages=(*request.trigger.messages, reply))

        return agent

    async def begin(talk: Talk) -> cmd.Command:
        await do(talk, append(person("u1")))
        path = await do(talk, cmd.ClientView(messages=(person("root2"),)))
        invented = ToolMessage(id="t", tool_call_id="c9", content="invented")
        return cmd.ClientView(messages=(*path, invented, person("u2")))

    _, path = await Story(tmp_path, declare, life).tell(begin)
    assert roles(path) == ["user", "assistant", "user", "assistant"]


@LIVES
async def test_3_rule_6_a_session_with_messages_warns_also_where_none_is_active(
    tmp_path: Path, life: str
) -> None:
    """An edit of the first message was answered with nothing: the active path is empty."""

    def declare() -> Agent:
        agent = Agent("a")

        @agent.decide(on="client.messages")
        def decide(request: DecisionRequest) -> Any:
            assert isinstance(request.trigger, ClientMessages)
            said = request.trigger.messages[0].id
            return {} if said == "edit" else request.proposed

        return agent

    async def begin(talk: Talk) -> cmd.Command:
        await do(talk, append(person("u1")))
        assert await do(talk, cmd.ClientView(messages=(person("edit"),))) == []
        return cmd.ClientView(messages=(person("x1"),))

    receipt, path = await Story(tmp_path, declare, life).tell(begin)
    assert [notice.code for notice in receipt.notices] == ["unknown_history"]
    assert path[0].id == "x1"


@LIVES
async def test_3_rule_6_no_warning_where_no_message_is_recorded(tmp_path: Path, life: str) -> None:
    """A session that begins with a question has no history that its page could not know."""

    async def begin(talk: Talk) -> cmd.Command:
        await talk.do(cmd.RaiseInterrupt(reason="check", interrupt_id="i1"))
        return cmd.ClientView(messages=(person("u1"),), answers=(answer("i1"),))

    receipt, path = await Story(tmp_path, sender, life).tell(begin)
    assert receipt.notices == ()
    assert path[0].id == "u1"


@LIVES
async def test_3_rule_1_what_stands_behind_results_is_passed_over_in_either_order(
    tmp_path: Path, life: str
) -> None:
    """A page shows results as they were asked for; the thought recorded behind them is theirs."""
    second = asyncio.Event()

    def declare() -> Agent:
        async def slow() -> str:
            """End last."""
            await second.wait()
            return "slow"

        async def fast() -> str:
            """End first."""
            return "fast"

        agent = Agent("a", tools=[slow, fast])

        @agent.decide(on="tool.finished")
        def decide(request: DecisionRequest) -> Any:
            second.set()
            return request.proposed

        return agent

    async def begin(talk: Talk) -> cmd.Command:
        script = "/tool slow {}\n/tool fast {}\n/then /think hm\n/then /say ok"
        path = await do(talk, append(person("u1", script)))
        assert roles(path) == ["user", "assistant", "tool", "tool", "reasoning", "assistant"]
        shown = in_call_order(path)[:4]
        assert [m.id for m in shown] != [m.id for m in path[:4]]
        await do(talk, cmd.ClientView(messages=(person("root2"),)))
        return cmd.ClientView(messages=tuple(shown))

    _, path = await Story(tmp_path, declare, life).tell(begin)
    assert roles(path)[:5] == ["user", "assistant", "tool", "tool", "reasoning"]
    assert path[4].content == "hm"
    assert len(path) == 7


@LIVES
async def test_3_rule_1_what_is_passed_over_is_found_beside_a_branch_that_is_loaded(
    tmp_path: Path, life: str
) -> None:
    """Behind one result stand a turn that waits, and a page's own result, which is newer."""
    pick = cmd.ClientContext(tools=({"name": "pick", "description": "", "parameters": {}},))
    own = ToolMessage(id="x", tool_call_id="elsewhere", content="mine")

    async def begin(talk: Talk) -> cmd.Command:
        script = '/tool send {"to": "ada"}\n/then /tool pick {}'
        await talk.do(cmd.AppendMessages(messages=(person("u1", script),), client=pick))
        await talk.until(lambda state: any(call.kind == "client" for call in state.control.calls))
        waiting = await talk.path()
        assert roles(waiting) == ["user", "assistant", "tool", "assistant"]
        await do(talk, cmd.ClientView(messages=(*waiting[:3], own)))
        await do(talk, cmd.ClientView(messages=(person("root2"),)))
        return cmd.ClientView(messages=(*waiting[:2], person("u2")))

    _, path = await Story(tmp_path, sender, life).tell(begin)
    assert [m.id for m in path][3:5] == ["x", "u2"]
