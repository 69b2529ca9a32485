"""Messages of `POST …/input`: one at the head, several, or a view of the whole conversation."""

from typing import Any

from engine import Agent, DecisionRequest
from engine.core.events import SessionInterruptResumed
from tests.api.given import (
    LOOK,
    PAGE_TOOL,
    api,
    append,
    asking,
    code,
    message,
    texts,
    user,
    view,
)
from tests.runtime.given import Slow

# -------------------------------------------------------------- messages


async def test_a_message_gets_an_id_and_a_role() -> None:
    """A given id stays, and sent again it starts nothing."""
    async with api() as server:
        await server.say("/say one")
        await server.until_idle()
        first = (await server.input(message("/say two", id="mine"), thread_id="t")).json()
        await server.until_idle()
        again = (await server.input(message("/say two", id="mine"), thread_id="t")).json()
        assert again == first
        shown = (await server.show())["messages"]
        assert [m["role"] for m in shown] == ["user", "assistant"] * 2
        assert shown[0]["id"].startswith("msg-")
        assert shown[2]["id"] == "mine"


PARTS: list[Any] = [
    {"type": "text", "text": "/say parts"},
    {"type": "image", "source": {"type": "url", "value": "https://x/y.png", "mimeType": "a/b"}},
]


async def test_a_content_may_have_parts() -> None:
    """In AG-UI's shape, kept as they came."""
    async with api() as server:
        await server.input({"type": "client.message", "message": {"content": PARTS}})
        await server.until_idle()
        assert (await texts(server))[0] == PARTS


async def test_a_turn_id_that_was_used_starts_nothing() -> None:
    """The same turn comes back, whatever the message; a view may name its turn, too."""
    async with api() as server:
        names = {"agent_id": "a", "thread_id": "t", "turn_id": "turn one"}
        for sent in (message("/say one"), message("/say two"), append(user("u", "/say three"))):
            assert (await server.input(sent, **names)).json()["turn_id"] == "turn one"
            await server.until_idle()
        shown = await server.show()
        assert await texts(server) == ["/say one", "one"]
        for text in ("four", "five"):
            sent = view(*shown["messages"], user(text, f"/say {text}"))
            reply = await server.input(sent, thread_id="t", turn_id="turn two")
            assert reply.json()["turn_id"] == "turn two"
            await server.until_idle()
        assert await texts(server) == ["/say one", "one", "/say four", "four"]


async def test_messages_are_appended_at_the_head() -> None:
    """Several at once; those already recorded are dropped, and one that is there twice is one."""
    async with api() as server:
        one, two = user("1", "first"), user("2", "/say both")
        await server.input(append(one, two, one))
        await server.until_idle()
        assert await texts(server) == ["first", "/say both", "both"]
        await server.input(append(one, two, user("3", "/say more")), thread_id="t")
        await server.until_idle()
        assert await texts(server) == ["first", "/say both", "both", "/say more", "more"]


async def test_input_during_a_turn_waits_or_is_refused() -> None:
    """409 with the running turn; with `queue` it is taken and starts when that completes."""
    model = Slow()
    async with api(Agent("a", llm="slow"), models={"slow": model}) as server:
        turn = (await server.say("hello")).json()["turn_id"]
        await model.said.wait()
        refused = await server.say("more", thread_id="t")
        assert code(refused) == (409, "turn_already_active")
        assert refused.json()["turn_id"] == turn
        waits = await server.input(message("more"), thread_id="t", queue=True, turn_id="next")
        assert waits.status_code == 202
        assert (waits.json()["turn_id"], waits.json()["queued"]) == ("next", True)
        again = await server.input(message("again"), thread_id="t", queue=True, turn_id="next")
        assert again.json() == waits.json()


async def test_a_queue_that_nobody_is_before_starts_at_once() -> None:
    """`queue` is no wait by itself."""
    async with api() as server:
        sent = await server.input(message("/say hi"), agent_id="a", thread_id="t", queue=True)
        assert sent.json()["queued"] is False
        await server.until_idle()


async def test_what_a_client_sends_beside_reaches_the_turn() -> None:
    """Tools, context, state and props are those of the trigger; what was left out is not there."""
    seen: list[Any] = []
    agent = Agent("a")

    @agent.decide(on=("client.messages",))
    def look_at(request: DecisionRequest) -> Any:
        seen.append(request.trigger)
        return request.proposed

    sent = {
        "tools": [PAGE_TOOL],
        "context": [{"description": "where", "value": "page 7"}],
        "state": {"a": 1},
        "forwarded_props": [True],
    }
    async with api(agent) as server:
        for given in (
            message("/say hi"),
            append(user("u", "/say hi")),
            view(user("v", "/say hi")),
        ):
            await server.input({**given, "client": sent}, agent_id="a")
            await server.until_idle()
    for trigger in seen:
        assert trigger.client.tools == (PAGE_TOOL,)
        assert trigger.client.context == tuple(sent["context"])
        assert (trigger.client.state, trigger.client.forwarded_props) == ({"a": 1}, [True])
    assert len(seen) == 3


# ----------------------------------------------------------------- views


async def test_a_view_that_ends_on_a_question_asks_again() -> None:
    """Regenerate: the model answers beside the old reply."""
    async with api() as server:
        await server.say("/say hi")
        await server.until_idle()
        shown = await server.show()
        assert (await server.input(view(shown["messages"][0]), thread_id="t")).json()["turn_id"]
        await server.until_idle()
        after = await server.show()
        assert len(after["messages"]) == 2
        assert len(after["message_tree"]["messages"]) == 3


async def test_a_view_nobody_knows_is_a_new_branch_with_a_warning() -> None:
    """The reply says `unknown_history`."""
    async with api() as server:
        await server.say("/say hi")
        await server.until_idle()
        reply = (await server.input(view(user("x", "/say other")), thread_id="t")).json()
        assert [warning["code"] for warning in reply["warnings"]] == ["unknown_history"]
        await server.until_idle()
        assert await texts(server) == ["/say other", "other"]


async def test_a_view_that_cannot_stand_is_refused() -> None:
    """A recorded message behind a new one: 422, and nothing changed."""
    async with api() as server:
        await server.say("/say hi")
        await server.until_idle()
        recorded, seq = (await server.show())["messages"], await server.seq()
        refused = await server.input(view(user("n", "new"), *recorded), thread_id="t")
        assert code(refused) == (422, "invalid_view")
        assert await server.seq() == seq


async def test_a_view_may_answer() -> None:
    """The answer is taken and the new message joins the turn; an old one is a warning."""
    async with api(asking({"message": "Look?"})) as server:
        turn = (await server.say(LOOK)).json()["turn_id"]
        question = await server.asked()
        shown = await server.show()
        answers = [{"interrupt_id": question["interrupt_id"], "payload": {"approved": True}}]
        sent = view(*shown["messages"], user("n", "/say and this"), answers=answers)
        reply = (await server.input(sent, thread_id="t")).json()
        assert reply["turn_id"] == turn
        assert "warnings" not in reply
        await server.until_idle()
        assert (await texts(server))[-2:] == ["/say and this", "and this"]
        again = (await server.input(view(answers=answers), thread_id="t")).json()
        assert [warning["code"] for warning in again["warnings"]] == ["unknown_interrupt"]
        log = await server.engine.store.events(reply["session_id"])
        [resumed] = [e.body for e in log if isinstance(e.body, SessionInterruptResumed)]
        assert resumed.responder == {"channel": "client", "user": "local"}


async def test_a_view_may_give_a_question_up() -> None:
    """Status `cancelled`, as AG-UI has it."""
    async with api(asking({"message": "Look?"})) as server:
        await server.say(LOOK)
        question = await server.asked()
        answers = [{"interrupt_id": question["interrupt_id"], "status": "cancelled"}]
        await server.input(view(answers=answers), thread_id="t")
        await server.until_idle()
        assert (await server.show())["interrupts"] == []


async def test_a_paused_branch_takes_no_messages() -> None:
    """409 with the open ids, for each input that brings some."""
    async with api(asking({"message": "Look?"})) as server:
        await server.say(LOOK)
        question = await server.asked()
        shown, seq = (await server.show())["messages"], await server.seq()
        for sent in (
            message("hello?"),
            append(user("n", "hello?")),
            view(*shown, user("n", "hello?")),
        ):
            refused = await server.input(sent, thread_id="t")
            assert code(refused) == (409, "session_interrupted")
            assert refused.json()["interrupt_ids"] == [question["interrupt_id"]]
        assert await server.seq() == seq
