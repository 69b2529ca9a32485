"""Inputs at the head over HTTP. Source: `protocol.md` sections 2, 3 and 4, and 13 for the route."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from engine import Agent, DecisionRequest, llm_call
from engine.core import events as ev
from engine.core.state import State
from engine.core.status import status
from tests.agui.given import Event, Server, is_running, until, user
from tests.protocol.given import history, ids, log_of, path_of, served, state_of


async def send(server: Server, kind: str, **members: Any) -> tuple[int, Event]:
    """Post an input; return the status, and the reply or the problem."""
    beside = {k: members.pop(k) for k in ("turn_id", "queue") if k in members}
    body = {"agent_id": "a", "thread_id": "t", **beside, "input": {"type": kind, **members}}
    response = await server.client.post("/api/client/sessions/input", json=body)
    return response.status_code, response.json()


async def say(server: Server, message: Event, **more: Any) -> Event:
    """Send one message, which is taken; return the reply."""
    code, reply = await send(server, "client.message", message=message, **more)
    assert code == 202, reply
    return reply


async def settled(server: Server, condition: Callable[[State], bool] | None = None) -> None:
    """Wait until no turn is open, or until something else holds."""

    async def holds() -> bool:
        state = await state_of(server)
        return condition(state) if condition is not None else not state.control.turns

    await until(holds)


async def started(server: Server) -> list[str | None]:
    """Return the turns that started, in order."""
    return [e.turn_id for e in await log_of(server) if isinstance(e.body, ev.TurnStarted)]


# ---------------------------------------------------------------- section 2


async def test_2_twice_a_turn_id_returns_that_turn_over_http() -> None:
    """While it runs and when it is over, with the same message and with another one."""
    async with served() as (server, heard):
        first = await say(server, user("u1", "/tokens 30 every 1"), turn_id="mine")
        assert (first["turn_id"], first["queued"]) == ("mine", False)
        for message in (user("u1", "x"), user("u9", "x")):
            again = await say(server, message, turn_id="mine", queue=True)
            assert (again["turn_id"], again["queued"]) == ("mine", False)
        await settled(server)
        again = await say(server, user("u9", "x"), turn_id="mine")
        assert again["turn_id"] == "mine"
        assert len(heard.requests) == 1
        assert await started(server) == ["mine"]


async def test_2_twice_a_message_without_a_turn_id_belongs_to_its_turn_over_http() -> None:
    """The reply names the turn of the first one."""
    async with served() as (server, _):
        first = await say(server, user("u1", "/say hi"))
        await settled(server)
        again = await say(server, user("u1", "/say hi"))
        assert again["turn_id"] == first["turn_id"]
        assert await started(server) == [first["turn_id"]]


# ---------------------------------------------------------------- section 3


async def test_3_message_is_recorded_at_the_head_over_http() -> None:
    """Below what a page has said and heard."""
    async with served() as (server, heard):
        await server.run(user("u1", "/say hi"))
        await say(server, user("u2", "/say ok"))
        await settled(server)
        assert ids(heard.last)[::2] == ["u1", "u2"]
        assert len(await path_of(server)) == 4


async def test_3_append_drops_ids_that_are_recorded_already_over_http() -> None:
    """The rest is recorded at the head, and no branch begins."""
    async with served() as (server, _):
        await server.run(user("u1", "/say hi"))
        messages = [user("u1", "/say hi"), user("u2", "note"), user("u3", "/say ok")]
        code, _ = await send(server, "client.append", messages=messages)
        assert code == 202
        await settled(server)
        path = await path_of(server)
        assert [m.id for m in path if m.role == "user"] == ["u1", "u2", "u3"]


async def test_3_append_of_a_frontends_result_ends_its_call_over_http() -> None:
    """The turn goes on."""
    tools = [{"name": "pick", "description": "", "parameters": {"type": "object"}}]
    async with served() as (server, _):
        asked = await server.run(user("u1", "/tool pick {}\n/then /say picked"), tools=tools)
        [call_id] = asked.last["outcome"]["pendingToolCallIds"]
        result = {"id": "t1", "role": "tool", "tool_call_id": call_id, "content": "blue"}
        code, reply = await send(server, "client.append", messages=[result])
        assert (code, reply["turn_id"]) == (202, asked.turn_id)
        await settled(server)
        assert (await history(server))[-1]["content"] == "picked"


# ---------------------------------------------------------------- section 4


async def test_4_queue_must_be_asked_for_over_http() -> None:
    """409 without it, 202 and `queued: true` with it."""
    async with served() as (server, _):
        await say(server, user("u1", "/hang"), turn_id="first")
        code, problem = await send(server, "client.message", message=user("u2", "/say two"))
        assert (code, problem["code"]) == (409, "turn_already_active")
        reply = await say(server, user("u2", "/say two"), queue=True)
        assert reply["queued"] is True
        assert reply["turn_id"] not in {None, "first"}
        assert ids(await path_of(server)) == ["u1"]


async def test_4_queue_is_not_needed_when_nothing_runs_over_http() -> None:
    """The reply does not say queued."""
    async with served() as (server, _):
        reply = await say(server, user("u1", "/say hi"), queue=True)
        assert reply["queued"] is False
        await settled(server)


async def test_4_queue_is_not_for_views_over_http() -> None:
    """Such a body is refused, whatever runs."""
    async with served() as (server, _):
        code, _ = await send(
            server, "client.messages", messages=[user("u1", "/say hi")], queue=True
        )
        assert code == 422


async def test_4_queue_starts_in_order_of_arrival_over_http() -> None:
    """Each when the one before it is over."""
    async with served() as (server, _):
        await say(server, user("u1", "/tokens 30 every 2"), turn_id="first")
        for number in (2, 3):
            reply = await say(
                server, user(f"u{number}", "/say ok"), turn_id=f"turn {number}", queue=True
            )
            assert reply["queued"] is True
        await settled(server)
        assert await started(server) == ["first", "turn 2", "turn 3"]
        path = await path_of(server)
        assert [m.id for m in path if m.role == "user"] == ["u1", "u2", "u3"]


async def test_4_queue_is_dropped_when_the_turn_is_cancelled_over_http() -> None:
    """It never starts."""
    async with served() as (server, heard):
        await say(server, user("u1", "/hang"), turn_id="first")
        await say(server, user("u2", "/say two"), turn_id="second", queue=True)
        assert (await server.cancel())["turn_ids"] == ["first"]
        dropped = [e.turn_id for e in await log_of(server) if isinstance(e.body, ev.TurnDropped)]
        assert dropped == ["second"]
        assert await started(server) == ["first"]
        assert len(heard.requests) == 1


async def test_4_queue_is_known_to_views_over_http() -> None:
    """A page that shows what waits is attached to what runs."""
    async with served() as (server, _):
        running = asyncio.create_task(server.run(user("u1", "/hang")))
        await until(lambda: is_running(server))
        await say(server, user("u2", "/say two"), queue=True)
        attached = asyncio.create_task(server.run(user("u1", "/hang"), user("u2", "/say two")))
        await until(lambda: has_readers(server, 2))
        await server.cancel()
        first, second = await running, await attached
        assert (second.status, second.turn_id) == (200, first.turn_id)


async def has_readers(server: Server, count: int) -> bool:
    """Whether so many streams wait for more."""
    [row] = await server.engine.store.sessions(limit=1)
    return server.engine.reader(row.session_id, 0).feed.readers == count


# ------------------------------------------------------- actions (section 5)


@pytest.mark.parametrize("wanted", [True, False], ids=["a worker", "no worker"])
async def test_5_client_action_answered_by_a_model_call_opens_a_turn_over_http(
    wanted: bool,  # noqa: FBT001
) -> None:
    """The worker hears the name and the arguments; without one nothing comes of it."""
    heard_of: list[Any] = []
    agent = Agent("a")
    if wanted:

        @agent.decide(on="client.action")
        def decide(request: DecisionRequest) -> Any:
            heard_of.append(request.trigger)
            return llm_call()

    async with served(agent) as (server, heard):
        await server.run(user("u1", "/say hi"))
        code, _ = await send(server, "client.action", name="again", args={"n": 1})
        assert code == 202
        if wanted:
            await until(lambda: has_called(heard.requests, 2))
            assert (heard_of[0].name, heard_of[0].args) == ("again", {"n": 1})
        await settled(server, lambda s: not s.control.turns and not s.control.decisions)
        assert len(await started(server)) == (2 if wanted else 1)


async def has_called(requests: list[Any], count: int) -> bool:
    """Whether the model has been called so often."""
    return len(requests) >= count


async def test_4_status_of_a_turn_is_that_of_its_session_over_http() -> None:
    """A page that asks is told what the engine would say."""
    tools = [{"name": "pick", "description": "", "parameters": {"type": "object"}}]
    async with served() as (server, _):
        await server.run(user("u1", "/tool pick {}"), tools=tools)
        shown = (await server.client.get("/api/client/sessions/t")).json()
        state = await state_of(server)
        assert shown["turns"] == [
            {"turn_id": turn.id, "status": status(state, turn)} for turn in state.control.turns
        ]
        assert shown["status"] == "waiting"
