"""What comes after a cancel, or at the same moment."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine import Agent, DecisionRequest, DecisionResponse, Engine, Tool, llm_call, tool_call
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.env import MODEL_CALL
from engine.core.errors import CallNotOpen, StorageUnavailable
from engine.core.messages import AssistantMessage, UserMessage
from engine.core.state import Call, Control, Decision
from engine.core.worker import Error, GiveResult
from engine.runtime.clock import FakeClock
from engine.store.memory import MemoryStore
from tests.agui.given import until
from tests.runtime.given import Slow, Talk
from tests.runtime.stopping import CANCELLED, Gated, Stop, Waiting, codes, of, results, talking

FAILED = Error(code="provider_error", message="late", retryable=True)


@asynccontextmanager
async def busy(stop: Stop) -> AsyncGenerator[Talk]:
    """A turn with a model call, a tool and a worker's own tool at the same time."""
    agent = Agent("a", llm="slow", tools=[stop.hang, Tool("own")])

    @agent.decide(on=("client.messages", "tool.execute"))
    async def decide(request: DecisionRequest) -> Any:
        if request.trigger.type == "client.messages":
            actions = (llm_call(), tool_call("hang"), tool_call("own"))
            return DecisionResponse(messages=request.trigger.messages, actions=actions)
        if getattr(request.trigger, "name", "") == "own":
            await stop.hang()
        return request.proposed

    model = Slow()
    async with Engine(agents=[agent], db=MemoryStore(), models={"slow": model}) as engine:
        talk = await Talk.begin(engine)
        await talk.say("hi")
        await model.said.wait()
        await stop.started(2)
        yield talk


def call_of(control: Control, kind: str) -> Call:
    """Return the open call of a kind."""
    [call] = [call for call in control.calls if call.kind == kind]
    return call


def out(control: Control) -> Decision:
    """Return the decision the worker is asked about."""
    [decision] = [decision for decision in control.decisions if decision.is_out]
    return decision


Late = Callable[[Control], cmd.Command]
"""A report on what was open."""


def model_answered(control: Control) -> cmd.Command:
    """The model's reply comes after all."""
    call = call_of(control, "llm")
    reply = AssistantMessage(id=call.message_id, content="late")
    return cmd.FinishModelCall(call_id=call.id, attempt=call.attempt, message=reply)


def failed(kind: str) -> Late:
    """Return the report of a call's failure that another attempt would follow."""

    def report(control: Control) -> cmd.Command:
        call = call_of(control, kind)
        return cmd.FailCall(call_id=call.id, attempt=call.attempt, error=FAILED)

    return report


def finished(kind: str) -> Late:
    """Return the report of a tool's result."""

    def report(control: Control) -> cmd.Command:
        call = call_of(control, kind)
        return cmd.FinishToolCall(call_id=call.id, attempt=call.attempt, result="late")

    return report


def settled(kind: str) -> Late:
    """Return what somebody outside says who had the call."""

    def report(control: Control) -> cmd.Command:
        call = call_of(control, kind)
        return cmd.SettleCall(call_id=call.id, result="late", caller="machine")

    return report


def worker_answered(control: Control) -> cmd.Command:
    """The worker has the result of its own tool, and starts something more."""
    decision = out(control)
    response = DecisionResponse(actions=(GiveResult(result="late"), llm_call()))
    return cmd.AnswerDecision(decision_id=decision.id, attempt=decision.attempt, response=response)


def worker_failed(control: Control) -> cmd.Command:
    """The worker gives up."""
    decision = out(control)
    return cmd.FailDecision(decision_id=decision.id, attempt=decision.attempt, error=FAILED)


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(model_answered, id="model answered"),
        pytest.param(failed("llm"), id="model failed"),
        pytest.param(finished("function"), id="tool returned"),
        pytest.param(failed("function"), id="tool failed"),
        pytest.param(finished("worker"), id="worker's tool returned"),
        pytest.param(failed("worker"), id="worker's tool failed"),
        pytest.param(settled("worker"), id="worker's tool settled"),
    ],
)
async def test_a_late_report_on_a_call_is_refused(late: Late) -> None:
    """The call is not open any more; nothing is recorded."""
    stop = Stop()
    async with busy(stop) as talk:
        before = (await talk.state()).control
        await talk.do(cmd.CancelSession())
        await stop.gone()
        log = await talk.log()
        with pytest.raises(CallNotOpen):
            await talk.do(late(before))
        assert await talk.log() == log
        assert codes(log) == {before.turns[0].id: ["cancelled"]}


@pytest.mark.parametrize(
    "late",
    [pytest.param(worker_answered, id="answered"), pytest.param(worker_failed, id="failed")],
)
async def test_a_late_answer_of_a_worker_is_ignored(late: Late) -> None:
    """Its decision was dropped: no error, and nothing is recorded."""
    stop = Stop()
    async with busy(stop) as talk:
        before = (await talk.state()).control
        await talk.do(cmd.CancelSession())
        await stop.gone()
        log = await talk.log()
        receipt = await talk.do(late(before))
        assert (receipt.recorded, receipt.turn_id, receipt.ended) == (False, None, ())
        assert await talk.log() == log


async def test_a_report_of_an_attempt_that_was_given_up_is_refused() -> None:
    """Its deadline has passed and the next attempt waits; the call itself is still open."""
    clock, model = FakeClock(), Slow()
    async with Engine(
        agents=[Agent("a", llm="slow")], db=MemoryStore(), models={"slow": model}, clock=clock
    ) as engine:
        talk = await Talk.begin(engine)
        await talk.say("hi")
        await model.said.wait()
        before = (await talk.state()).control
        clock.advance(MODEL_CALL.run)
        await model.closed.wait()
        await talk.until(lambda state: state.control.calls[0].attempt == 2)
        log = await talk.log()
        for late in (model_answered, failed("llm")):
            with pytest.raises(CallNotOpen):
                await talk.do(late(before))
        assert await talk.log() == log


# -------------------------------------------------------------------- twice


async def test_cancelling_again_records_nothing() -> None:
    """One after another, and two at once."""
    stop = Stop()
    async with busy(stop) as talk:
        [turn] = (await talk.state()).control.turns
        both = await asyncio.gather(talk.do(cmd.CancelSession()), talk.do(cmd.CancelSession()))
        assert sorted(receipt.ended for receipt in both) == [(), (turn.id,)]
        log = await talk.log()
        again = await talk.do(cmd.CancelSession())
        assert (again.recorded, again.ended) == (False, ())
        assert await talk.log() == log
        assert codes(log) == {turn.id: ["cancelled"]}


async def test_a_session_with_nothing_open_is_not_changed() -> None:
    """Its turn has ended by itself."""
    async with talking(Agent("a")) as talk:
        await talk.say("/say hello")
        await talk.until_idle()
        log = await talk.log()
        receipt = await talk.do(cmd.CancelSession())
        assert (receipt.recorded, receipt.ended) == (False, ())
        assert await talk.log() == log


async def test_a_question_outside_a_turn_is_ended_by_a_cancel() -> None:
    """No turn is open, so none completes; the conversation is free again."""
    async with talking(Agent("a")) as talk:
        await talk.say("/say hello")
        await talk.until_idle()
        await talk.do(cmd.RaiseInterrupt(reason="hold"))
        receipt = await talk.do(cmd.CancelSession())
        [event] = (await talk.log())[receipt.before.seq :]
        assert isinstance(event.body, ev.SessionInterruptResumed)
        assert (event.turn_id, event.body.status, receipt.ended) == (None, "cancelled", ())
        await talk.say("/say free")
        await talk.until_idle()
        assert [m.content for m in await talk.path()][-1] == "free"


# ------------------------------------------------------------ at that moment


@asynccontextmanager
async def waiting() -> AsyncGenerator[tuple[Gated, Waiting, Talk]]:
    """A turn whose model has said a word."""
    store, model = Gated(), Waiting()
    async with Engine(agents=[Agent("a", llm="m")], db=store, models={"m": model}) as engine:
        talk = await Talk.begin(engine)
        await talk.say("hi")
        await model.said.wait()
        yield store, model, talk


async def reports(talk: Talk) -> bool:
    """Whether some work is through, and about to tell."""
    entry = talk.engine.reader(talk.session_id, 0)._entry
    return any(running.reporting for running in entry.work.values())


async def test_a_reply_that_ends_while_the_cancel_is_written_is_refused() -> None:
    """It comes second, so it is not recorded."""
    async with waiting() as (store, model, talk):
        store.open_gate.clear()
        cancelling = asyncio.create_task(talk.do(cmd.CancelSession()))
        await store.held.wait()
        model.go_on.set()
        await until(lambda: reports(talk))
        store.open_gate.set()
        receipt = await cancelling

        await talk.until_idle()
        assert [m.role for m in await talk.path()] == ["user"]
        model.said.clear()
        await talk.say("again")
        await talk.until_idle()
        log = await talk.log()
        assert codes(log) == {receipt.ended[0]: ["cancelled"], log[-1].turn_id: [None]}
        assert len(of(log, ev.LlmCallCompleted)) == 1


async def test_a_cancel_that_comes_while_the_last_reply_is_written_finds_nothing() -> None:
    """The reply comes first: it is whole, and its turn has ended well."""
    async with waiting() as (store, model, talk):
        store.open_gate.clear()
        model.go_on.set()
        await store.held.wait()
        cancelling = asyncio.create_task(talk.do(cmd.CancelSession()))
        await asyncio.sleep(0)
        store.open_gate.set()
        receipt = await cancelling

        assert (receipt.recorded, receipt.ended) == (False, ())
        assert [m.content for m in await talk.path()] == ["hi", "well"]
        log = await talk.log()
        assert codes(log) == {log[-1].turn_id: [None]}


async def test_a_reply_that_is_being_written_when_the_engine_stops_is_recorded() -> None:
    """A commit that is under way is waited for; what it asks for is the next engine's to do."""
    leave = asyncio.Event()

    async def live() -> None:
        async with waiting() as (store, model, talk):
            started.set_result((store, model, talk))
            await leave.wait()

    started = asyncio.get_running_loop().create_future()
    living = asyncio.create_task(live())
    store, model, talk = await started
    await talk.do(cmd.AppendMessages(messages=(UserMessage(id="u", content="x"),), queue=True))
    store.open_gate.clear()
    model.go_on.set()
    await store.held.wait()
    leave.set()
    await until(lambda: has_stopped(talk.engine))
    store.open_gate.set()
    await living

    await store.open()
    log = await store.events(talk.session_id)
    assert codes(log) == {log[1].turn_id: [None]}
    assert log[-1].body.type == "llm.call.requested"
    assert len(model.requests) == 1


async def has_stopped(engine: Engine) -> bool:
    """Whether the engine was left."""
    return not engine.is_running


async def test_a_cancel_that_could_not_be_recorded_stops_nothing() -> None:
    """What is not in the log has not happened: the model goes on, and its reply is taken."""
    async with waiting() as (store, model, talk):
        log = await talk.log()
        store.fails = True
        with pytest.raises(StorageUnavailable):
            await talk.do(cmd.CancelSession())
        store.fails = False
        assert await talk.log() == log
        model.go_on.set()
        await talk.until_idle()
        assert [m.content for m in await talk.path()] == ["hi", "well"]


async def test_a_cancel_at_any_moment_leaves_nothing_running() -> None:
    """However far the turn has come: one end, one result for each call, no task that lives on."""
    script = "/think hm\n/say well\n/tool quick {}\n/then /tool quick {}\n/then /tool hang {}"
    stop = Stop()

    async def quick() -> str:
        """Be done at once."""
        return "done"

    async with Engine(agents=[Agent("a", tools=[quick, stop.hang])], db=MemoryStore()) as engine:
        for moment in range(80):
            talk = Talk(engine, f"s{moment}", f"th{moment}")
            asked = await talk.say(script)
            for _ in range(moment):
                await asyncio.sleep(0)
            receipt = await talk.do(cmd.CancelSession())

            control = (await talk.state()).control
            assert (control.turns, control.calls, control.decisions) == ((), (), ())
            assert receipt.ended == (asked.turn_id,)
            assert codes(await talk.log()) == {asked.turn_id: ["cancelled"]}
            for told in results(await talk.path()).values():
                assert told in (["done"], [CANCELLED])
            entry = engine.reader(talk.session_id, 0)._entry
            assert (entry.work, entry.feed.live) == ({}, {})
        # The last ones came as far as the tool that has to be stopped.
        assert stop.running
        await stop.gone()
        assert set(stop.ended) == {"cancelled"}
