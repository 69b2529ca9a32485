"""Runs over turns, through the real route (`agui.md` 2)."""

import asyncio

import pytest

from engine import (
    Agent,
    DecisionRequest,
    DecisionResponse,
    RetryOverride,
    Tool,
    done,
    interrupt,
)
from tests.agui.given import is_running, is_saying, serving, until, user

PATIENT = RetryOverride(attempts=3, max=0)
"""Retries at once, so that no test waits for a backoff."""


def get_weather(city: str) -> str:
    """Say what the weather is like."""
    return f"sunny in {city}"


def assistant() -> Agent:
    """An agent without a worker."""
    return Agent("a", tools=[get_weather], retry={"llm": PATIENT})


async def test_a_text_is_one_message_with_the_id_it_is_recorded_under() -> None:
    """Start, deltas, end, success; the version and the turn's id are on the wire."""
    async with serving(assistant()) as server:
        stream = await server.run(user("u1", "/say hello there"))

        assert stream.types[0] == "RUN_STARTED"
        assert stream.events[0]["protocolVersion"] == "1.0"
        assert stream.types[1] == "TEXT_MESSAGE_START"
        assert stream.types[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
        assert (stream.text, stream.outcome) == ("hello there", "success")
        assert stream.last["metadata"] == stream.events[0]["metadata"]
        session_id = stream.last["metadata"]["agui-server/sessionId"]
        state = await server.engine.state(session_id)
        assert state is not None
        assert state.control.head == stream.all("TEXT_MESSAGE_START", "messageId")[0]


async def test_usage_is_on_the_terminal_event() -> None:
    """Tokens of this run's own calls, one entry a model."""
    async with serving(assistant()) as server:
        stream = await server.run(user("u1", "/say hello there"))
        [usage] = stream.last["usage"]
        assert usage["outputTokens"] == 2
        assert usage["totalTokens"] == usage["inputTokens"] + 2


async def test_reasoning_goes_before_the_text() -> None:
    """A span and a message, opened and closed, then the reply."""
    async with serving(assistant()) as server:
        stream = await server.run(user("u1", "/think let me see\n/say yes"))
        kinds = list(dict.fromkeys(stream.types))
        assert kinds == [
            "RUN_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]


async def test_two_tools_of_one_reply_are_not_mixed() -> None:
    """Each call is announced whole; results carry the recorded messages' ids."""
    script = (
        '/tool get_weather {"city": "Lisbon"}\n/tool get_weather {"city": "Oslo"}\n/then /say ok'
    )
    async with serving(assistant()) as server:
        stream = await server.run(user("u1", script))

        ids = stream.all("TOOL_CALL_START", "toolCallId")
        assert stream.all("TOOL_CALL_END", "toolCallId") == ids
        parents = stream.all("TOOL_CALL_START", "parentMessageId")
        assert len(set(parents)) == 1
        results = dict(
            zip(
                stream.all("TOOL_CALL_RESULT", "toolCallId"),
                stream.all("TOOL_CALL_RESULT", "content"),
                strict=True,
            )
        )
        assert [results[i] for i in ids] == ["sunny in Lisbon", "sunny in Oslo"]
        assert stream.text == "ok"


async def test_a_call_without_arguments_ends_with_an_empty_object() -> None:
    """So that what the client stores is valid JSON."""
    async with serving(assistant()) as server:
        stream = await server.run(user("u1", "/tool get_weather"))
        assert stream.all("TOOL_CALL_ARGS", "delta") == ["{}"]


async def test_dones_data_is_the_result() -> None:
    """`done {data}` ends the run with success and its result."""
    agent = assistant()

    @agent.decide(on="client.messages")
    def decide(request: DecisionRequest) -> object:
        return done({"answer": 42})

    async with serving(agent) as server:
        stream = await server.run(user("u1", "hi"))
        assert (stream.outcome, stream.last["result"]) == ("success", {"answer": 42})


async def test_a_provider_that_fails_is_a_run_error_with_a_public_sentence() -> None:
    """The code is stable; the provider's own words stay in the log."""
    async with serving(assistant()) as server:
        stream = await server.run(user("u1", "/fail 400"))
        assert stream.outcome == "error provider_error"
        assert "400" not in stream.last["message"]


async def test_the_same_message_again_after_an_error_is_answered() -> None:
    """Sending again is the client's retry: a new turn over the recorded message."""
    async with serving(assistant()) as server:
        first = await server.run(user("u1", "/fail 400"))
        second = await server.run(user("u1", "/fail 400"), user("u2", "/say fine"))
        third = await server.run(user("u1", "/fail 400"))

        assert first.outcome == third.outcome == "error provider_error"
        assert (second.outcome, second.text) == ("success", "fine")
        assert len({first.turn_id, second.turn_id, third.turn_id}) == 3


async def test_a_retry_takes_back_what_the_failed_attempt_said() -> None:
    """The partial message is closed, a snapshot without it, then the new attempt's own id."""
    async with serving(assistant()) as server:
        stream = await server.run(user("u1", "/say one two\n/fail 500 times 1\n/say three"))

        first, second = stream.all("TEXT_MESSAGE_START", "messageId")
        assert first != second
        [snapshot] = stream.all("MESSAGES_SNAPSHOT", "messages")
        assert [m["id"] for m in snapshot] == ["u1"]
        assert stream.types.index("MESSAGES_SNAPSHOT") < stream.types.index(
            "TEXT_MESSAGE_START", stream.types.index("TEXT_MESSAGE_END")
        )
        assert stream.outcome == "success"


async def test_cancel_in_the_middle_of_a_text() -> None:
    """Case 23: the cancelled outcome, everything closed, no reply later; the thread is usable."""
    async with serving(assistant()) as server:
        running = asyncio.create_task(server.run(user("u1", "/tokens 100000 every 5")))
        await until(lambda: is_saying(server))
        answer = await server.cancel()
        stream = await running

        assert answer["cancelled"] is True
        assert answer["turn_ids"] == [stream.turn_id]
        assert stream.types[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
        assert stream.outcome == "cancelled"
        assert "result" not in stream.last
        assert "MESSAGES_SNAPSHOT" not in stream.types
        again = await server.cancel()
        assert again == {"cancelled": False, "turn_ids": []}
        following = await server.run(user("u1", "x"), user("u2", "/say here"))
        assert following.text == "here"


async def test_what_a_cancelled_reply_said_becomes_part_of_the_record() -> None:
    """People saw it; the client sends it with its next view, and only its text is taken."""
    async with serving(assistant()) as server:
        running = asyncio.create_task(server.run(user("u1", "/tokens 100000 every 5")))
        await until(lambda: is_saying(server))
        await server.cancel()
        stopped = await running
        partial = {
            "id": stopped.all("TEXT_MESSAGE_START", "messageId")[0],
            "role": "assistant",
            "content": stopped.text,
        }
        stream = await server.run(user("u1", "x"), partial, user("u2", "/say on"))

        state = await server.engine.state(stream.last["metadata"]["agui-server/sessionId"])
        assert state is not None
        path = [node.message for node in state.tree.path(state.control.head)]
        assert [m.role for m in path] == ["user", "assistant", "user", "assistant"]
        assert path[1].content == stopped.text


async def test_a_cancelled_run_of_an_old_client_is_an_error() -> None:
    """No cancelled outcome before 1.0."""
    async with serving(assistant()) as server:
        running = asyncio.create_task(server.run(user("u1", "/hang"), protocolVersion=None))
        await until(lambda: is_running(server))
        await server.cancel()
        assert (await running).outcome == "error cancelled"


async def test_a_retried_post_attaches_to_its_run() -> None:
    """Same run id, same input: nothing runs twice, the conversation is restated."""
    async with serving(assistant()) as server:
        first = await server.run(user("u1", "/say once"), runId="same")
        again = await server.run(user("u1", "/say once"), runId="same")

        assert again.turn_id == first.turn_id
        assert "TEXT_MESSAGE_START" not in again.types
        [snapshot] = again.all("MESSAGES_SNAPSHOT", "messages")
        assert [m["role"] for m in snapshot] == ["user", "assistant"]
        assert again.outcome == "success"


async def test_a_run_id_is_not_used_for_two_inputs() -> None:
    """409 `run_id_reused`, and no stream."""
    async with serving(assistant()) as server:
        await server.run(user("u1", "/say once"), runId="same")
        refused = await server.run(user("u1", "x"), user("u2", "/say twice"), runId="same")
        assert (refused.status, refused.problem["code"]) == (409, "run_id_reused")


async def test_a_retried_post_in_the_middle_joins_the_text_so_far() -> None:
    """Case 29: a snapshot, the message re-opened with its text in one delta, then live."""
    async with serving(assistant()) as server:
        body = user("u1", "/tokens 60 every 5")
        first = asyncio.create_task(server.run(body, runId="same"))
        await until(lambda: is_running(server))
        again = await server.run(body, runId="same")
        whole = await first

        assert again.types[:3] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "TEXT_MESSAGE_START"]
        assert again.text == whole.text == "".join(f"word{i} " for i in range(60))
        assert again.turn_id == whole.turn_id


async def test_a_second_run_of_other_input_is_refused_while_a_turn_runs() -> None:
    """Case 25: one runs, the other is told to wait; nothing of it is recorded."""
    async with serving(assistant()) as server:
        running = asyncio.create_task(server.run(user("u1", "/hang")))
        await until(lambda: is_running(server))
        refused = await server.run(user("u1", "/hang"), user("u2", "more"))
        assert (refused.status, refused.problem["code"]) == (409, "turn_already_active")
        await server.cancel()
        assert (await running).outcome == "cancelled"


async def test_two_posts_on_a_new_thread_at_once_make_one_session() -> None:
    """One runs, the other is refused or attached; never two sessions."""
    async with serving(assistant()) as server:
        streams = await asyncio.gather(
            *(server.run(user(f"u{i}", "/tokens 20 every 2")) for i in range(5))
        )
        ran = [s for s in streams if s.status == 200]
        assert len(ran) == 1
        assert {s.problem["code"] for s in streams if s.status != 200} == {"turn_already_active"}


async def test_a_reader_that_goes_away_ends_nothing() -> None:
    """A dropped connection is not a cancel."""
    async with serving(assistant()) as server:
        gone = asyncio.create_task(server.run(user("u1", "/tokens 60 every 5"), runId="same"))
        await until(lambda: is_running(server))
        gone.cancel()
        again = await server.run(user("u1", "/tokens 60 every 5"), runId="same")
        assert again.text.endswith("word59 ")
        assert again.outcome == "success"


async def test_shared_state_is_shown() -> None:
    """A decision that writes it sends it; a later attach shows it again."""
    agent = assistant()

    @agent.decide(on="client.messages")
    def decide(request: DecisionRequest) -> object:
        proposed = request.proposed
        return DecisionResponse(
            messages=proposed.messages, actions=proposed.actions, shared_state={"n": None}
        )

    async with serving(agent) as server:
        stream = await server.run(user("u1", "/say x"), runId="same")
        assert stream.all("STATE_SNAPSHOT", "snapshot") == [{"n": None}]
        again = await server.run(user("u1", "/say x"), runId="same")
        assert again.all("STATE_SNAPSHOT", "snapshot") == [{"n": None}]


async def test_an_unknown_agent_is_404() -> None:
    """Before any byte of a stream."""
    async with serving(assistant()) as server:
        stream = await server.run(user("u1", "x"), agent="nobody")
        assert (stream.status, stream.problem["code"]) == (404, "unknown_agent")


async def test_an_empty_view_of_a_new_thread_shows_nothing_and_records_nothing() -> None:
    """Input that starts nothing is answered like `connect`."""
    async with serving(assistant()) as server:
        stream = await server.run()
        assert stream.types == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        assert stream.turn_id is None
        assert not await server.engine.store.sessions(limit=1)


@pytest.mark.parametrize("legacy", [True, False], ids=["old client", "1.0"])
async def test_a_frontend_tool_continues_the_same_turn(legacy: bool) -> None:  # noqa: FBT001
    """The run ends with the call pending; the answer's run goes on, and gets no result back."""
    tools = [{"name": "pick", "description": "", "parameters": {"type": "object"}}]
    version = None if legacy else "1.0"
    async with serving(assistant()) as server:
        asked = await server.run(
            user("u1", "/tool pick {}\n/then /say picked"), tools=tools, protocolVersion=version
        )
        [call_id] = asked.all("TOOL_CALL_START", "toolCallId")
        pending = asked.last["outcome"].get("pendingToolCallIds")
        assert pending == (None if legacy else [call_id])
        reply = {
            "id": asked.all("TOOL_CALL_START", "parentMessageId")[0],
            "role": "assistant",
            "toolCalls": [
                {
                    "id": call_id,
                    "type": "function",
                    "function": {"name": "pick", "arguments": "{}"},
                }
            ],
        }
        answer = {"id": "t1", "role": "tool", "toolCallId": call_id, "content": "blue"}
        said = await server.run(
            user("u1", "x"), reply, answer, tools=tools, protocolVersion=version
        )
        assert said.turn_id == asked.turn_id
        assert "TOOL_CALL_RESULT" not in said.types
        assert (said.text, said.outcome) == ("picked", "success")


async def test_a_worker_that_raises_ends_the_run_without_its_words() -> None:
    """A bug in `decide` is a `worker_error`; its text is for the log."""
    agent = assistant()

    @agent.decide
    def decide(request: DecisionRequest) -> object:
        raise RuntimeError("secret")

    async with serving(agent) as server:
        stream = await server.run(user("u1", "x"))
        assert stream.outcome == "error worker_error"
        assert "secret" not in stream.last["message"]


async def test_a_workers_own_tool_may_answer_at_once() -> None:
    """A worker that runs its tool inside `decide`."""
    agent = Agent("a", tools=[Tool("add", "Add.", {"type": "object"})])

    @agent.decide(on="tool.execute")
    async def decide(request: DecisionRequest) -> object:
        return {"actions": [{"type": "tool.result", "result": "3"}]}

    async with serving(agent) as server:
        stream = await server.run(user("u1", "/tool add {}\n/then /say sum"))
        assert stream.all("TOOL_CALL_RESULT", "content") == ["3"]
        assert stream.text == "sum"


async def test_several_questions_in_one_response_are_one_outcome() -> None:
    """Case 3: three parallel calls held by three interrupts; each answer reaches its own call."""
    agent = Agent("a", tools=[get_weather])

    @agent.decide(on="llm.finished")
    def decide(request: DecisionRequest) -> object:
        proposed = request.proposed
        if request.trigger.type != "llm.finished" or request.trigger.message is None:
            return proposed
        asks = [
            interrupt("tool_call", payload={"toolCallId": call.id, "message": call.arguments})
            for call in request.trigger.message.tool_calls
        ]
        return DecisionResponse(messages=proposed.messages, actions=(*proposed.actions, *asks))

    script = "\n".join(f'/tool get_weather {{"city": "{c}"}}' for c in "ABC") + "\n/then /say ok"
    async with serving(agent) as server:
        asked = await server.run(user("u1", script))
        assert [i["message"] for i in asked.interrupts] == [f'{{"city": "{c}"}}' for c in "ABC"]
        answers = [
            {"interruptId": i["id"], "status": "resolved", "payload": {"approved": n != 1}}
            for n, i in enumerate(asked.interrupts)
        ]
        stream = await server.run(user("u1", script), resume=answers)
        results = dict(
            zip(
                stream.all("TOOL_CALL_RESULT", "toolCallId"),
                stream.all("TOOL_CALL_RESULT", "content"),
                strict=True,
            )
        )
        assert [results[i["toolCallId"]] for i in asked.interrupts] == [
            "sunny in A",
            '{"error":"a person declined"}',
            "sunny in C",
        ]
        assert stream.text == "ok"


@pytest.mark.parametrize("answer", ["other text", "nothing"])
async def test_a_reply_recorded_otherwise_than_streamed_is_restated(answer: str) -> None:
    """The snapshot has what the record has; the page is put right before the end."""
    agent = assistant()

    @agent.decide(on="llm.finished")
    def decide(request: DecisionRequest) -> object:
        if answer == "nothing" or request.trigger.type != "llm.finished":
            return {}
        assert request.trigger.message is not None
        reply = {"id": request.trigger.message.id, "role": "assistant", "content": "better"}
        return {"messages": [reply]}

    async with serving(agent) as server:
        stream = await server.run(user("u1", "/say worse"))
        [snapshot] = stream.all("MESSAGES_SNAPSHOT", "messages")
        contents = [m["content"] for m in snapshot if m["role"] == "assistant"]
        assert contents == ([] if answer == "nothing" else ["better"])
        assert stream.outcome == "success"
