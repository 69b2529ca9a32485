"""`POST …/submit`: what a backend says for a person."""

import asyncio

import pytest

from engine import Agent
from tests.api.given import (
    MACHINE,
    Json,
    api,
    code,
    message,
    one,
    view,
)

# ------------------------------------------------------------------- submit


async def test_a_machine_speaks_for_a_person() -> None:
    """202 as for a client; the session is that person's."""
    async with api() as server:
        sent = await server.submit(message("/say hi"), thread_id="t", turn_id="turn one")
        assert sent.status_code == 202
        assert sent.json() == {
            "session_id": sent.json()["session_id"],
            "thread_id": "t",
            "turn_id": "turn one",
            "queued": False,
        }
        await server.until_idle()
        shown = (await server.get(f"{MACHINE}/{sent.json()['session_id']}")).json()
        assert (shown["owner"], shown["thread_id"], shown["agent_id"]) == ("ada", "t", "a")
        again = await server.submit(message("/say again"), thread_id="t")
        assert again.json()["session_id"] == sent.json()["session_id"]


async def test_a_machine_may_choose_the_session_id() -> None:
    """The first input creates it, later ones find it; its thread is found under the same owner."""
    async with api() as server:
        names = {"session_id": "order 7", "thread_id": "t"}
        for text in ("/say one", "/say two"):
            sent = (await server.submit(message(text), **names)).json()
            assert (sent["session_id"], sent["thread_id"]) == ("order 7", "t")
            await server.until_idle()
        assert await one(server, "/say three", thread_id="t") == "order 7"
        await server.until_idle()
        alone = (await server.submit(message("/say hi"), session_id="order 8")).json()
        assert alone["thread_id"].startswith("thread-")


async def test_a_thread_that_was_looked_for_may_get_a_chosen_id_later() -> None:
    """An id that was minted for it and never used is forgotten."""
    async with api() as server:
        owner: Json = {"identity": {"id": "local"}}
        nothing = await server.submit(view(), thread_id="t", **owner)
        assert nothing.json()["session_id"] is None
        chosen = await one(server, thread_id="t", session_id="chosen", **owner)
        await server.until_idle()
        assert chosen == "chosen"
        assert (await server.say("/say hi")).json()["session_id"] == "chosen"


async def test_a_session_of_another_owner_is_409() -> None:
    """And so is its thread under another id; nothing is recorded."""
    async with api() as server:
        await one(server, session_id="order 7", thread_id="t")
        await server.until_idle()
        seq = await server.seq()
        names: Json = {"session_id": "order 7", "identity": {"id": "bob"}}
        assert code(await server.submit(message("hi"), **names)) == (409, "session_owner")
        names = {"session_id": "order 8", "thread_id": "t"}
        assert code(await server.submit(message("hi"), **names)) == (409, "thread_taken")
        assert await server.seq() == seq


async def test_two_owners_race_for_one_id() -> None:
    """One of them gets it; the other's message is not in it."""
    async with api() as server:
        replies = await asyncio.gather(
            *(
                server.submit(message(f"/say {who}"), session_id="s", identity={"id": who})
                for who in ("ada", "bob", "eve")
            )
        )
        await server.until_idle()
        assert sorted(reply.status_code for reply in replies) == [202, 409, 409]
        shown = (await server.get(f"{MACHINE}/s")).json()
        assert [m["content"] for m in shown["messages"]] == [
            f"/say {shown['owner']}", shown["owner"],
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "payload", "expected"),
    [
        ({"agent_id": "none"}, message("hi"), (404, "unknown_agent")),
        ({"agent_id": "none", "session_id": "s"}, message("hi"), (404, "unknown_agent")),
        (
            {"session_id": "s"},
            {"type": "interrupt.resume", "interrupt_id": "i"},
            (404, "unknown_session"),
        ),
        (
            {"thread_id": "none"},
            {"type": "interrupt.resume", "interrupt_id": "i"},
            (404, "unknown_session"),
        ),
        ({"agent_id": "b", "session_id": "there"}, message("hi"), (422, "invalid_input")),
        ({"thread_id": "x", "session_id": "there"}, message("hi"), (422, "invalid_input")),
    ],
    ids=["agent", "agent-of-session", "session", "thread", "another-agent", "another-thread"],
)
async def test_what_does_not_fit_is_refused(
    names: Json, payload: Json, expected: tuple[int, str]
) -> None:
    """And nothing is created."""
    async with api(Agent("a"), Agent("b")) as server:
        await one(server, session_id="there")
        await server.until_idle()
        seq = await server.seq()
        assert code(await server.submit(payload, **names)) == expected
        assert await server.seq() == seq
