"""What a cancel ends, and what is recorded of it."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine import Agent, DecisionRequest, DecisionResponse, Engine, Tool, interrupt
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import CallNotOpen
from engine.core.messages import ToolMessage, UserMessage
from engine.store.memory import MemoryStore
from tests.runtime.given import Slow, Talk
from tests.runtime.provider import PATIENCE_S, Provider, calls, is_valid, text
from tests.runtime.stopping import CANCELLED, Stop, codes, of, results, talking

PICK = cmd.ClientContext(tools=({"name": "pick", "description": ""},))


# ------------------------------------------------------------------ for real


async def test_async_tools_are_cancelled() -> None:
    """Each sees `CancelledError` in its own task, also of several that run side by side."""
    stop = Stop()
    async with talking(Agent("a", tools=[stop.hang])) as talk:
        await talk.say("/tool hang {}\n/tool hang {}")
        await stop.started(2)
        await talk.do(cmd.CancelSession())
        await stop.gone()

        assert stop.ended == ["cancelled", "cancelled"]
        assert all(task.cancelled() for task in stop.running)
        assert list(results(await talk.path()).values()) == [[CANCELLED], [CANCELLED]]


async def test_what_a_tool_returns_instead_of_stopping_is_refused() -> None:
    """It caught the `CancelledError`; the session has ended its call all the same."""
    stop = Stop()
    async with talking(Agent("a", tools=[stop.resist])) as talk:
        await talk.say("/tool resist {}")
        await stop.started()
        await talk.do(cmd.CancelSession())
        log = await talk.log()
        await stop.gone()

        assert stop.ended == ["resisted"]
        assert await talk.log() == log
        assert list(results(await talk.path()).values()) == [[CANCELLED]]


async def test_a_thread_is_left_to_end_and_its_result_refused() -> None:
    """A sync tool cannot be stopped: the turn does not wait for it, nor hear of it."""
    started, go_on, ended = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def block() -> str:
        """Hold a thread."""
        loop.call_soon_threadsafe(started.set)
        go_on.wait(PATIENCE_S)
        ended.set()
        return "late"

    async with talking(Agent("a", tools=[block])) as talk:
        await talk.say("/tool block {}")
        await started.wait()
        [call] = (await talk.state()).control.calls
        await talk.do(cmd.CancelSession())
        assert not ended.is_set()
        assert (await talk.state()).control.turns == ()

        await talk.say("/say next")
        await talk.until_idle()
        log = await talk.log()
        go_on.set()
        assert await asyncio.to_thread(ended.wait, PATIENCE_S)
        late = cmd.FinishToolCall(call_id=call.id, attempt=call.attempt, result="late")
        with pytest.raises(CallNotOpen):
            await talk.do(late)
        assert await talk.log() == log
        assert list(results(await talk.path()).values()) == [[CANCELLED]]


async def test_a_worker_that_is_asked_is_stopped() -> None:
    """Its task is cancelled; its decision is dropped, and so is the one that waits behind it."""
    agent, asked, stopped = Agent("a"), asyncio.Event(), asyncio.Event()

    @agent.decide
    async def decide(request: DecisionRequest) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
            raise

    async with talking(agent) as talk:
        await talk.say("hi")
        await asked.wait()
        receipt = await talk.do(cmd.CancelSession())
        async with asyncio.timeout(PATIENCE_S):
            await stopped.wait()
        log = await talk.log()
        assert [event.body.type for event in log[receipt.before.seq :]][-1] == "turn.completed"
        assert len(of(log, ev.DecisionDropped)) == len(receipt.before.decisions) == 2


# ----------------------------------------------------------- what is recorded


def asking(stop: Stop) -> Agent:
    """An agent with a tool of each kind; a person is asked about one of them."""

    async def quick() -> str:
        """Be done at once."""
        return "done"

    async def send() -> str:
        """Never run: nobody approves it."""
        raise AssertionError

    agent = Agent("a", llm="far", tools=[quick, stop.hang, send, Tool("own")])

    @agent.decide(on="tool.execute")
    async def decide(request: DecisionRequest) -> Any:
        match getattr(request.trigger, "name", ""):
            case "own":
                return {}
            case "send":
                return interrupt("confirm", payload={"message": "Send?"})
            case _:
                return request.proposed

    return agent


@asynccontextmanager
async def asked(stop: Stop) -> AsyncGenerator[tuple[Provider, Talk]]:
    """A paused turn: one call has ended; one runs, one is held, one left open, one a client's."""
    async with (
        Provider() as provider,
        Engine(agents=[asking(stop)], db=MemoryStore(), models={"far": provider.model}) as engine,
    ):
        talk = await Talk.begin(engine)
        provider.will(calls("quick"), calls("pick", "hang", "own", "send"))
        await talk.say("hi", client=PICK)
        await talk.until_paused()
        await stop.started()
        yield provider, talk


async def test_everything_ends_in_one_commit() -> None:
    """Each call has one result, the question its end, the turn one; the head does not move."""
    stop = Stop()
    async with asked(stop) as (_, talk):
        path, before = await talk.path(), (await talk.state()).control
        assert [call.name for call in before.calls] == ["pick", "hang", "own", "send"]
        receipt = await talk.do(cmd.CancelSession())
        await stop.gone()

        log, after = await talk.log(), (await talk.state()).control
        assert len(log) == receipt.after.seq == after.seq
        assert (after.turns, after.calls, after.decisions, after.interrupts) == ((), (), (), ())
        commit = log[receipt.before.seq :]
        assert len({event.occurred_at for event in commit}) == 1
        assert {event.turn_id for event in commit} == {before.turns[0].id}
        assert codes(log) == {before.turns[0].id: ["cancelled"]}
        assert receipt.ended == (before.turns[0].id,)
        [resumed] = of(commit, ev.SessionInterruptResumed)
        assert resumed.interrupt_id == before.interrupts[0].id
        assert (resumed.status, resumed.payload) == ("cancelled", {"status": "cancelled"})
        assert of(commit, ev.HeadMoved) == of(commit, ev.DecisionRequested) == []

        whole = await talk.path()
        assert whole[: len(path)] == path
        assert {type(message) for message in whole[len(path) :]} == {ToolMessage}
        assert list(results(whole).values()) == [["done"]] + [[CANCELLED]] * 4


async def test_the_next_message_starts_a_turn_with_a_valid_transcript() -> None:
    """Each call directly followed by its result, in the order of the calls."""
    stop = Stop()
    async with asked(stop) as (provider, talk):
        await talk.do(cmd.CancelSession())
        provider.will(text("fine"))
        receipt = await talk.say("and now?")
        await talk.until_idle()

        sent = (await provider.request(3)).messages
        assert is_valid(sent)
        assert [message["role"] for message in sent] == [
            *("user", "assistant", "tool", "assistant"),
            *("tool", "tool", "tool", "tool", "user"),
        ]
        told = [message["content"] for message in sent if message["role"] == "tool"]
        assert told == ["done", *[CANCELLED] * 4]
        log = await talk.log()
        [first, second] = codes(log)
        assert codes(log) == {first: ["cancelled"], second: [None]}
        assert second == receipt.turn_id


async def test_calls_that_nobody_opened_get_their_result() -> None:
    """The worker recorded the reply and asked a person before it started anything."""
    agent = Agent("a")

    @agent.decide(on="llm.finished")
    async def decide(request: DecisionRequest) -> Any:
        actions = (interrupt("look first"),)
        return DecisionResponse(messages=request.proposed.messages, actions=actions)

    async with talking(agent) as talk:
        await talk.say("/tool one {}\n/tool two {}")
        assert (await talk.until_paused()).control.calls == ()
        await talk.do(cmd.CancelSession())
        assert list(results(await talk.path()).values()) == [[CANCELLED], [CANCELLED]]


async def test_a_call_whose_result_was_not_recorded_yet_has_one() -> None:
    """The tool returned while a person was asked about another, so its message waited."""
    stop, go_on = Stop(), asyncio.Event()

    async def slow() -> str:
        """Return while the branch is paused."""
        await go_on.wait()
        return "done"

    async with talking(Agent("a", tools=[slow, stop.hang])) as talk:
        await talk.say("/tool slow {}\n/tool hang {}")
        await stop.started()
        await talk.do(cmd.RaiseInterrupt(reason="hold"))
        go_on.set()
        await talk.until(lambda state: [call.name for call in state.control.calls] == ["hang"])
        await talk.do(cmd.CancelSession())
        told = list(results(await talk.path()).values())
        assert [len(each) for each in told] == [1, 1]
        assert told[1] == [CANCELLED]


async def test_an_answer_to_a_question_that_a_cancel_ended_does_nothing() -> None:
    """What it held never runs."""
    stop = Stop()
    async with asked(stop) as (_, talk):
        [question] = (await talk.state()).control.interrupts
        await talk.do(cmd.CancelSession())
        answer = cmd.Answer(interrupt_id=question.id, payload={"approved": True})
        receipt = await talk.do(cmd.ResumeInterrupt(answer=answer))
        assert (receipt.recorded, receipt.cleared) == (False, ())


async def test_a_parked_turn_is_cancelled_beside_the_one_that_runs() -> None:
    """Its results go to its own branch, and the head stays on the active one."""
    stop = Stop()
    async with asked(stop) as (provider, talk):
        left = await talk.path()
        await talk.do(cmd.ClientView(messages=(UserMessage(id="edit", content="instead"),)))
        connection = await provider.request(3)
        turns = (await talk.state()).control.turns
        assert [turn.parked for turn in turns] == [True, False]
        assert stop.ended == []
        receipt = await talk.do(cmd.CancelSession())
        await connection.closed()
        await stop.gone()

        assert stop.ended == ["cancelled"]
        assert receipt.ended == tuple(turn.id for turn in turns)
        log, state = await talk.log(), await talk.state()
        assert codes(log) == {turn.id: ["cancelled"] for turn in turns}
        assert state.control.head == "edit"
        assert [m.id for m in await talk.path()] == ["edit"]
        ended = [body.message for body in of(log[receipt.before.seq :], ev.MessageNew)]
        assert [message.content for message in ended] == [CANCELLED] * 4

        provider.will(text("back"))
        await talk.do(cmd.ClientView(messages=(*left, UserMessage(id="more", content="and here?"))))
        await talk.until_idle()
        whole = await talk.path()
        assert list(results(whole).values()) == [["done"]] + [[CANCELLED]] * 4
        assert is_valid((await provider.request(4)).messages)


async def test_a_tool_of_a_turn_that_is_abandoned_is_cancelled() -> None:
    """Its question was given up while the client was elsewhere: as in a cancel."""
    stop = Stop()
    agent = asking(stop)
    async with (
        Provider() as provider,
        Engine(agents=[agent], db=MemoryStore(), models={"far": provider.model}) as engine,
    ):
        talk = await Talk.begin(engine)
        provider.will(calls("hang", "send"), text("instead"))
        await talk.say("hi")
        question = (await talk.until_paused()).control.interrupts[0]
        await stop.started()
        await talk.do(cmd.ClientView(messages=(UserMessage(id="edit", content="x"),)))
        await talk.until(lambda state: len(state.control.turns) == 1)
        answer = cmd.Answer(interrupt_id=question.id, payload={"approved": True})
        await talk.do(cmd.ResumeInterrupt(answer=answer))
        await stop.gone()

        assert stop.ended == ["cancelled"]
        assert codes(await talk.log())[question.turn_id] == ["abandoned"]


async def test_what_waits_for_a_turn_is_dropped_with_it() -> None:
    """Queued input starts nothing, and actions are not taken; the worker that has one stops."""
    stop = Stop()
    agent, model = Agent("a", llm="slow"), Slow()

    @agent.decide(on="client.action")
    async def decide(request: DecisionRequest) -> Any:
        await stop.hang()

    async with Engine(agents=[agent], db=MemoryStore(), models={"slow": model}) as engine:
        talk = await Talk.begin(engine)
        first = await talk.say("hi")
        await model.said.wait()
        queued = [
            await talk.do(
                cmd.AppendMessages(messages=(UserMessage(id=name, content=name),), queue=True)
            )
            for name in ("second", "third")
        ]
        for name in ("now", "later"):
            await talk.do(cmd.TakeAction(name=name))
        await stop.started()
        receipt = await talk.do(cmd.CancelSession())
        await stop.gone()
        await model.closed.wait()

        log, control = await talk.log(), (await talk.state()).control
        commit = log[receipt.before.seq :]
        dropped = [event.turn_id for event in commit if isinstance(event.body, ev.TurnDropped)]
        assert dropped == [each.turn_id for each in queued]
        assert len(of(commit, ev.DecisionDropped)) == 2
        assert of(commit, ev.DecisionWaiting) == []
        assert (control.queue, control.turns, control.decisions) == ((), (), ())
        assert codes(log) == {first.turn_id: ["cancelled"]}
        assert receipt.ended == (first.turn_id,)
        assert len(log) == control.seq == receipt.after.seq
        assert [m.id for m in await talk.path()] == ["u0"]
        assert len(model.requests) == 1


async def test_a_turn_from_the_queue_takes_along_what_waits_behind_it() -> None:
    """The turn that all of it once waited behind has ended well before."""
    async with (
        Provider() as provider,
        Engine(
            agents=[Agent("a", llm="far")], db=MemoryStore(), models={"far": provider.model}
        ) as engine,
    ):
        talk = await Talk.begin(engine)
        provider.will(text("one"))
        ids = [(await talk.say("hi")).turn_id]
        for name in ("second", "third"):
            message = UserMessage(id=name, content=name)
            waits = await talk.do(cmd.AppendMessages(messages=(message,), queue=True))
            ids.append(waits.turn_id)
        connection = await provider.request(2)
        receipt = await talk.do(cmd.CancelSession())
        await connection.closed()

        assert receipt.ended == (ids[1],)
        log = await talk.log()
        assert codes(log) == {ids[0]: [None], ids[1]: ["cancelled"]}
        assert [e.turn_id for e in log if isinstance(e.body, ev.TurnDropped)] == [ids[2]]
        assert [m.content for m in await talk.path()] == ["hi", "one", "second"]
        assert len(provider.connections) == 2
