"""Decisions of a worker in the process, through the real route.

Source: `protocol.md` section 5.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from engine import (
    Agent,
    DecisionRequest,
    RetryOverride,
    Tool,
    done,
    interrupt,
    llm_call,
    resolve,
    tool_call,
    tool_result,
)
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.worker import ClientAction, ClientMessages, LlmFinished, ToolExecute
from tests.agui.given import Server, Stream, resolved, until, user
from tests.protocol.calls import Remembering, log_of, results, serving, session_of, shown

AT_ONCE = RetryOverride(max=0)
"""Asks again without a wait."""

OWN = Tool("own", "Do it.", {"type": "object"})


class Worker:
    """A worker that remembers what it was asked, and answers what a test says."""

    def __init__(self, *answers: Callable[[DecisionRequest], Any]) -> None:
        self.asked: list[DecisionRequest] = []
        self.answers = list(answers)

    def agent(self, *tools: Any, on: Iterable[str] | None = None, **more: Any) -> Agent:
        """Declare an agent for which it decides; when it runs out, it takes the proposal."""
        agent = Agent("a", tools=tools, **more)
        if on is None:
            agent.decide(self.decide)
        else:
            agent.decide(on=on)(self.decide)
        return agent

    async def decide(self, request: DecisionRequest) -> Any:
        """Answer the next question."""
        self.asked.append(request)
        return self.answers.pop(0)(request) if self.answers else request.proposed

    @property
    def triggers(self) -> list[str]:
        """Why it was asked."""
        return [request.trigger.type for request in self.asked]


def send(to: str) -> str:
    """Send an email."""
    return f"sent to {to}"


SEND = '/tool send {"to": "ada"}\n/then /say done'


async def test_5_request_fields_over_http() -> None:
    """The session, the turn, the owner, the input and the whole path."""
    worker = Worker()
    async with serving(worker.agent(on=["client.messages"], model="m", system="be kind")) as server:
        first = await server.run(user("u1", "/say one"))
        said = shown("/say one", first)
        second = await server.run(*said, user("u2", "/say two"))
        request = worker.asked[-1]
        assert request.session_id == session_of(second)
        assert (request.turn_id, request.agent_id) == (second.turn_id, "a")
        assert (request.attempt, request.identity.id) == (1, "local")
        assert request.agent == {"model": "m", "system": "be kind"}
        assert [m.id for m in request.messages] == [m["id"] for m in said]
        assert isinstance(request.trigger, ClientMessages)
        assert [m.id for m in request.trigger.messages] == ["u2"]
        assert request.deadline is not None


async def test_5_request_field_proposed_is_always_valid_over_http() -> None:
    """A worker that is asked about everything, and takes it, is not noticed."""
    worker = Worker()
    async with serving(worker.agent(send)) as server:
        stream = await server.run(user("u1", SEND))
        assert (stream.text, stream.outcome) == ("done", "success")
        assert worker.triggers == [
            "session.start",
            "client.messages",
            "llm.finished",
            "tool.execute",
            "tool.finished",
            "llm.finished",
        ]
        assert await log_of(server, stream, ev.DecisionErrored) == []


async def test_5_request_field_message_tree_over_http() -> None:
    """Every branch, for an agent that asks for it."""
    worker = Worker()
    async with serving(worker.agent(on=["client.messages"], send_tree=True)) as server:
        await server.run(user("u1", "/say one"))
        await server.run(user("edit", "/say two"))
        third = await server.run(user("other", "/say three"))
        tree = worker.asked[-1].message_tree
        assert third.outcome == "success"
        assert tree is not None
        assert {"u1", "edit"} <= {each.message.id for each in tree.messages}


async def test_5_response_state_over_http() -> None:
    """Kept between turns, replaced, cleared; never told to a page."""

    def writing(value: Any) -> Callable[[DecisionRequest], Any]:
        return lambda request: replace(request.proposed, state=value)

    worker = Worker(writing({"n": 1}), writing(None), writing({}))
    async with serving(worker.agent(on=["client.messages"])) as server:
        page: list[Any] = []
        for number in range(4):
            page.append(user(f"u{number}", "/say x"))
            stream = await server.run(*page)
            assert "STATE_SNAPSHOT" not in stream.types
            reply = stream.all("TEXT_MESSAGE_START", "messageId")[0]
            page.append({"id": reply, "role": "assistant", "content": "x"})
        assert [request.state for request in worker.asked] == [None, {"n": 1}, {"n": 1}, None]


async def test_5_response_shared_state_over_http() -> None:
    """A value replaces what a page shows, and `{}` clears it."""

    def sharing(value: Any) -> Callable[[DecisionRequest], Any]:
        return lambda request: replace(request.proposed, shared_state=value)

    worker = Worker(sharing({"n": 1}), sharing({}))
    async with serving(worker.agent(on=["client.messages"])) as server:
        first = await server.run(user("u1", "/say x"))
        second = await server.run(*shown("/say x", first), user("u2", "/say y"))
        assert first.all("STATE_SNAPSHOT", "snapshot") == [{"n": 1}]
        assert second.all("STATE_SNAPSHOT", "snapshot") == [{}]


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        ({"actions": [{"type": "explode"}]}, "actions[0]"),
        ({"actions": [{"type": "tool.result", "id": "nobody", "result": "x"}]}, "actions[0].id"),
        ({"actions": [{"type": "interrupt", "reason": ""}]}, "actions[0].reason"),
        (None, "response"),
    ],
    ids=["unknown action", "call not open", "no reason", "nothing"],
)
async def test_5_a_bad_response_is_asked_again_over_http(answer: Any, field: str) -> None:
    """The log names the field; the second answer counts, and the page sees nothing of it."""
    worker = Worker(lambda _request: answer)
    agent = worker.agent(on=["client.messages"], retry={"decision": AT_ONCE})
    async with serving(agent) as server:
        stream = await server.run(user("u1", "/say fine"))
        assert (stream.text, stream.outcome) == ("fine", "success")
        assert [request.attempt for request in worker.asked] == [1, 2]
        [errored] = await log_of(server, stream, ev.DecisionErrored)
        assert errored.error.message.startswith(field)


async def test_5_when_attempts_run_out_over_http() -> None:
    """The run ends with `worker_error`."""
    worker = Worker(*[lambda _request: {"nonsense": 1}] * 3)
    retry = {"decision": replace(AT_ONCE, attempts=2)}
    async with serving(worker.agent(on=["client.messages"], retry=retry)) as server:
        stream = await server.run(user("u1", "/say fine"))
        assert stream.outcome == "error worker_error"
        assert len(worker.asked) == 2


async def test_5_trigger_session_start_over_http() -> None:
    """Once in the life of a session, before the first input."""
    worker = Worker()
    async with serving(worker.agent(on=["session.start", "client.messages"])) as server:
        first = await server.run(user("u1", "/say x"))
        await server.run(*shown("/say x", first), user("u2", "/say y"))
        assert worker.triggers == ["session.start", "client.messages", "client.messages"]


async def test_5_trigger_client_action_over_http() -> None:
    """Outside a turn, a model call in answer opens one."""
    worker = Worker(lambda _request: llm_call())
    async with serving(worker.agent(on=["client.action"])) as server:
        said = await server.run(user("u1", "/say x"))
        action = cmd.TakeAction(name="again", args={"n": 1})
        await server.engine.submit(session_of(said), action)

        async def over() -> bool:
            return len(await log_of(server, said, ev.TurnCompleted)) == 2

        await until(over)
        trigger = worker.asked[0].trigger
        assert isinstance(trigger, ClientAction)
        assert (trigger.name, trigger.args) == ("again", {"n": 1})
        assert len(await log_of(server, said, ev.TurnStarted)) == 2


async def test_5_action_llm_call_takes_what_it_omits_from_the_config_over_http() -> None:
    """Every field may be left out; what is named goes before the config."""
    model = Remembering()
    agent = Agent("a", model="m1", system="be kind")

    @agent.decide(on="client.messages")
    async def decide(request: DecisionRequest) -> Any:
        second = len(model.requests) == 1
        action = llm_call(model="m2", system="be brief") if second else llm_call()
        return replace(request.proposed, actions=(action,))

    async with serving(agent, models={"demo": model}) as server:
        first = await server.run(user("u1", "/say x"))
        await server.run(*shown("/say x", first), user("u2", "/say y"))
        sent = [(request.model, request.system) for request in model.requests]
        assert sent == [("m1", "be kind"), ("m2", "be brief")]


async def test_5_action_tool_error_that_is_retryable_over_http() -> None:
    """The worker runs its tool again; the trigger counts the attempts of one call."""

    def busy(_request: DecisionRequest) -> Any:
        return {"actions": [{"type": "tool.error", "error": "busy", "retryable": True}]}

    worker = Worker(busy, busy, lambda _request: tool_result("did it"))
    own = replace(OWN, retry=replace(AT_ONCE, attempts=3))
    async with serving(worker.agent(own, on=["tool.execute"])) as server:
        stream = await server.run(user("u1", "/tool own {}\n/then /say ok"))
        triggers = [r.trigger for r in worker.asked if isinstance(r.trigger, ToolExecute)]
        assert [trigger.attempt for trigger in triggers] == [1, 2, 3]
        assert len({trigger.id for trigger in triggers}) == 1
        assert list(results(stream).values()) == ["did it"]


async def test_5_action_tool_call_ids_are_used_once_over_http() -> None:
    """Also when the call that had the id is long over: the worker is asked again."""

    def named(request: DecisionRequest) -> Any:
        made = tool_call("send", {"to": "ada"}, id="mine")
        return replace(request.proposed, actions=(made,))

    worker = Worker(named, named)
    agent = worker.agent(send, on=["client.messages"], retry={"decision": AT_ONCE})
    async with serving(agent) as server:
        first = await server.run(user("u1", "/say one"))
        assert first.outcome == "success"
        second = await server.run(*shown("/say one", first), user("u2", "/say two"))
        assert (second.outcome, second.text) == ("success", "two")
        [errored] = await log_of(server, second, ev.DecisionErrored)
        assert errored.error.message.startswith("actions[0].id")


async def test_5_action_tool_call_beside_an_interrupt_starts_over_http() -> None:
    """It runs while the person is asked; its result is told after the answer."""
    ran = asyncio.Event()

    async def look() -> str:
        """Look."""
        ran.set()
        return "saw it"

    def ask_about_the_other(request: DecisionRequest) -> Any:
        trigger = request.trigger
        assert isinstance(trigger, LlmFinished)
        assert trigger.message is not None
        held = trigger.message.tool_calls[0].id
        question = interrupt("confirm", payload={"message": "Send?", "toolCallId": held})
        return replace(request.proposed, actions=(*request.proposed.actions, question))

    worker = Worker(ask_about_the_other)
    script = '/tool send {"to": "ada"}\n/tool look {}\n/then /say done'
    async with serving(worker.agent(send, look, on=["llm.finished"])) as server:
        asked = await server.run(user("u1", script))
        assert asked.outcome == "interrupt"
        await ran.wait()
        answer = [resolved(asked.interrupts[0]["id"], {"approved": True})]
        stream = await server.run(user("u1", script), resume=answer)
        assert sorted(results(stream).values()) == ["saw it", "sent to ada"]
        assert stream.text == "done"


async def test_5_action_interrupt_resolve_over_http() -> None:
    """A worker that is asked about an edit clears the question that was left: never asked again."""

    def resolve_all(request: DecisionRequest) -> Any:
        cleared = [resolve(each.interrupt_id, {"approved": True}) for each in request.interrupts]
        return replace(request.proposed, actions=(*cleared, *request.proposed.actions))

    worker = Worker(
        lambda request: request.proposed, lambda _request: interrupt("confirm"), resolve_all
    )
    agent = worker.agent(send, on=["client.messages", "tool.execute"])
    async with serving(agent) as server:
        asked = await server.run(user("u1", SEND))
        assert asked.outcome == "interrupt"
        edited = await server.run(user("edit", "/say instead"))
        assert edited.text == "instead"
        [cleared] = await log_of(server, edited, ev.SessionInterruptResumed)
        assert cleared.status == "resolved"
        ended = [b.error.code if b.error else None for b in await _completed(server, edited)]
        assert sorted(map(str, ended)) == ["None", "abandoned"]
        assert await log_of(server, edited, ev.CallStarted) == []


async def test_5_action_done_over_http() -> None:
    """Its data is the run's result, and the open call gets a result for the model."""

    def stop(request: DecisionRequest) -> Any:
        return replace(request.proposed, actions=(*request.proposed.actions, done({"n": 1})))

    worker = Worker(stop)
    async with serving(worker.agent(OWN, on=["llm.finished"])) as server:
        stream = await server.run(user("u1", "/tool own {}"))
        assert (stream.outcome, stream.last["result"]) == ("success", {"n": 1})
        assert list(results(stream).values()) == ['{"error":"ended: the turn is done"}']


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "declined"])
async def test_5_the_example_runs_as_written_over_http(approved: bool) -> None:  # noqa: FBT001
    """Ask before the call, act on the answer: a worker in a page of code."""
    agent = Agent("a", tools=[Tool("send_email", "Send.", {"type": "object"})])

    @agent.decide
    def decide(request: DecisionRequest) -> Any:
        trigger = request.trigger
        if trigger.type == "tool.execute" and trigger.name == "send_email":
            payload = {"message": "Send the email?"}
            return {"actions": [{"type": "interrupt", "reason": "confirm", "payload": payload}]}
        if trigger.type == "interrupt.resumed":
            if trigger.payload and trigger.payload.get("approved"):
                result = {"content": [{"type": "text", "text": "sent"}]}
                return {"actions": [{"type": "tool.result", "result": result}]}
            return {"actions": [{"type": "tool.error", "error": "declined"}]}
        return request.proposed

    said = '/tool send_email {"to": "ada"}\n/then /say ok'
    async with serving(agent) as server:
        asked = await server.run(user("u1", said))
        assert [i["message"] for i in asked.interrupts] == ["Send the email?"]
        answer = [resolved(asked.interrupts[0]["id"], {"approved": approved})]
        stream = await server.run(user("u1", said), resume=answer)
        expected = "sent" if approved else '{"error":"declined"}'
        assert list(results(stream).values()) == [expected]
        assert (stream.text, stream.turn_id) == ("ok", asked.turn_id)


async def _completed(server: Server, stream: Stream) -> list[ev.TurnCompleted]:
    return await log_of(server, stream, ev.TurnCompleted)
