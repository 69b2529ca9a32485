"""Lists of sessions, and one session shown."""

import asyncio
from typing import Any

import pytest

from agui_server.api.pages import read_cursor
from agui_server.api.refusals import Refusal
from engine import Agent, DecisionRequest
from engine.core.ports import ModelRequest
from engine.core.worker import DecisionResponse
from tests.api.given import CLIENT, LOOK, MACHINE, Api, api, asking, code, message, user, view
from tests.runtime.given import Slow

# -------------------------------------------------------------------- lists


async def listed(server: Api, path: str = CLIENT, **query: Any) -> list[str]:
    """Follow a list to its end; return the threads' names."""
    threads: list[str] = []
    while True:
        page = (await server.get(path, **query)).json()
        threads += [session["thread_id"] for session in page["sessions"]]
        if "cursor" not in page:
            return threads
        query["cursor"] = page["cursor"]


async def test_sessions_are_listed_the_latest_updated_first() -> None:
    """Title, agent, status and times; another one moves up when it is spoken to."""
    async with api() as server:
        for thread in ("one", "two", "three", "one"):
            await server.say(f"/say {thread}", agent_id="a", thread_id=thread)
            await server.until_idle()

        sessions = (await server.get(CLIENT)).json()["sessions"]
        assert [session["thread_id"] for session in sessions] == ["one", "three", "two"]
        first = sessions[0]
        assert first.keys() == {
            "session_id", "thread_id", "agent_id", "title", "status", "updated_at", "created_at",
        }  # fmt: skip
        assert (first["title"], first["agent_id"], first["status"]) == ("/say one", "a", "idle")
        assert first["created_at"] < sessions[2]["updated_at"] < first["updated_at"]


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_a_cursor_goes_on_where_a_page_ended(limit: int) -> None:
    """Every session once, whatever the size of a page; the last page has no cursor."""
    async with api() as server:
        names = [f"thread {number}" for number in range(5)]
        for name in names:
            await server.say("/say hi", agent_id="a", thread_id=name)
            await server.until_idle()
        assert await listed(server, limit=limit) == names[::-1]
        assert await listed(server, MACHINE, limit=limit) == names[::-1]


async def test_a_list_is_narrowed() -> None:
    """By agent and by status; together too."""
    async with api(Agent("b"), asking({"message": "?"})) as server:
        await server.say("/say hi", agent_id="b", thread_id="idle b")
        await server.until_idle()
        await server.say(LOOK, agent_id="a", thread_id="asking")
        await server.until("interrupted")
        assert await listed(server, agent_id="b") == ["idle b"]
        assert await listed(server, status="interrupted") == ["asking"]
        assert await listed(server, agent_id="b", status="interrupted") == []


async def test_another_owners_sessions_are_not_listed() -> None:
    """A client sees its own; a machine sees everybody's, with their owners, or one owner's."""
    async with api() as server:
        await server.say("/say mine", agent_id="a", thread_id="mine")
        await server.submit(message("/say hers"), thread_id="hers")
        await server.until_idle()
        assert await listed(server) == ["mine"]
        sessions = (await server.get(MACHINE)).json()["sessions"]
        assert {s["owner"] for s in sessions} == {"ada", "local"}
        assert await listed(server, MACHINE, owner="ada") == ["hers"]
        assert await listed(server, MACHINE, owner="nobody") == []


CURSORS = {
    "no base64": "%%%",
    "another alphabet": "ab/+",
    "not text": "__8",
    "no place": "bm90aGluZw",
    "no session": "MTIzOg",
    "no moment": "LTE6YQ",
    "beyond the calendar": "OTk5OTk5OTk5OTk5OTk5OTk5OmE",
    "too long a number": "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk6YQ",
    "empty": "",
    "not ASCII": "é",
}


@pytest.mark.parametrize("cursor", [pytest.param(c, id=name) for name, c in CURSORS.items()])
async def test_a_cursor_that_is_none_of_ours_is_refused(cursor: str) -> None:
    """400 `invalid_cursor`."""
    async with api() as server:
        for path in (CLIENT, MACHINE):
            assert code(await server.get(path, cursor=cursor)) == (400, "invalid_cursor")
    with pytest.raises(Refusal):
        read_cursor(cursor)


# --------------------------------------------------------------------- show


async def test_a_session_is_shown_with_what_is_open() -> None:
    """The turn, the question with its choices, the path, and the tree."""
    async with api(
        asking({"message": "Look at it?", "expiresAt": "2999-01-01T01:00:00+01:00"})
    ) as s:
        sent = (await s.say(LOOK)).json()
        question = await s.asked()
        shown = await s.show()

        assert shown["session_id"] == sent["session_id"]
        assert (shown["thread_id"], shown["agent_id"], shown["title"]) == ("t", "a", LOOK)
        assert (shown["status"], shown["turn_id"]) == ("interrupted", sent["turn_id"])
        assert shown["turns"] == [{"turn_id": sent["turn_id"], "status": "paused"}]
        assert (shown["queue"], shown["shared_state"]) == ([], None)
        ask, reply = shown["messages"]
        assert ask == user(ask["id"], LOOK)
        [call] = reply["tool_calls"]
        assert question == {
            "interrupt_id": question["interrupt_id"],
            "reason": "confirm",
            "payload": {"message": "Look at it?", "expiresAt": "2999-01-01T01:00:00+01:00"},
            "answer_by": "client",
            "anchor": reply["id"],
            "tool_call_id": call["id"],
            "turn_id": sent["turn_id"],
            "expires_at": "2999-01-01T00:00:00Z",
            "options": [
                {"label": "Approve", "value": {"approved": True}, "style": "primary"},
                {"label": "Decline", "value": {"approved": False}, "style": "danger"},
            ],
        }
        assert shown["message_tree"] == {
            "head_id": reply["id"],
            "messages": [
                {"message": ask, "parent_id": None},
                {"message": reply, "parent_id": ask["id"]},
            ],
        }


async def test_what_is_shown_can_be_sent_back_as_a_view() -> None:
    """Messages come and go in one shape; an edit leaves a second branch in the tree."""
    async with api() as server:
        await server.say("/say one")
        await server.until_idle()
        await server.say("/say two")
        await server.until_idle()
        shown = await server.show()
        reply = await server.input(view(*shown["messages"][:2], user("n", "/say three")))
        assert reply.json()["turn_id"]
        await server.until_idle()
        edited = await server.show()
        texts = [message["content"] for message in edited["messages"]]
        assert texts == ["/say one", "one", "/say three", "three"]
        assert len(edited["message_tree"]["messages"]) == 6
        parents = {m["message"]["id"]: m["parent_id"] for m in edited["message_tree"]["messages"]}
        assert parents["n"] == shown["messages"][1]["id"]
        assert list(parents)[:4] == [message["id"] for message in shown["messages"]]


async def test_queued_turns_are_shown() -> None:
    """In the order they will start."""
    model = Slow()
    async with api(Agent("a", llm="slow"), models={"slow": model}) as server:
        running = (await server.say("hello")).json()["turn_id"]
        await model.said.wait()
        queued = [
            (await server.input(message("more"), thread_id="t", queue=True)).json()["turn_id"]
            for _ in range(2)
        ]
        shown = await server.show()
        assert (shown["status"], shown["turn_id"]) == ("running", running)
        assert shown["queue"] == queued
        assert [m["content"] for m in shown["messages"]] == ["hello"]


SECRETS = ("the memory", "the prompt", "the provider's words")


def remembering() -> Agent:
    """Return an agent that writes every value there is, over a provider that fails."""
    agent = Agent("a", llm="failing", system="the prompt")

    @agent.decide(on=("client.messages",))
    def remember(request: DecisionRequest) -> Any:
        return DecisionResponse(
            messages=request.proposed.messages,
            actions=request.proposed.actions,
            state={"note": "the memory"},
            shared_state={"page": 1},
            agent={"model": "larger", "system": "the prompt"},
        )

    return agent


class Failing:
    """A provider that says too much about its failures, and takes its time between two."""

    async def stream(self, request: ModelRequest) -> Any:
        """Fail."""
        from engine.core.errors import ModelError  # noqa: PLC0415

        await asyncio.sleep(0)
        raise ModelError("provider_error", "the provider's words", retryable=request.attempt < 2)
        yield


async def test_a_client_never_sees_what_is_not_for_it() -> None:
    """Worker memory, config and a provider's words are shown to machines only."""
    async with api(remembering(), models={"failing": Failing()}) as server:
        sent = (await server.say("hello")).json()
        await server.until_idle()
        mine = await server.get(f"{CLIENT}/t")
        runs = await server.get(f"{CLIENT}/t/runs")
        assert [s for s in SECRETS if s in mine.text + runs.text] == []
        assert mine.json()["shared_state"] == {"page": 1}

        whole = (await server.get(f"{MACHINE}/{sent['session_id']}")).json()
        assert whole["state"] == {"note": "the memory"}
        assert whole["agent"] == {"model": "larger", "system": "the prompt"}
        assert whole["owner"] == "local"
        assert {**mine.json()} == {key: whole[key] for key in mine.json()}
        events = await server.get(f"{MACHINE}/{sent['session_id']}/events")
        assert "the provider's words" in events.text


async def test_a_session_is_found_by_its_id_or_its_thread() -> None:
    """The same for both; a thread two agents share is 409 and lists the sessions."""
    async with api(Agent("a"), Agent("b")) as server:
        one = (await server.say("/say hi")).json()
        await server.until_idle()
        assert await server.show() == await server.show(one["session_id"])
        two = (await server.say("/say hi", agent_id="b", thread_id="t")).json()
        await server.until_idle()
        refused = await server.get(f"{CLIENT}/t")
        assert code(refused) == (409, "ambiguous_thread")
        ids = {one["session_id"], two["session_id"]}
        assert set(refused.json()["session_ids"]) == ids
        assert (await server.show(two["session_id"]))["agent_id"] == "b"


@pytest.mark.parametrize("what", ["", "/runs", "/events"])
async def test_what_is_not_there_is_404(what: str) -> None:
    """An unknown address, and a thread's name of somebody else's; her session is forbidden."""
    async with api() as server:
        hers = (await server.submit(message("/say hi"), thread_id="t")).json()["session_id"]
        await server.until_idle()
        root = MACHINE if what == "/events" else CLIENT
        for address in ("nobody", "x" * 300, "a%0Ab", *(["t"] if root == CLIENT else [])):
            assert code(await server.get(f"{root}/{address}{what}")) == (404, "unknown_session")
        if root == CLIENT:
            assert code(await server.get(f"{root}/{hers}{what}")) == (403, "forbidden")


async def test_looking_records_nothing() -> None:
    """Neither does a look at what is not there."""
    async with api() as server:
        await server.say("/say hi")
        await server.until_idle()
        seq = await server.seq()
        for address in ("t", "nobody"):
            await server.get(f"{CLIENT}/{address}")
            await server.get(f"{CLIENT}/{address}/runs")
        assert await server.seq() == seq


async def test_a_list_has_the_same_path_with_a_slash() -> None:
    """`…/sessions/` leads to the list."""
    async with api() as server:
        moved = await server.server.client.get(f"{CLIENT}/", follow_redirects=True)
        assert moved.json() == {"sessions": []}
