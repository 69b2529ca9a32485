"""Raising and answering interrupts, as a client."""

from typing import Any

import pytest

from engine import Agent, DecisionRequest
from tests.api.given import (
    CHOICE,
    FORM,
    LOOK,
    Api,
    Json,
    answer,
    api,
    asking,
    code,
    resumed,
)


async def ask(server: Api) -> str:
    """Let the agent ask; return the interrupt's id."""
    await server.say(LOOK)
    return (await server.asked())["interrupt_id"]


# ------------------------------------------------------------------- answer


@pytest.mark.parametrize(
    ("option", "result"),
    [(0, "seen it"), (1, "a person declined")],
    ids=["approve", "decline"],
)
@pytest.mark.parametrize("payload", [CHOICE, {"message": "Look?"}], ids=["options", "plain"])
async def test_an_option_is_read_from_the_recorded_prompt(
    payload: Json, option: int, result: str
) -> None:
    """The tool runs or is declined; recorded are the value, the channel and the user."""
    async with api(asking(payload)) as server:
        interrupt_id = await ask(server)
        turn_id = (await server.show())["turn_id"]
        answered = await answer(server, interrupt_id, {"option": option})
        assert (answered.status_code, answered.json()) == (
            200,
            {"resumed": True, "turn_id": turn_id},
        )
        await server.until_idle()
        tool = (await server.show())["messages"][2]
        assert result in tool.get("error", tool["content"])

        [recorded] = await resumed(server)
        value = {"approved": option == 0}
        responder = {"channel": "client", "user": "local"}
        assert recorded.responder == responder
        chosen = {"status": "resolved", "payload": value, "responder": responder}
        assert recorded.payload == (chosen if "metadata" in payload else value)


async def test_a_second_click_does_nothing() -> None:
    """Success, `resumed` false, nothing recorded; as for an id nobody knows."""
    async with api(asking(CHOICE)) as server:
        interrupt_id = await ask(server)
        await answer(server, interrupt_id, {"option": 1})
        await server.until_idle()
        seq = await server.seq()
        for old in (interrupt_id, "unknown"):
            for body in ({"option": 0}, {"option": 99}, {"payload": None}):
                again = await answer(server, old, body)
                assert (again.status_code, again.json()) == (200, {"resumed": False})
        assert await server.seq() == seq


@pytest.mark.parametrize(
    ("prompt", "body", "expected"),
    [
        (CHOICE, {"option": 2}, "invalid_input"),
        (CHOICE, {"payload": "maybe"}, "invalid_answer"),
        (CHOICE, {"payload": {"approved": 1}}, "invalid_answer"),
        (FORM, {"option": 0}, "invalid_input"),
        (FORM, {"payload": {"approved": "yes"}}, "invalid_answer"),
        (FORM, {"payload": None}, "invalid_answer"),
        ({"message": "Look?"}, {"option": 2}, "invalid_input"),
        (None, {"option": 0}, "invalid_input"),
    ],
    ids=[
        "no such option", "not offered", "one is not true", "a form has no options",
        "against the schema", "nothing at all", "two buttons", "no prompt",
    ],
)  # fmt: skip
async def test_an_answer_that_does_not_fit_leaves_the_question_open(
    prompt: Json, body: Json, expected: str
) -> None:
    """422, and nothing changed."""
    async with api(asking(prompt)) as server:
        interrupt_id = await ask(server)
        seq = await server.seq()
        refused = await answer(server, interrupt_id, body)
        assert code(refused) == (422, expected)
        if expected == "invalid_input":
            assert refused.json()["field"] == "option"
        assert await server.seq() == seq
        assert (await server.asked())["interrupt_id"] == interrupt_id


@pytest.mark.parametrize(
    ("prompt", "payload"),
    [
        (CHOICE, {"approved": True}),
        (FORM, {"approved": True}),
        (None, {"approved": True}),
        (None, True),
        (None, {"approved": True, "responder": "the boss"}),
    ],
    ids=["offered", "fits the schema", "free", "true", "a responder is dropped"],
)
async def test_a_payload_is_an_answer(prompt: Json, payload: Any) -> None:
    """An offered value, one that fits, or anything where nothing is said."""
    async with api(asking(prompt)) as server:
        interrupt_id = await ask(server)
        assert (await answer(server, interrupt_id, {"payload": payload})).json()["resumed"] is True
        await server.until_idle()
        assert (await server.show())["messages"][2]["content"] == "seen it"
        assert "the boss" not in str((await resumed(server))[0])


@pytest.mark.parametrize("payload", [None, False, 0, "", []], ids=repr)
async def test_an_empty_payload_is_an_answer(payload: Any) -> None:
    """The presence of an answer decides, not its truth."""
    async with api(asking(None)) as server:
        interrupt_id = await ask(server)
        assert (await answer(server, interrupt_id, {"payload": payload})).json()["resumed"] is True
        await server.until_idle()


async def test_a_machines_question_is_not_a_clients_to_answer() -> None:
    """403 by every way; a client sees it, and who answers."""
    async with api(asking(CHOICE, answer_by="machine")) as server:
        interrupt_id = await ask(server)
        assert (await server.asked())["answer_by"] == "machine"
        seq = await server.seq()
        resume = {"type": "interrupt.resume", "interrupt_id": interrupt_id, "payload": {}}
        for refused in (
            await answer(server, interrupt_id, {"option": 0}),
            await server.input(resume, thread_id="t"),
        ):
            assert code(refused) == (403, "forbidden")
        assert await server.seq() == seq


async def test_an_interrupt_is_answered_by_an_input() -> None:
    """`interrupt.resume`: 202 with `resumed`; an old or unknown id is a success, too."""
    async with api(asking({"message": "Look?"})) as server:
        sent = (await server.say(LOOK)).json()
        question = await server.asked()
        resume = {
            "type": "interrupt.resume",
            "interrupt_id": question["interrupt_id"],
            "payload": {"approved": True},
        }
        reply = await server.input(resume, thread_id="t")
        assert (reply.status_code, reply.json()) == (202, {**sent, "resumed": True})
        await server.until_idle()
        assert (await server.show())["messages"][2]["content"] == "seen it"
        for interrupt_id in (question["interrupt_id"], "unknown"):
            again = await server.input({**resume, "interrupt_id": interrupt_id}, thread_id="t")
            assert (again.status_code, again.json()["resumed"]) == (202, False)
            assert again.json()["turn_id"] is None


async def test_answers_of_other_sessions_do_nothing() -> None:
    """An interrupt belongs to its session."""
    async with api(asking({"message": "Look?"})) as server:
        await server.say("/say hi", agent_id="a", thread_id="other")
        await server.until_idle()
        interrupt_id = await ask(server)
        elsewhere = await answer(server, interrupt_id, {"option": 0}, address="other")
        assert elsewhere.json() == {"resumed": False}
        assert (await server.asked())["interrupt_id"] == interrupt_id


async def test_who_answered_reaches_the_worker() -> None:
    """`trigger.responder` is the channel's word; a label and a style are not part of it."""
    seen: list[Any] = []
    agent: Agent = asking(CHOICE)
    worker = agent.worker
    assert worker is not None

    def decide(request: DecisionRequest) -> Any:
        if request.trigger.type == "interrupt.resumed":
            seen.append(request.trigger)
            return request.proposed
        return worker(request) if request.trigger.type == "tool.execute" else request.proposed

    async with api(Agent("a", tools=agent.functions.values(), worker=decide)) as server:
        await answer(server, await ask(server), {"option": 0})
        await server.until_idle()
    [trigger] = seen
    assert trigger.responder == {"channel": "client", "user": "local"}
    assert trigger.answer == {"approved": True}
