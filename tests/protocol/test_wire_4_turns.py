"""Turns as pages see them: runs. Source: `protocol.md` section 4."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine import Agent, DecisionRequest, RetryOverride, interrupt, llm_call
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.errors import ModelError
from engine.core.messages import NO_RESULT
from engine.core.ports import Finish, ModelDelta, ModelRequest
from engine.core.status import active_turn, status
from tests.agui.given import (
    Event,
    Server,
    Stream,
    cancelled,
    is_running,
    resolved,
    serving,
    until,
    user,
)
from tests.protocol.given import history, ids, log_of, path_of, results, roles, served, state_of

TOOLS = [{"name": "pick", "description": "", "parameters": {"type": "object"}}]
PICK = "/tool pick {}\n/then /say picked"
SEND = '/tool send {"to": "ada"}\n/then /say sent'
ONCE = RetryOverride(attempts=1)


class Mailer:
    """An agent whose worker asks a person before it sends, and what was really sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def agent(self) -> Agent:
        """Declare it."""

        def send(to: str) -> str:
            """Send."""
            self.sent.append(to)
            return f"sent to {to}"

        agent = Agent("a", tools=[send])

        @agent.decide(on="tool.execute")
        def ask(request: DecisionRequest) -> Any:
            return interrupt("confirm", payload={"message": "Send?"})

        return agent


async def ask(server: Server) -> tuple[str, list[Event]]:
    """Run into a question; return its id, and what is shown."""
    stream = await server.run(user("u1", SEND))
    [question] = stream.interrupts
    return question["id"], await history(server)


async def pick(server: Server, script: str = PICK) -> tuple[Stream, list[Event]]:
    """Run until the frontend has to answer; return that run, and what is shown."""
    stream = await server.run(user("u1", script), tools=TOOLS)
    assert stream.last["outcome"]["pendingToolCallIds"]
    return stream, await history(server)


async def turns(server: Server) -> list[tuple[str, str | None]]:
    """Return the starts and ends of turns, with the code of an error."""
    found: list[tuple[str, str | None]] = []
    for event in await log_of(server):
        match event.body:
            case ev.TurnStarted():
                found.append(("started", None))
            case ev.TurnCompleted(error=error):
                found.append(("completed", error.code if error is not None else None))
            case _:
                continue
    return found


# --------------------------------------------------------- one running turn


async def test_4_one_running_turn_refuses_input_that_would_start_another_over_http() -> None:
    """409 with the code, and nothing of the input is recorded."""
    async with served() as (server, _):
        running = asyncio.create_task(server.run(user("u1", "/hang")))
        await until(lambda: is_running(server))
        refused = await server.run(user("u1", "/hang"), user("u2", "more"))
        assert (refused.status, refused.problem["code"]) == (409, "turn_already_active")
        assert ids(await path_of(server)) == ["u1"]
        await server.cancel()
        assert (await running).turn_id == refused.problem["turn_id"]


async def test_4_a_turn_has_one_id_for_its_whole_life_over_http() -> None:
    """Three runs: the question, the answer that leads to the frontend's tool, its result."""
    mailer = Mailer()
    async with served(mailer.agent()) as (server, _):
        script = '/tool send {"to": "ada"}\n/then /tool pick {}\n/then /then /say done'
        asked = await server.run(user("u1", script), tools=TOOLS)
        answers = [resolved(asked.interrupts[0]["id"], True)]
        again = await server.run(*await history(server), resume=answers, tools=TOOLS)
        [call_id] = again.last["outcome"]["pendingToolCallIds"]
        result = {"id": "t", "role": "tool", "toolCallId": call_id, "content": "blue"}
        last = await server.run(*await history(server), result, tools=TOOLS)
        assert last.text == "done"
        assert asked.turn_id == again.turn_id == last.turn_id
        assert await turns(server) == [("started", None), ("completed", None)]


# ------------------------------------------------------------------- status


async def test_4_status_of_a_turn_over_http() -> None:
    """How the runs of each end, and what the turn is doing then."""
    mailer = Mailer()
    async with served(mailer.agent()) as (server, _):
        await ask(server)
        state = await state_of(server)
        assert status(state, state.control.turns[0]) == "paused"
        await server.run(user("edit", PICK), tools=TOOLS)
        state = await state_of(server)
        assert [status(state, turn) for turn in state.control.turns] == ["parked", "waiting"]
        shown = await history(server)
        await server.run(*shown, user("u2", "/say done"), tools=TOOLS)
        state = await state_of(server)
        assert [status(state, turn) for turn in state.control.turns] == ["parked"]


# -------------------------------------------------------------------- ends


class Broken:
    """A provider that fails with one code."""

    def __init__(self, code: str) -> None:
        self.code = code

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """Fail."""
        if self.code:
            raise ModelError(self.code, "its own words")
        yield Finish()


@pytest.mark.parametrize(
    "code", ["provider_error", "rate_limited", "refused", "deadline_exceeded", "worker_error"]
)
async def test_4_ends_with_the_error_code_over_http(code: str) -> None:
    """One `RUN_ERROR` with the code, and none of the provider's or the worker's words."""
    agent = Agent("a", llm="broken", retry={"default": ONCE})
    if code == "worker_error":

        @agent.decide
        def decide(request: DecisionRequest) -> Any:
            raise RuntimeError("its own words")

    async with serving(agent, models={"broken": Broken(code)}) as server:
        stream = await server.run(user("u1", "hi"))
        assert stream.outcome == f"error {code}"
        assert "its own words" not in stream.last["message"]
        assert await turns(server) == [("started", None), ("completed", code)]


async def test_4_ends_with_the_error_code_cancelled_over_http() -> None:
    """Not an error on the wire, but an outcome of its own."""
    async with served() as (server, _):
        running = asyncio.create_task(server.run(user("u1", "/hang")))
        await until(lambda: is_running(server))
        await server.cancel()
        assert (await running).outcome == "cancelled"
        assert await turns(server) == [("started", None), ("completed", "cancelled")]


# ------------------------------------------------------------ parked turns


@pytest.mark.parametrize("what", ["paused", "waiting"])
async def test_4_parked_by_leaving_its_branch_while_another_turn_starts_over_http(
    what: str,
) -> None:
    """The edit runs as if there were no other turn; nothing of that is lost."""
    mailer = Mailer()
    async with served(mailer.agent()) as (server, _):
        first, shown = (await ask(server)) if what == "paused" else (await pick(server))
        edited = await server.run(user("edit", "/say instead"), tools=TOOLS)
        assert (edited.text, edited.outcome) == ("instead", "success")
        [left] = (await state_of(server)).control.turns
        assert left.parked
        back = await server.run(*shown, tools=TOOLS)
        assert back.turn_id == left.id
        assert back.outcome == ("interrupt" if what == "paused" else "success")
        turn = active_turn(await state_of(server))
        assert turn is not None
        assert turn.id == left.id
        assert first


async def test_4_parked_turn_whose_last_question_is_cleared_is_abandoned_over_http() -> None:
    """Given up with the edit: the old turn is over, the tool has not run."""
    mailer = Mailer()
    async with served(mailer.agent()) as (server, _):
        question, shown = await ask(server)
        stream = await server.run(user("edit", "/say instead"), resume=[cancelled(question)])
        assert (stream.text, stream.outcome) == ("instead", "success")
        assert ("completed", "abandoned") in await turns(server)
        assert mailer.sent == []
        again = await server.run(*shown)
        assert again.interrupts == []


async def test_4_parked_turn_that_is_approved_elsewhere_never_runs_over_http() -> None:
    """The answer comes with a view of another branch: it is cleared, and its sender is warned."""
    mailer = Mailer()
    async with served(mailer.agent()) as (server, _):
        question, _ = await ask(server)
        await server.run(user("edit", "/say instead"))
        other = await history(server)
        stream = await server.run(*other, resume=[resolved(question, True)])
        assert "answer_not_delivered" in stream.warnings
        assert ("completed", "abandoned") in await turns(server)
        assert mailer.sent == []


async def test_4_parked_comes_back_with_its_frontends_result_over_http() -> None:
    """The page went elsewhere, comes back, and answers in one request."""
    async with served() as (server, _):
        first, shown = await pick(server)
        await server.run(user("edit", "/say instead"), tools=TOOLS)
        [call_id] = first.last["outcome"]["pendingToolCallIds"]
        result = {"id": "t", "role": "tool", "toolCallId": call_id, "content": "blue"}
        stream = await server.run(*shown, result, tools=TOOLS)
        assert (stream.turn_id, stream.text) == (first.turn_id, "picked")


# ------------------------------------------------------------ what joins


async def test_4_joins_a_view_that_clears_what_pauses_its_branch_over_http() -> None:
    """One turn, one model call that reads the result and then the message."""
    mailer = Mailer()
    async with served(mailer.agent()) as (server, heard):
        question, shown = await ask(server)
        calls = len(heard.requests)
        stream = await server.run(
            *shown, user("u2", "/say both"), resume=[resolved(question, True)]
        )
        assert stream.text == "both"
        assert len(heard.requests) == calls + 1
        assert roles(heard.last) == ["user", "assistant", "tool", "user"]
        assert mailer.sent == ["ada"]
        assert await turns(server) == [("started", None), ("completed", None)]


async def test_4_joins_and_voids_client_calls_it_leaves_unanswered_over_http() -> None:
    """The model is told, the page is not: it sees no result it did not give."""
    async with served() as (server, heard):
        first, shown = await pick(server)
        stream = await server.run(*shown, user("u2", "/say instead"), tools=TOOLS)
        assert (stream.turn_id, stream.text) == (first.turn_id, "instead")
        assert [content for _, content in results(heard.last)] == ["not answered"]
        assert NO_RESULT not in [content for _, content in results(heard.last)]
        assert "TOOL_CALL_RESULT" not in stream.types


async def test_4_joins_only_when_all_that_pauses_is_cleared_over_http() -> None:
    """What is covered is cleared, the message is not recorded, and the rest comes again."""
    mailer = Mailer()
    async with served(mailer.agent()) as (server, _):
        question, shown = await ask(server)
        session_id = (await state_of(server)).control.session_id
        await server.engine.submit(session_id, cmd.RaiseInterrupt(reason="more", interrupt_id="i2"))
        stream = await server.run(*shown, user("u2", "x"), resume=[resolved("i2", True)])
        assert "session_interrupted" in stream.warnings
        assert [i["id"] for i in stream.interrupts] == [question]
        assert "u2" not in ids(await path_of(server))


async def test_4_joins_nothing_and_starts_a_turn_over_http() -> None:
    """The question belonged to no turn; the message begins one, and is answered once."""
    agent = Agent("a")

    @agent.decide(on="interrupt.resumed")
    def decide(request: DecisionRequest) -> Any:
        assert request.proposed.actions == ()
        return llm_call() if request.turn_id is not None else {}

    async with served(agent) as (server, heard):
        await server.run(user("u1", "/say hi"))
        session_id = (await state_of(server)).control.session_id
        await server.engine.submit(
            session_id, cmd.RaiseInterrupt(reason="check", interrupt_id="i1")
        )
        shown = await history(server)
        stream = await server.run(*shown, user("u2", "/say ok"), resume=[resolved("i1", True)])
        assert (stream.text, stream.outcome) == ("ok", "success")
        assert len(heard.requests) == 2
