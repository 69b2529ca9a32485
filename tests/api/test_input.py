"""`POST …/input`: where an input goes, and what comes of each type."""

from typing import Any

import pytest

from engine import Agent, DecisionRequest, Tool
from engine.store.memory import MemoryStore
from tests.api.given import CLIENT, Json, api, append, asking, code, message, texts, view, waiting


def result(call_id: str, value: Any) -> Json:
    """Return the result of a client's tool."""
    return {"type": "tool.result", "id": call_id, "result": value}


# ---------------------------------------------------------------- addressing


async def test_a_thread_that_is_not_there_is_created() -> None:
    """With its agent; afterwards its name is enough."""
    async with api() as server:
        first = await server.say("/say one", agent_id="a", thread_id="new")
        assert first.status_code == 202
        sent = first.json()
        assert sent.keys() == {"session_id", "thread_id", "turn_id", "queued"}
        assert (sent["thread_id"], sent["queued"]) == ("new", False)
        await server.until_idle()
        again = (await server.say("/say two", thread_id="new")).json()
        await server.until_idle()
        assert again["session_id"] == sent["session_id"]
        assert again["turn_id"] != sent["turn_id"]
        assert await texts(server, "new") == ["/say one", "one", "/say two", "two"]


async def test_an_agent_alone_begins_a_new_session() -> None:
    """Each time another one, with a thread's name of its own."""
    async with api() as server:
        one, two = [(await server.say("/say hi", agent_id="a")).json() for _ in range(2)]
        assert one["session_id"] != two["session_id"]
        assert one["thread_id"] != two["thread_id"]
        await server.until_idle()
        assert (await server.show(one["thread_id"]))["session_id"] == one["session_id"]


async def test_a_session_id_names_a_session() -> None:
    """Alone, or with the thread and the agent it has."""
    async with api() as server:
        sent = (await server.say("/say one")).json()
        for more in (
            {},
            {"agent_id": "a"},
            {"thread_id": "t"},
            {"thread_id": "t", "agent_id": "a"},
        ):
            await server.until_idle()
            again = await server.say("/say more", session_id=sent["session_id"], **more)
            assert again.json()["session_id"] == sent["session_id"]


async def test_two_agents_may_share_a_threads_name() -> None:
    """Input says which one it means; without that it is 409."""
    async with api(Agent("a"), Agent("b")) as server:
        one, two = [
            (await server.say("/say hi", agent_id=agent, thread_id="t")).json() for agent in "ab"
        ]
        assert one["session_id"] != two["session_id"]
        await server.until_idle()
        refused = await server.say("/say hi", thread_id="t")
        assert code(refused) == (409, "ambiguous_thread")
        assert set(refused.json()["session_ids"]) == {one["session_id"], two["session_id"]}
        resume = {"type": "interrupt.resume", "interrupt_id": "old"}
        for agent, sent in (("a", one), ("b", two)):
            reply = await server.input(resume, agent_id=agent, thread_id="t")
            assert reply.json()["session_id"] == sent["session_id"]


NOWHERE = [
    pytest.param({"thread_id": "none"}, message("hi"), "unknown_session", id="thread"),
    pytest.param({"session_id": "none"}, message("hi"), "unknown_session", id="session"),
    pytest.param({"agent_id": "none"}, message("hi"), "unknown_agent", id="agent"),
    pytest.param(
        {"agent_id": "none", "thread_id": "t"}, message("hi"), "unknown_agent", id="thread-of-agent"
    ),
    pytest.param(
        {"agent_id": "a", "thread_id": "none"},
        {"type": "interrupt.resume", "interrupt_id": "i"},
        "unknown_session",
        id="an-answer-creates-nothing",
    ),
    pytest.param(
        {"agent_id": "a", "thread_id": "none"},
        {"type": "tool.result", "id": "c", "result": ""},
        "unknown_session",
        id="a-result-creates-nothing",
    ),
]


@pytest.mark.parametrize(("names", "sent", "expected"), NOWHERE)
async def test_input_for_nobody_is_404(names: Json, sent: Json, expected: str) -> None:
    """And creates nothing."""
    async with api() as server:
        assert code(await server.input(sent, **names)) == (404, expected)
        assert (await server.get(CLIENT)).json() == {"sessions": []}


async def test_somebody_elses_session_is_forbidden_and_her_thread_not_there() -> None:
    """403 for a session's id; a thread's name means one's own."""
    async with api() as server:
        hers = (await server.submit(message("/say hi"), thread_id="t")).json()["session_id"]
        await server.until_idle()
        assert code(await server.say("hi", session_id=hers)) == (403, "forbidden")
        assert code(await server.say("hi", thread_id="t")) == (404, "unknown_session")


async def test_an_input_of_which_nothing_comes_creates_no_session() -> None:
    """The reply has no session id then: there is none. Its thread is found all the same later."""
    async with api() as server:
        for sent in (view(), {"type": "client.action", "name": "like"}):
            reply = await server.input(sent, agent_id="a", thread_id="t")
            assert reply.json() == {
                "session_id": None, "thread_id": "t", "turn_id": None, "queued": False,
            }  # fmt: skip
        assert (await server.get(CLIENT)).json() == {"sessions": []}
        assert (await server.say("/say hi")).json()["session_id"] is not None


# --------------------------------------------------- actions and client tools


async def test_an_action_reaches_the_worker() -> None:
    """With its name and its arguments; a session may begin with one."""
    seen: list[Any] = []
    agent = Agent("a")

    @agent.decide(on=("client.action",))
    def act(request: DecisionRequest) -> Any:
        seen.append(request.trigger)
        return {"shared_state": {"likes": len(seen)}}

    async with api(agent) as server:
        sent = {"type": "client.action", "name": "like", "args": {"page": 7}}
        reply = (await server.input(sent)).json()
        assert (reply["turn_id"], reply["queued"]) == (None, False)
        await server.until_shown(lambda shown: shown["shared_state"] == {"likes": 1})
        await server.input({"type": "client.action", "name": "like"}, thread_id="t")
        await server.until_shown(lambda shown: shown["shared_state"] == {"likes": 2})
    assert [(t.name, t.args) for t in seen] == [("like", {"page": 7}), ("like", None)]


@pytest.mark.parametrize(
    ("value", "read"),
    [("page 7", "page 7"), ({"content": [{"type": "text", "text": "x"}]}, "x"), (None, "")],
    ids=["text", "MCP", "null"],
)
async def test_a_clients_tool_gets_its_result(value: Any, read: str) -> None:
    """The turn goes on with it; a second result for the same call is 409."""
    async with api() as server:
        call_id = await waiting(server)
        turn = (await server.show())["turn_id"]
        sent = await server.input(result(call_id, value), thread_id="t")
        assert (sent.status_code, sent.json()["turn_id"]) == (202, turn)
        await server.until_idle()
        assert [m["role"] for m in (await server.show())["messages"]] == [
            "user", "assistant", "tool", "assistant",
        ]  # fmt: skip
        assert (await texts(server))[2] == read
        refused = await server.input(result(call_id, value), thread_id="t")
        assert code(refused) == (409, "call_not_open")


async def test_a_clients_tool_may_fail() -> None:
    """The model reads why."""
    async with api() as server:
        call_id = await waiting(server)
        error = {"type": "tool.error", "id": call_id, "error": "the page is gone"}
        await server.input(error, thread_id="t")
        await server.until_idle()
        shown = (await server.show())["messages"][2]
        assert (shown["role"], shown["error"]) == ("tool", "the page is gone")


async def test_a_client_ends_no_call_of_a_worker() -> None:
    """403; the call stays open."""
    agent = Agent("a", tools=[Tool("look")])

    @agent.decide(on=("tool.execute",))
    def leave_open(_request: DecisionRequest) -> Any:
        return {}

    async with api(agent) as server:
        await server.say("/tool look {}")
        shown = await server.until_shown(lambda shown: len(shown["messages"]) > 1)
        call_id = shown["messages"][1]["tool_calls"][0]["id"]
        refused = await server.input(result(call_id, "seen"), thread_id="t")
        assert code(refused) == (403, "forbidden")
        assert (await server.show())["status"] == "running"


async def test_a_result_under_the_id_of_another_message_ends_nothing() -> None:
    """Whether it is refused or dropped: nothing is recorded and the call stays open."""
    async with api() as server:
        call_id = await waiting(server)
        first, seq = (await server.show())["messages"][0], await server.seq()
        clash = {"id": first["id"], "role": "tool", "tool_call_id": call_id, "content": "seen"}
        assert (await server.input(append(clash), thread_id="t")).status_code in {202, 422}
        assert await server.seq() == seq
        assert (await server.show())["status"] == "waiting"


# ----------------------------------------------------------------- cancel


async def test_a_cancel_stops_what_is_open() -> None:
    """By any address; a second one is the same as once."""
    async with api(asking({"message": "Look?"})) as server:
        sent = (await server.say('/tool look {"what": "it"}')).json()
        await server.asked()
        cancelled = await server.post(f"{CLIENT}/t/cancel")
        assert cancelled.json() == {"cancelled": True, "turn_ids": [sent["turn_id"]]}
        again = await server.post(f"{CLIENT}/{sent['session_id']}/cancel")
        assert again.json() == {"cancelled": False, "turn_ids": []}
        assert code(await server.post(f"{CLIENT}/nobody/cancel")) == (404, "unknown_session")


async def test_input_finds_its_thread_after_a_restart() -> None:
    """By its name alone, as before."""
    store = MemoryStore()
    async with api(db=store) as server:
        sent = (await server.say("/say one")).json()
        await server.until_idle()
    async with api(db=store) as server:
        again = (await server.say("/say two", thread_id="t")).json()
        assert again["session_id"] == sent["session_id"]
        await server.until_idle()
        assert await texts(server) == ["/say one", "one", "/say two", "two"]
