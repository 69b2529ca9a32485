"""What a backend may do to a session: settle calls, answer freely, cancel, read the log."""

import asyncio
from typing import Any

import httpx
import pytest

from agui_server import create_app
from agui_server.settings import Settings
from engine import Agent, DecisionRequest, Tool
from tests.api.given import (
    CHOICE,
    CLIENT,
    FORM,
    LOOK,
    MACHINE,
    Api,
    Json,
    api,
    asking,
    code,
    message,
    one,
    resumed,
    user,
)

# -------------------------------------------------------------------- calls


def leaving_open() -> Agent:
    """Return an agent whose worker runs its tool later."""
    agent = Agent("a", tools=[Tool("look")])

    @agent.decide(on=("tool.execute",))
    def later(_request: DecisionRequest) -> Any:
        return {}

    return agent


async def open_call(server: Api, session_id: str) -> Json:
    """Wait for the call that the worker left open."""
    while True:
        shown = (await server.get(f"{MACHINE}/{session_id}")).json()
        if shown["calls"] and shown["calls"][0]["kind"] == "worker" and not shown["decisions"]:
            return shown["calls"][0]
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("outcome", "read"),
    [
        ({"result": "seen"}, "seen"),
        ({"result": None}, ""),
        ({"error": "too dark"}, "too dark"),
    ],
    ids=["result", "null", "error"],
)
async def test_a_machine_ends_a_workers_call(outcome: Json, read: str) -> None:
    """200 with its turn, which goes on; the same again is 409."""
    async with api(leaving_open()) as server:
        sent = (await server.submit(message("/tool look {}"))).json()
        call = await open_call(server, sent["session_id"])
        assert call["name"] == "look"
        body = {"call_id": call["id"], "attempt": call["attempt"], **outcome}
        path = f"{MACHINE}/{sent['session_id']}/calls/settle"
        settled = await server.post(path, body)
        assert (settled.status_code, settled.json()) == (200, {"turn_id": sent["turn_id"]})
        await server.until_idle()
        shown = (await server.get(f"{MACHINE}/{sent['session_id']}")).json()
        assert shown["messages"][2]["content"] == read
        assert code(await server.post(path, body)) == (409, "call_not_open")


async def test_an_older_attempt_ends_nothing() -> None:
    """409, and so does a call nobody knows."""
    async with api(leaving_open()) as server:
        sent = (await server.submit(message("/tool look {}"))).json()
        call = await open_call(server, sent["session_id"])
        path = f"{MACHINE}/{sent['session_id']}/calls/settle"
        for body in (
            {"call_id": call["id"], "attempt": 7, "result": "x"},
            {"call_id": "none", "result": "x"},
        ):
            assert code(await server.post(path, body)) == (409, "call_not_open")


async def test_a_tool_result_of_a_machine_ends_a_workers_call() -> None:
    """As an input, where a client's is 403."""
    async with api(leaving_open()) as server:
        sent = (await server.submit(message("/tool look {}"))).json()
        call = await open_call(server, sent["session_id"])
        given = {"type": "tool.result", "id": call["id"], "result": "seen"}
        reply = await server.submit(given, session_id=sent["session_id"])
        assert reply.json() == sent
        await server.until_idle()


# --------------------------------------------------------------- interrupts


async def test_a_machine_answers_freely() -> None:
    """Options bind a client only; a schema binds everybody."""
    async with api(asking(CHOICE, answer_by="machine")) as server:
        session_id = await one(server, LOOK)
        await server.until("interrupted")
        shown = (await server.get(f"{MACHINE}/{session_id}")).json()
        path = f"{MACHINE}/{session_id}/interrupts/{shown['interrupts'][0]['interrupt_id']}/answer"
        answered = await server.post(path, {"payload": {"approved": True, "by": "rule 7"}})
        assert answered.json() == {"resumed": True, "turn_id": shown["turn_id"]}
        await server.until_idle()
        [recorded] = await resumed(server)
        assert recorded.responder == {"channel": "machine"}
        assert recorded.payload == {"approved": True, "by": "rule 7"}
    async with api(asking(FORM, answer_by="machine")) as server:
        session_id = await one(server, LOOK)
        await server.until("interrupted")
        shown = (await server.get(f"{MACHINE}/{session_id}")).json()
        path = f"{MACHINE}/{session_id}/interrupts/{shown['interrupts'][0]['interrupt_id']}/answer"
        assert code(await server.post(path, {"payload": {}})) == (422, "invalid_answer")


async def test_a_machine_answers_by_an_option_or_an_input() -> None:
    """By index as a client does; by an input it speaks for a person, who is named."""
    async with api(asking(CHOICE)) as server:
        for how in ("option", "input"):
            session_id = await one(server, LOOK, thread_id=how)
            await server.until("interrupted")
            shown = (await server.get(f"{MACHINE}/{session_id}")).json()
            interrupt_id = shown["interrupts"][0]["interrupt_id"]
            if how == "option":
                path = f"{MACHINE}/{session_id}/interrupts/{interrupt_id}/answer"
                await server.post(path, {"option": 0})
            else:
                resume = {
                    "type": "interrupt.resume",
                    "interrupt_id": interrupt_id,
                    "payload": {"approved": True},
                }
                reply = await server.submit(resume, session_id=session_id)
                assert reply.json()["resumed"] is True
            await server.until_idle()
            done = (await server.get(f"{MACHINE}/{session_id}")).json()
            assert done["messages"][2]["content"] == "seen it"
        [recorded] = await resumed(server)
        assert recorded.responder == {"channel": "machine", "user": "ada"}


async def test_a_machine_pauses_and_cancels() -> None:
    """The same routes as a client's, for any owner."""
    async with api() as server:
        session_id = await one(server)
        await server.until_idle()
        path = f"{MACHINE}/{session_id}"
        body = {"reason": "audit", "answer_by": "machine", "payload": {"toolCallId": "none"}}
        assert (await server.post(f"{path}/interrupt", body)).status_code == 201
        shown = (await server.get(path)).json()
        assert (shown["status"], shown["interrupts"][0]["answer_by"]) == ("interrupted", "machine")
        cancelled = await server.post(f"{path}/cancel")
        assert cancelled.json() == {"cancelled": True, "turn_ids": []}
        assert (await server.get(path)).json()["status"] == "idle"


# ------------------------------------------------------------------- events


async def events(server: Api, session_id: str, **query: Any) -> Json:
    """Return a page of the log."""
    return (await server.get(f"{MACHINE}/{session_id}/events", **query)).json()


async def test_the_log_is_read_page_by_page() -> None:
    """Every event once, in order; the last page says nothing of a next one."""
    async with api() as server:
        session_id = await one(server)
        await server.until_idle()
        whole = await events(server, session_id)
        assert "next_after_seq" not in whole
        seqs = [event["seq"] for event in whole["events"]]
        assert seqs == list(range(1, len(seqs) + 1))
        assert whole["events"][0]["type"] == "session.created"
        paged: list[Json] = []
        page: Json = {"next_after_seq": 0}
        while "next_after_seq" in page:
            page = await events(server, session_id, after_seq=page["next_after_seq"], limit=2)
            assert len(page["events"]) <= 2
            paged += page["events"]
        assert paged == whole["events"]
        assert await events(server, session_id, after_seq=seqs[-1]) == {"events": []}


async def test_the_log_of_a_turn() -> None:
    """Only its events, also page by page."""
    async with api() as server:
        session_id = await one(server, thread_id="t", turn_id="one")
        await server.until_idle()
        await one(server, thread_id="t", turn_id="two")
        await server.until_idle()
        page = await events(server, session_id, turn_id="two", limit=2)
        assert [e["turn_id"] for e in page["events"]] == ["two", "two"]
        rest = await events(
            server, session_id, turn_id="two", after_seq=page["next_after_seq"], limit=1000
        )
        types = [event["type"] for event in (*page["events"], *rest["events"])]
        assert (types[0], types[-1]) == ("turn.started", "turn.completed")


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0}, {"limit": 1001}, {"limit": "x"}, {"limit": "1.5"}, {"after_seq": -1},
        {"after_seq": 2**63}, {"after_seq": "1e3"}, {"before_seq": 3}, {"limit": ""},
    ],
    ids=str,
)  # fmt: skip
async def test_a_query_that_says_nothing_is_refused(query: Json) -> None:
    """422 naming the parameter."""
    async with api() as server:
        session_id = await one(server)
        refused = await server.get(f"{MACHINE}/{session_id}/events", **query)
        assert code(refused) == (422, "invalid_input")
        assert refused.json()["field"] == next(iter(query))


async def test_a_decision_that_is_out_is_shown() -> None:
    """With its trigger, its attempt and its deadline."""
    agent, gate = Agent("a"), asyncio.Event()

    @agent.decide(on=("client.messages",))
    async def wait(request: DecisionRequest) -> Any:
        await gate.wait()
        return request.proposed

    async with api(agent) as server:
        sent = (await server.submit(message("/say hi", id="m"))).json()
        shown = (await server.get(f"{MACHINE}/{sent['session_id']}")).json()
        [decision] = shown["decisions"]
        assert (decision["turn_id"], decision["attempt"]) == (sent["turn_id"], 1)
        assert decision["deadline"].endswith("Z")
        assert decision["trigger"]["type"] == "client.messages"
        assert decision["trigger"]["messages"] == [user("m", "/say hi")]
        gate.set()
        await server.until_idle()


# -------------------------------------------------------------------- pages


async def test_a_machine_route_is_never_a_browsers() -> None:
    """No CORS, also for a page that may call the others."""
    page = "http://localhost:3000"
    async with api() as server:
        app = create_app(server.engine, Settings(allow_origins=(page,)))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            asked = {"Origin": page, "Access-Control-Request-Method": "POST"}
            for root, allowed in ((CLIENT, page), (MACHINE, None)):
                got = await client.get(root, headers={"Origin": page})
                assert got.status_code == 200
                assert got.headers.get("access-control-allow-origin") == allowed
                preflight = await client.options(f"{root}/x/cancel", headers=asked)
                assert preflight.headers.get("access-control-allow-origin") == allowed
