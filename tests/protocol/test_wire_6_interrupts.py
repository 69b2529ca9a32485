"""Interrupts through the real route.

Source: `protocol.md` section 6; `agui.md` section 3.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine import Agent, DecisionRequest, RetryOverride, Tool, interrupt
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.worker import InterruptResumed, LlmFinished
from engine.runtime.clock import FakeClock
from tests.agui.given import Server, Stream, cancelled, is_saying, resolved, until, user
from tests.protocol.calls import NO, YES, log_of, serving, session_of, shown

SEND = '/tool send {"to": "ada"}\n/then /say done'
OPTIONS = [{"label": "Yes", "value": {"v": 1}, "style": "primary"}, {"label": "No", "value": False}]


class Desk:
    """A worker that asks a person before a tool runs; what ran, and what it was told."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.told: list[InterruptResumed] = []

    def agent(self, *, listens: bool = False, **payload: Any) -> Agent:
        """Declare the agent anew. With `listens` it hears the answers, and takes the proposal."""

        def send(to: str) -> str:
            """Send an email."""
            self.sent.append(to)
            return f"sent to {to}"

        agent = Agent("a", tools=[send])

        @agent.decide(on=["tool.execute", *(["interrupt.resumed"] if listens else [])])
        async def decide(request: DecisionRequest) -> Any:
            if isinstance(request.trigger, InterruptResumed):
                self.told.append(request.trigger)
                return request.proposed
            return interrupt("confirm", payload=payload or None)

        return agent


async def ask(server: Server, said: str = SEND) -> tuple[Stream, str]:
    """Run until a person is asked; return the run and the question's id."""
    stream = await server.run(user("u1", said))
    assert stream.outcome == "interrupt"
    return stream, stream.interrupts[0]["id"]


async def hold(server: Server, stream: Stream, interrupt_id: str, **more: Any) -> None:
    """A backend pauses the session of a run."""
    command = cmd.RaiseInterrupt(reason="hold", interrupt_id=interrupt_id, caller="machine", **more)
    await server.engine.submit(session_of(stream), command)


# ------------------------------------------------------------------------ raise


async def test_6_raise_several_in_one_response_over_http() -> None:
    """Three calls, three questions in one outcome, each with its own call."""
    agent = Agent("a", tools=[Tool("own", "Do it.", {"type": "object"})])

    @agent.decide(on="llm.finished")
    async def decide(request: DecisionRequest) -> Any:
        assert isinstance(request.trigger, LlmFinished)
        calls = request.trigger.message.tool_calls if request.trigger.message else ()
        asks = [interrupt("confirm", payload={"toolCallId": call.id}) for call in calls]
        return replace(request.proposed, actions=(*request.proposed.actions, *asks))

    async with serving(agent) as server:
        stream, _ = await ask(server, "/tool own {}\n/tool own {}\n/tool own {}")
        held = [i["toolCallId"] for i in stream.interrupts]
        assert held == stream.all("TOOL_CALL_START", "toolCallId")


async def test_6_held_calls_one_after_another_over_http() -> None:
    """Each answer runs its call and brings the next question, in one turn."""
    desk = Desk()
    said = '/tool send {"to": "ada"}\n/tool send {"to": "bob"}\n/then /say done'
    async with serving(desk.agent(message="Send?")) as server:
        first, question = await ask(server, said)
        second = await server.run(user("u1", said), resume=[resolved(question, YES)])
        assert (second.outcome, second.turn_id) == ("interrupt", first.turn_id)
        last = await server.run(
            user("u1", said), resume=[resolved(second.interrupts[0]["id"], YES)]
        )
        assert (last.text, last.turn_id, desk.sent) == ("done", first.turn_id, ["ada", "bob"])


async def test_6_an_id_that_was_ever_used_is_replaced_over_http() -> None:
    """A question that waited for a pause to end gets a fresh id: the old one is spent."""
    asked, go = asyncio.Event(), asyncio.Event()

    def send(to: str) -> str:
        """Send an email."""
        return to

    agent = Agent("a", tools=[send])

    @agent.decide(on="llm.finished")
    async def decide(request: DecisionRequest) -> Any:
        assert isinstance(request.trigger, LlmFinished)
        calls = request.trigger.message.tool_calls if request.trigger.message else ()
        if not calls:
            return request.proposed
        asked.set()
        await go.wait()
        question = interrupt("confirm", interrupt_id="mine", payload={"toolCallId": calls[0].id})
        return replace(request.proposed, actions=(*request.proposed.actions, question))

    async with serving(agent) as server:
        first = await server.run(user("u1", "/say hi"))
        await hold(server, first, "mine")
        await server.run(*shown("/say hi", first), resume=[resolved("mine", True)])
        running = asyncio.create_task(
            server.run(*shown("/say hi", first), user("u2", SEND), runId="second")
        )
        await asked.wait()
        await hold(server, first, "hold")
        paused = await running
        assert [i["id"] for i in paused.interrupts] == ["hold"]
        go.set()
        await until(lambda: _is_held(server, first))
        later = await server.run(resume=[resolved("hold", True)])
        assert later.outcome == "interrupt"
        assert later.interrupts[0]["id"] != "mine"


async def _is_held(server: Server, stream: Stream) -> bool:
    return any(b.held for b in await log_of(server, stream, ev.DecisionCompleted))


async def test_6_on_raising_the_model_call_in_flight_is_voided_over_http() -> None:
    """The text so far is closed and taken back; the question ends the run."""
    async with serving(Agent("a")) as server:
        running = asyncio.create_task(server.run(user("u1", "/tokens 100000 every 5")))
        await until(lambda: is_saying(server))
        [row] = await server.engine.store.sessions(limit=1)
        await server.engine.submit(row.session_id, cmd.RaiseInterrupt(reason="hold"))
        stream = await running
        assert stream.outcome == "interrupt"
        assert "TEXT_MESSAGE_END" in stream.types
        [snapshot] = stream.all("MESSAGES_SNAPSHOT", "messages")
        assert [m["role"] for m in snapshot] == ["user"]


# ----------------------------------------------------------------- while paused


async def test_6_while_paused_messages_are_refused_over_http() -> None:
    """Nothing of it is recorded, and the open questions are listed again."""
    desk = Desk()
    async with serving(desk.agent(message="Send?")) as server:
        stream, _ = await ask(server)
        await hold(server, stream, "hold")
        again = await server.run(*shown(SEND, stream), user("u2", "hello?"))
        assert again.warnings == ["session_interrupted"]
        assert [i["reason"] for i in again.interrupts] == ["confirm", "hold"]
        assert len(await log_of(server, stream, ev.MessageNew)) == 2


async def test_6_while_paused_input_on_another_path_is_accepted_over_http() -> None:
    """An edit runs as normal; going back finds the question."""
    desk = Desk()
    async with serving(desk.agent(message="Send?")) as server:
        stream, question = await ask(server)
        edited = await server.run(user("edit", "/say instead"))
        assert (edited.text, edited.turn_id != stream.turn_id) == ("instead", True)
        back = await server.run(*shown(SEND, stream))
        assert [i["id"] for i in back.interrupts] == [question]


# ------------------------------------------------------------------------- resume


@pytest.mark.parametrize("said", [False, 0, "", None, [], {"n": 1}], ids=repr)
async def test_6_resume_the_presence_of_an_answer_decides_over_http(said: Any) -> None:
    """The worker is told what was said; who said it is the channel's word."""
    desk = Desk()
    async with serving(desk.agent(listens=True)) as server:
        stream, question = await ask(server)
        said_on = await server.run(user("u1", SEND), resume=[resolved(question, said)])
        assert (said_on.outcome, said_on.turn_id) == ("success", stream.turn_id)
        [trigger] = desk.told
        assert (trigger.status, trigger.answer, trigger.payload) == ("resolved", said, said)
        assert trigger.responder == {"channel": "ag-ui", "user": "local"}
        assert desk.sent == []


async def test_6_resume_a_payloads_own_responder_is_removed_over_http() -> None:
    """A page cannot say that somebody else has answered."""
    desk = Desk()
    payload = {"approved": True, "responder": {"channel": "slack", "user": "boss"}}
    async with serving(desk.agent(listens=True)) as server:
        _, question = await ask(server)
        await server.run(user("u1", SEND), resume=[resolved(question, payload)])
        assert desk.told[0].payload == {"approved": True}
        assert desk.told[0].responder == {"channel": "ag-ui", "user": "local"}


async def test_6_resume_row_2_other_interrupts_still_pause_the_branch_over_http() -> None:
    """One answer of two: the other question comes again; in the end the tool runs once."""
    desk = Desk()
    async with serving(desk.agent(message="Send?")) as server:
        stream, question = await ask(server)
        await hold(server, stream, "hold")
        half = await server.run(user("u1", SEND), resume=[resolved(question, YES)])
        assert ([i["id"] for i in half.interrupts], desk.sent) == (["hold"], [])
        last = await server.run(user("u1", SEND), resume=[resolved("hold", None)])
        assert (last.text, desk.sent) == ("done", ["ada"])


@pytest.mark.parametrize("which", ["unknown", "already resumed"])
async def test_6_resume_row_4_old_and_unknown_ids_over_http(which: str) -> None:
    """A success with a warning; nothing is recorded, and nothing runs a second time."""
    desk = Desk()
    async with serving(desk.agent(message="Send?")) as server:
        stream, question = await ask(server)
        await server.run(user("u1", SEND), resume=[resolved(question, YES)])
        before = await log_of(server, stream, ev.SessionInterruptResumed)
        name = question if which == "already resumed" else "nobody"
        again = await server.run(resume=[resolved(name, NO)])
        assert (again.outcome, again.warnings) == ("success", ["unknown_interrupt"])
        assert await log_of(server, stream, ev.SessionInterruptResumed) == before
        assert desk.sent == ["ada"]


async def test_6_resume_row_4_of_another_session_over_http() -> None:
    """The id of a question belongs to its conversation."""
    desk = Desk()
    async with serving(desk.agent(message="Send?")) as server:
        _, question = await ask(server)
        other = await server.run(user("u1", SEND), thread="other")
        again = await server.run(user("u1", SEND), thread="other", resume=[resolved(question, YES)])
        assert again.warnings == ["unknown_interrupt"]
        assert again.interrupts == other.interrupts
        assert desk.sent == []


async def test_6_a_workers_tool_that_was_held_is_not_begun_again_over_http() -> None:
    """The second attempt runs while a person is asked about it, and goes on after the answer."""
    begun, go, runs = asyncio.Event(), asyncio.Event(), [0]
    own = Tool("own", "", {"type": "object"}, retry=RetryOverride(attempts=2, max=0))
    agent = Agent("a", tools=[own])

    @agent.decide(on="tool.execute")
    async def decide(request: DecisionRequest) -> Any:
        runs[0] += 1
        if request.attempt == 1:
            return {"actions": [{"type": "tool.error", "error": "busy", "retryable": True}]}
        begun.set()
        await go.wait()
        return {"actions": [{"type": "tool.result", "result": "did it"}]}

    async with serving(agent) as server:
        running = asyncio.create_task(server.run(user("u1", "/tool own {}\n/then /say ok")))
        await begun.wait()
        [row] = await server.engine.store.sessions(limit=1)
        state = await server.engine.state(row.session_id)
        assert state is not None
        payload = {"toolCallId": state.control.calls[0].id}
        await server.engine.submit(
            row.session_id, cmd.RaiseInterrupt(reason="hold", interrupt_id="hold", payload=payload)
        )
        assert (await running).outcome == "interrupt"
        answer = cmd.ResumeInterrupt(answer=cmd.Answer(interrupt_id="hold"))
        await server.engine.submit(row.session_id, answer)
        go.set()
        await until(lambda: _is_over(server, running.result()))
        assert runs == [2]


@pytest.mark.parametrize("down", [False, True], ids=["running", "down at that time"])
async def test_6_resume_row_5_past_its_expiry_over_http(down: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """The engine takes it back by its own clock; a later answer meets an old id."""
    desk = Desk()
    agent = desk.agent(message="Send?", expiresAt="2026-01-01T00:01:00Z")
    db = str(tmp_path / "agents.db")
    clock = FakeClock()
    async with serving(agent, clock=clock, db=db) as server:
        stream, question = await ask(server)
        assert stream.interrupts[0]["expiresAt"] == "2026-01-01T00:01:00Z"
        if not down:
            clock.advance(timedelta(minutes=2))
            await until(lambda: _is_over(server, stream))
    if down:
        clock.advance(timedelta(minutes=2))
    async with serving(agent, clock=clock, db=db) as server:
        await until(lambda: _is_over(server, stream))
        late = await server.run(*shown(SEND, stream), resume=[resolved(question, YES)], runId="x")
        assert "unknown_interrupt" in late.warnings
        [ended] = await log_of(server, stream, ev.SessionInterruptResumed)
        assert (ended.status, ended.payload) == ("expired", {"status": "expired"})
        assert desk.sent == []


async def _is_over(server: Server, stream: Stream) -> bool:
    return len(await log_of(server, stream, ev.TurnCompleted)) == 1


async def test_6_resume_row_6_answerable_by_a_higher_caller_only_over_http() -> None:
    """A page's answer is not taken, and the question stays open."""
    async with serving(Agent("a")) as server:
        said = await server.run(user("u1", "/say hi"))
        await hold(server, said, "hold", answer_by="machine")
        view = shown("/say hi", said)
        for entry in (resolved("hold", True), cancelled("hold")):
            refused = await server.run(*view, resume=[entry])
            assert refused.warnings == ["forbidden"]
            assert [i["id"] for i in refused.interrupts] == ["hold"]


# ------------------------------------------------------------------------ prompts


@pytest.mark.parametrize(("payload", "sent"), [(YES, ["ada"]), (NO, [])], ids=["yes", "no"])
async def test_6_prompt_a_message_is_approved_or_declined_over_http(
    payload: Any, sent: Any
) -> None:
    """Shown with its message alone; the plain payload is what the worker would be told."""
    desk = Desk()
    async with serving(desk.agent(listens=True, message="Send?")) as server:
        stream, question = await ask(server)
        assert stream.interrupts[0]["message"] == "Send?"
        assert "responseSchema" not in stream.interrupts[0]
        await server.run(user("u1", SEND), resume=[resolved(question, payload)])
        assert (desk.told[0].payload, desk.sent) == (payload, sent)


@pytest.mark.parametrize("value", [{"v": 1}, False], ids=repr)
async def test_6_prompt_a_choice_is_one_of_the_values_offered_over_http(value: Any) -> None:
    """What was offered is taken, and told with who chose it."""
    desk = Desk()
    who = {"channel": "ag-ui", "user": "local"}
    async with serving(desk.agent(listens=True, metadata={"options": OPTIONS})) as server:
        _, question = await ask(server)
        await server.run(user("u1", SEND), resume=[resolved(question, value)])
        [told] = desk.told
        assert told.answer == value
        assert told.payload == {"status": "resolved", "payload": value, "responder": who}


@pytest.mark.parametrize("value", [{"v": True}, {"v": 2}, 0, "Yes", None], ids=repr)
async def test_6_prompt_nothing_that_was_not_offered_can_be_sent_over_http(value: Any) -> None:
    """The question comes again."""
    desk = Desk()
    async with serving(desk.agent(listens=True, metadata={"options": OPTIONS})) as server:
        _, question = await ask(server)
        again = await server.run(user("u1", SEND), resume=[resolved(question, value)])
        assert (again.outcome, again.warnings) == ("interrupt", ["invalid_answer"])
        assert desk.told == []


async def test_6_prompt_a_schema_without_options_is_enforced_over_http() -> None:
    """A mismatch brings the question again; what fits is taken as it is."""
    desk = Desk()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with serving(desk.agent(listens=True, responseSchema=schema)) as server:
        stream, question = await ask(server)
        assert stream.interrupts[0]["responseSchema"] == schema
        again = await server.run(user("u1", SEND), resume=[resolved(question, {"n": "x"})])
        assert again.warnings == ["invalid_answer"]
        await server.run(user("u1", SEND), resume=[resolved(question, {"n": 1})])
        assert desk.told[0].payload == {"n": 1}


async def test_6_a_pause_outlives_a_restart_over_http(tmp_path: Path) -> None:
    """Asked in one process, answered in the next, in the same turn."""
    desk = Desk()
    db = str(tmp_path / "agents.db")
    async with serving(desk.agent(message="Send?"), db=db) as server:
        stream, question = await ask(server)
    async with serving(desk.agent(message="Send?"), db=db) as server:
        after = await server.run(
            *shown(SEND, stream), resume=[resolved(question, YES)], runId="after"
        )
        assert (after.text, after.turn_id, desk.sent) == ("done", stream.turn_id, ["ada"])
