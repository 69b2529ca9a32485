"""Interrupts that a client raises."""

from typing import Any

import pytest

from engine.runtime.schemas import conforms
from tests.api.given import CLIENT, LOOK, MACHINE, Api, Json, answer, api, asking, code


async def raised(server: Api, body: Json) -> Any:
    """Raise an interrupt as a client."""
    return await server.post(f"{CLIENT}/t/interrupt", body)


async def test_a_client_pauses_its_session() -> None:
    """201 with the id; messages wait for the answer."""
    async with api() as server:
        await server.say("/say hi")
        await server.until_idle()
        body = {"reason": "break", "payload": {"message": "Go on?"}, "interrupt_id": "mine"}
        first = await raised(server, body)
        assert (first.status_code, first.json()) == (201, {"interrupt_id": "mine"})
        shown = await server.show()
        assert (shown["status"], shown["interrupts"][0]["reason"]) == ("interrupted", "break")
        assert shown["interrupts"][0]["anchor"] == shown["messages"][-1]["id"]
        assert code(await server.say("hello?", thread_id="t")) == (409, "session_interrupted")
        assert (await answer(server, "mine", {"option": 0})).json() == {"resumed": True}
        await server.until_idle()
        await server.say("/say on", thread_id="t")
        await server.until_idle()


async def test_an_id_that_was_used_is_replaced() -> None:
    """A late click on the old question must not answer the new one. Without an id one is minted."""
    async with api() as server:
        await server.say("/say hi")
        await server.until_idle()
        ids = [
            (await raised(server, body)).json()["interrupt_id"]
            for body in (
                {"reason": "r", "interrupt_id": "mine"},
                {"reason": "r", "interrupt_id": "mine"},
                {"reason": "r"},
            )
        ]
        assert ids[0] == "mine"
        assert len(set(ids)) == 3
        assert [i["interrupt_id"] for i in (await server.show())["interrupts"]] == ids


async def test_a_client_may_ask_a_machine() -> None:
    """`answer_by: machine`: it cannot answer that itself."""
    async with api() as server:
        await server.say("/say hi")
        await server.until_idle()
        sent = await raised(server, {"reason": "check", "answer_by": "machine"})
        refused = await answer(server, sent.json()["interrupt_id"], {"payload": True})
        assert code(refused) == (403, "forbidden")


async def test_a_client_holds_no_call_but_its_own() -> None:
    """Its answer would otherwise decide about a tool that only a machine may let run."""
    async with api(asking({"message": "Look?"}, answer_by="machine")) as server:
        await server.say(LOOK)
        question = await server.asked()
        seq = await server.seq()
        held = {"message": "Mine?", "toolCallId": question["tool_call_id"]}
        refused = await raised(server, {"reason": "r", "payload": held})
        assert code(refused) == (403, "forbidden")
        assert await server.seq() == seq
        [row] = await server.engine.store.sessions(limit=1)
        machine = f"{MACHINE}/{row.session_id}/interrupt"
        assert (await server.post(machine, {"reason": "r", "payload": held})).status_code == 201


@pytest.mark.parametrize(
    "moment",
    ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01T00:00:00", "soon", 3],
)
async def test_a_moment_that_is_none_is_refused(moment: Any) -> None:
    """An `expiresAt` without an offset, or beyond the calendar."""
    async with api() as server:
        await server.say("/say hi")
        await server.until_idle()
        refused = await raised(server, {"reason": "r", "payload": {"expiresAt": moment}})
        assert code(refused) == (422, "invalid_input")
        assert refused.json()["field"] == "payload.expiresAt"


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/schema", "file:///etc/passwd", "#/nowhere", "#none", "//["]
)
async def test_a_schema_of_a_payload_fetches_nothing(reference: str) -> None:
    """A schema that leads nowhere is none: the question can be answered all the same."""
    assert conforms({"$ref": reference}, True) is None
    async with api() as server:
        await server.say("/say hi")
        await server.until_idle()
        schema = {"properties": {"a": {"$ref": reference}}}
        sent = await raised(server, {"reason": "r", "payload": {"responseSchema": schema}})
        body = {"payload": {"a": 1}}
        answered = await answer(server, sent.json()["interrupt_id"], body)
        assert answered.json() == {"resumed": True}
