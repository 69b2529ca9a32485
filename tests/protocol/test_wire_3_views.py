"""Views as pages send them. Source: `protocol.md` section 3."""

import asyncio
from typing import Any

import pytest

from engine import Agent, DecisionRequest, DecisionResponse, interrupt, llm_call
from engine.core.messages import AssistantMessage, ToolCall
from tests.agui.given import Event, Server, Stream, is_running, resolved, until, user
from tests.protocol.given import (
    history,
    ids,
    path_of,
    results,
    roles,
    served,
    state_of,
)

TOOLS = [{"name": "pick", "description": "", "parameters": {"type": "object"}}]
PICK = "/tool pick {}\n/then /say picked"
SEND = '/tool send {"to": "ada"}\n/then /say sent'


def sender(*, asks: bool = False) -> Agent:
    """An agent that sends; maybe its worker asks a person first."""

    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    agent = Agent("a", tools=[send])
    if asks:

        @agent.decide(on="tool.execute")
        def ask(request: DecisionRequest) -> Any:
            return interrupt("confirm", payload={"message": "Send?"})

    return agent


def wire(message_id: str, role: str, **more: Any) -> Event:
    """A message as AG-UI writes it."""
    return {"id": message_id, "role": role, **more}


async def shown_after(server: Server, *messages: Event, **more: Any) -> list[Event]:
    """Run an input that ends well, and return what a page shows then."""
    stream = await server.run(*messages, **more)
    assert stream.outcome == "success"
    return await history(server)


# --------------------------------------------------------------------- rule 0

INVENTED = [
    wire("x", "reasoning", content="hm"),
    wire("x", "activity", activityType="note", content={}),
    wire("x", "tool", toolCallId="?", content="again"),
]


@pytest.mark.parametrize("invented", INVENTED, ids=lambda message: message["role"])
async def test_3_rule_0_unknown_thoughts_notes_and_results_are_taken_out_over_http(
    invented: Event,
) -> None:
    """The run goes on with what is new, and nothing else is recorded."""
    async with served(sender()) as (server, heard):
        shown = await shown_after(server, user("u1", SEND))
        call_id = shown[1]["toolCalls"][0]["id"]
        message = {k: call_id if v == "?" else v for k, v in invented.items()}
        stream = await server.run(*shown, message, user("u2", "/say ok"))
        assert stream.text == "ok"
        assert roles(await path_of(server)) == [
            *("user", "assistant", "tool", "assistant"),
            *("user", "assistant"),
        ]
        assert "x" not in ids(heard.last)


@pytest.mark.parametrize("role", ["system", "developer"])
async def test_3_rule_0_instructions_are_for_this_input_only_over_http(role: str) -> None:
    """The model of this run is sent them, that of the next run is not."""
    async with served() as (server, heard):
        shown = await shown_after(server, user("u1", "/say hi"))
        told = wire("x", role, content="be brief")
        shown = await shown_after(server, told, *shown, user("u2", "/say ok"))
        assert ids(heard.last)[0] == "x"
        assert "x" not in [message["id"] for message in shown]
        await server.run(*shown, user("u3", "/say ok"))
        assert "x" not in ids(heard.last)


async def test_3_rule_0_instructions_reach_the_model_beside_a_frontends_result_over_http() -> None:
    """A page that sends them with every request, under fresh ids, is obeyed each time."""
    async with served() as (server, heard):
        shown = await shown_after(server, user("u1", PICK), tools=TOOLS)
        call_id = shown[-1]["toolCalls"][0]["id"]
        result = wire("t1", "tool", toolCallId=call_id, content="blue")
        told = wire("x", "system", content="be brief")
        stream = await server.run(told, *shown, result, tools=TOOLS)
        assert stream.text == "picked"
        assert ids(heard.last)[0] == "x"


async def test_3_rule_0_a_result_that_ends_a_frontends_call_is_recorded_once_over_http() -> None:
    """Under the id that the page shows it under; sent again it changes nothing."""
    async with served() as (server, _):
        shown = await shown_after(server, user("u1", PICK), tools=TOOLS)
        call_id = shown[-1]["toolCalls"][0]["id"]
        result = wire("mine", "tool", toolCallId=call_id, content="blue")
        again = wire("other", "tool", toolCallId=call_id, content="red")
        stream = await server.run(*shown, result, tools=TOOLS)
        assert stream.text == "picked"
        await server.run(*shown, result, again, user("u2", "/say ok"), tools=TOOLS)
        path = await path_of(server)
        assert [m.id for m in path if m.role == "tool"] == ["mine"]
        assert results(path) == [(call_id, "blue")]


# --------------------------------------------------------------------- rule 1


async def test_3_rule_1_what_may_be_missing_over_http() -> None:
    """The reply that was only a call, its result and the thought: no edit, no snapshot."""
    async with served(sender()) as (server, _):
        shown = await shown_after(server, user("u1", f"/think hm\n{SEND}"))
        assert [m["role"] for m in shown] == ["user", "reasoning", "assistant", "tool", "assistant"]
        stream = await server.run(shown[0], shown[-1], user("u2", "/say ok"))
        assert "MESSAGES_SNAPSHOT" not in stream.types
        assert len(await path_of(server)) == 7


async def test_3_rule_1_leaving_out_a_users_message_is_an_edit_over_http() -> None:
    """The old branch stays; the model of the new one does not see it."""
    async with served() as (server, heard):
        shown = await shown_after(server, user("u1", "/say hi"))
        await shown_after(server, *shown, user("u2", "/say two"))
        stream = await server.run(*shown, user("edit", "/say instead"))
        assert stream.text == "instead"
        assert ids(heard.last)[::2] == ["u1", "edit"]
        assert "u2" in (await state_of(server)).tree


# --------------------------------------------------------------------- rule 2


async def test_3_rule_2_a_known_id_in_the_remainder_is_refused_over_http() -> None:
    """422, the code, and the id."""
    async with served() as (server, _):
        await shown_after(server, user("u1", "/say hi"))
        refused = await server.run(user("x", "new"), user("u1", "/say hi"))
        assert (refused.status, refused.problem["code"]) == (422, "invalid_view")
        assert "u1" in refused.problem["detail"]
        assert len(await path_of(server)) == 2


async def test_3_rule_2_an_assistant_message_is_recorded_without_unknown_calls_over_http() -> None:
    """A page brings a conversation from elsewhere."""
    async with served() as (server, heard):
        function = {"name": "send", "arguments": "{}"}
        calls = [{"id": "c9", "type": "function", "function": function}]
        foreign = wire("x", "assistant", content="well", toolCalls=calls)
        await server.run(user("u1", "hello"), foreign, user("u2", "/say ok"))
        assert heard.last[1] == AssistantMessage(id="x", content="well")


# --------------------------------------------------------------------- rule 3


async def test_3_rule_3_a_view_that_ends_on_a_users_message_asks_for_another_reply_over_http() -> (
    None
):
    """A new turn, a new reply, beside the old one."""
    async with served() as (server, _):
        first = await server.run(user("u1", "/say hi"))
        again = await server.run(user("u1", "/say hi"))
        assert again.turn_id not in {None, first.turn_id}
        assert again.text == "hi"
        assert len((await state_of(server)).tree.children("u1")) == 2


async def test_3_rule_3_a_view_that_ends_on_an_assistant_message_starts_nothing_over_http() -> None:
    """The page changes branches: it is shown what is there."""
    async with served() as (server, heard):
        old = await shown_after(server, user("u1", "/say hi"))
        await server.run(user("u1", "/say hi"))
        calls = len(heard.requests)
        stream = await server.run(*old)
        assert (stream.outcome, stream.turn_id) == ("success", None)
        assert [m["id"] for m in stream.all("MESSAGES_SNAPSHOT", "messages")[0]] == [
            message["id"] for message in old
        ]
        assert len(heard.requests) == calls
        assert [m.id for m in await path_of(server)] == [message["id"] for message in old]


# --------------------------------------------------------------------- rule 4


async def asked(server: Server) -> tuple[Stream, list[Event]]:
    """Run into a question; return that run, and what is shown."""
    stream = await server.run(user("u1", SEND))
    assert stream.outcome == "interrupt"
    return stream, await history(server)


@pytest.mark.parametrize("much", [0, 1, 2])
async def test_3_rule_4_a_view_on_or_above_the_head_of_an_open_turn_changes_nothing_over_http(
    much: int,
) -> None:
    """The question comes again, whatever the page still shows; nothing is recorded."""
    async with served(sender(asks=True)) as (server, _):
        first, shown = await asked(server)
        length = (await state_of(server)).control.seq
        again = await server.run(*shown[:much])
        assert again.interrupts == first.interrupts
        assert again.turn_id == first.turn_id
        assert (await state_of(server)).control.seq == length


@pytest.mark.parametrize("much", [1, 2], ids=["its input", "its end"])
async def test_3_rule_4_a_view_on_a_message_of_a_parked_turn_brings_it_back_over_http(
    much: int,
) -> None:
    """The old turn, with its question."""
    async with served(sender(asks=True)) as (server, _):
        first, shown = await asked(server)
        await server.run(user("edit", "/say instead"))
        back = await server.run(*shown[:much])
        assert (back.turn_id, back.interrupts) == (first.turn_id, first.interrupts)


async def test_3_rule_4_a_view_above_a_named_question_lands_on_its_branch_over_http() -> None:
    """An empty view with the answer finds the branch that was left."""
    async with served(sender(asks=True)) as (server, _):
        first, _ = await asked(server)
        await server.run(user("edit", "/say instead"))
        stream = await server.run(resume=[resolved(first.interrupts[0]["id"], True)])
        assert (stream.turn_id, stream.text) == (first.turn_id, "sent")


async def test_3_rule_4_old_answers_are_never_a_wish_for_another_reply_over_http() -> None:
    """The answer again, with a view that ends on the person's message: nothing runs."""
    async with served(sender(asks=True)) as (server, heard):
        first, shown = await asked(server)
        answers = [resolved(first.interrupts[0]["id"], True)]
        await server.run(*shown, resume=answers)
        calls = len(heard.requests)
        again = await server.run(shown[0], resume=answers)
        assert (again.turn_id, again.outcome) == (first.turn_id, "success")
        assert len(heard.requests) == calls


async def test_3_rule_4_an_empty_view_lands_on_the_active_branch_over_http() -> None:
    """It is shown the conversation."""
    async with served() as (server, _):
        shown = await shown_after(server, user("u1", "/say hi"))
        stream = await server.run()
        assert [m["id"] for m in stream.all("MESSAGES_SNAPSHOT", "messages")[0]] == [
            message["id"] for message in shown
        ]
        assert await history(server) == shown


# --------------------------------------------------------------------- rule 5


@pytest.mark.parametrize("what", ["an edit", "another reply"])
async def test_3_rule_5_a_running_turn_is_not_left_over_http(what: str) -> None:
    """409, before any byte of a stream; the turn goes on."""
    async with served() as (server, _):
        shown = await shown_after(server, user("u1", "/say hi"))
        running = asyncio.create_task(server.run(*shown, user("u2", "/hang")))
        await until(lambda: is_running(server))
        view = [user("edit", "x")] if what == "an edit" else shown[:1]
        refused = await server.run(*view)
        assert (refused.status, refused.problem["code"]) == (409, "turn_already_active")
        await server.cancel()
        assert refused.problem["turn_id"] == (await running).turn_id


# --------------------------------------------------------------------- rule 6


async def test_3_rule_6_a_known_id_with_other_content_changes_nothing_over_http() -> None:
    """The model is sent what was recorded."""
    async with served() as (server, heard):
        shown = await shown_after(server, user("u1", "/say hi"))
        changed = [{**message, "content": "changed"} for message in shown]
        await server.run(*changed, user("u2", "/say ok"))
        assert [m.content for m in heard.last[:2]] == ["/say hi", "hi"]


async def test_3_rule_6_a_view_of_which_nothing_is_known_is_a_branch_at_the_root_over_http() -> (
    None
):
    """With the warning, and a reply."""
    async with served() as (server, _):
        await shown_after(server, user("u1", "/say hi"))
        stream = await server.run(user("x1", "/say new"))
        assert (stream.warnings, stream.text) == (["unknown_history"], "new")
        assert ids(await path_of(server))[0] == "x1"


# -------------------------------------------------------- order of results


class Turnstile:
    """Two tools, the first of which ends after the second."""

    def __init__(self) -> None:
        self.second = asyncio.Event()

    def agent(self) -> Agent:
        """Declare both."""

        async def slow() -> str:
            """End last."""
            await self.second.wait()
            return "slow"

        async def fast() -> str:
            """End first."""
            return "fast"

        agent = Agent("a", tools=[slow, fast])

        @agent.decide(on="tool.finished")
        def decide(request: DecisionRequest) -> Any:
            self.second.set()
            return request.proposed

        return agent


async def test_3_results_stand_behind_their_calls_over_http() -> None:
    """In the order of the calls: in the model's request and in a snapshot."""
    async with served(Turnstile().agent()) as (server, heard):
        script = "/tool slow {}\n/tool fast {}\n/then /say ok"
        stream = await server.run(user("u1", script))
        assert stream.all("TOOL_CALL_RESULT", "content") == ["fast", "slow"]
        assert [content for _, content in results(heard.last)] == ["slow", "fast"]
        again = await server.run()
        [snapshot] = again.all("MESSAGES_SNAPSHOT", "messages")
        assert [m["content"] for m in snapshot if m["role"] == "tool"] == ["slow", "fast"]


async def test_3_a_call_without_a_result_is_followed_by_no_result_over_http() -> None:
    """The worker records a reply with a call and goes straight on to the model."""
    agent = Agent("a")

    @agent.decide(on="client.messages")
    def decide(request: DecisionRequest) -> Any:
        reply = AssistantMessage(id="x", tool_calls=(ToolCall(id="c9", name="send"),))
        return DecisionResponse(messages=(*request.proposed.messages, reply), actions=(llm_call(),))

    async with served(agent) as (server, heard):
        await server.run(user("u1", "/then /say ok"))
        assert results(heard.last) == [("c9", "no result")]
