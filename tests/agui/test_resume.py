"""Interrupts and resume on the wire (`agui.md` 3), one branch."""

import asyncio
from typing import Any

import pytest

from engine import Agent, DecisionRequest, interrupt, llm_call
from engine.core import commands as cmd
from tests.agui.given import (
    Event,
    Server,
    Stream,
    cancelled,
    is_running,
    resolved,
    serving,
    until,
    user,
)
from tests.agui.test_runs import PATIENT

OPTIONS = [{"label": "Yes", "value": "yes"}, {"label": "No", "value": "no"}]
ASK = '/tool send {"to": "ada"}\n/then /say done'


class Outbox:
    """What really ran."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def agent(self, **payload: Any) -> Agent:
        """An agent whose worker asks a person before the engine runs its tool."""

        def send(to: str) -> str:
            """Send an email."""
            self.sent.append(to)
            return f"sent to {to}"

        gated = Agent("a", tools=[send], retry={"llm": PATIENT})

        @gated.decide(on=("tool.execute",))
        def ask_first(request: DecisionRequest) -> Any:
            return interrupt("confirm", payload={"message": "Send?", **payload})

        return gated


async def ask(server: Server, script: str = ASK) -> Stream:
    """Run until the question."""
    stream = await server.run(user("u1", script))
    assert stream.outcome == "interrupt"
    return stream


def shown(stream: Stream, script: str = ASK) -> list[Event]:
    """The view of a client that followed a run up to its question."""
    call_id = stream.all("TOOL_CALL_START", "toolCallId")[0]
    arguments = "".join(stream.all("TOOL_CALL_ARGS", "delta"))
    reply = {
        "id": stream.all("TOOL_CALL_START", "parentMessageId")[0],
        "role": "assistant",
        "toolCalls": [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": "send", "arguments": arguments},
            }
        ],
    }
    return [user("u1", script), reply]


async def test_an_interrupt_names_the_call_and_the_turn() -> None:
    """`{id, reason, message, toolCallId, metadata}`; the run is over, its call closed."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        [question] = asked.interrupts
        assert (question["reason"], question["message"]) == ("confirm", "Send?")
        assert question["toolCallId"] == asked.all("TOOL_CALL_END", "toolCallId")[0]
        assert question["metadata"] == {"agui-server/turnId": asked.turn_id}
        assert outbox.sent == []


async def test_the_answer_opens_a_new_run_in_the_same_turn() -> None:
    """Only the result of the call is told, never the call again; case 5."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        stream = await server.run(
            *shown(asked), resume=[resolved(asked.interrupts[0]["id"], {"approved": True})]
        )
        assert stream.turn_id == asked.turn_id
        assert stream.events[0]["runId"] != asked.events[0]["runId"]
        assert "TOOL_CALL_START" not in stream.types
        assert stream.all("TOOL_CALL_RESULT", "content") == ["sent to ada"]
        assert (stream.text, stream.outcome) == ("done", "success")
        assert outbox.sent == ["ada"]


@pytest.mark.parametrize("messages", ["none", "fewer", "whole"])
async def test_what_the_view_holds_does_not_matter_to_an_answer(messages: str) -> None:
    """Cases 1, 8 and 9: an answer is a resume, never a regenerate; nothing is recorded twice."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        view = {"none": [], "fewer": [user("u1", ASK)], "whole": shown(asked)}[messages]
        stream = await server.run(
            *view, resume=[resolved(asked.interrupts[0]["id"], {"approved": True})]
        )
        assert (stream.turn_id, stream.text) == (asked.turn_id, "done")
        state = await server.engine.state(stream.last["metadata"]["agui-server/sessionId"])
        assert state is not None
        path = [node.message.role for node in state.tree.path(state.control.head)]
        assert path == ["user", "assistant", "tool", "assistant"]


async def test_declining_is_told_to_the_model_and_the_run_succeeds() -> None:
    """The tool does not run; its result is an error; the reply follows."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        stream = await server.run(
            *shown(asked), resume=[resolved(asked.interrupts[0]["id"], {"approved": False})]
        )
        assert stream.all("TOOL_CALL_RESULT", "content") == ['{"error":"a person declined"}']
        assert stream.outcome == "success"
        assert outbox.sent == []


async def test_giving_the_question_up_and_asking_something_else_is_one_turn() -> None:
    """Case 17e: `cancelled` and a new message in one request; the message is answered."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        stream = await server.run(
            *shown(asked),
            user("u2", "/say instead"),
            resume=[cancelled(asked.interrupts[0]["id"])],
        )
        assert (stream.turn_id, stream.text) == (asked.turn_id, "instead")
        assert outbox.sent == []


@pytest.mark.parametrize("count", [1, 20], ids=["serial", "parallel"])
async def test_the_same_answer_again_attaches_and_runs_nothing(count: int) -> None:
    """The first one counts; every later one ends as the turn ends."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        resume = [resolved(asked.interrupts[0]["id"], {"approved": True})]
        streams = await asyncio.gather(
            *(server.run(*shown(asked), resume=resume) for _ in range(count))
        )
        streams = [*streams, await server.run(*shown(asked), resume=resume)]

        assert outbox.sent == ["ada"]
        assert {s.outcome for s in streams} == {"success"}
        assert {s.turn_id for s in streams} == {asked.turn_id}
        assert "TOOL_CALL_RESULT" not in streams[-1].types


async def test_the_second_answer_does_nothing_even_if_it_differs() -> None:
    """Case 16: answered `true`, then `false`."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        question = asked.interrupts[0]["id"]
        await server.run(resume=[resolved(question, True)])
        again = await server.run(resume=[resolved(question, False)])
        assert again.outcome == "success"
        assert "unknown_interrupt" in again.warnings
        assert outbox.sent == ["ada"]


async def test_an_old_answer_beside_new_messages_is_ignored() -> None:
    """Case 6: the view runs; the tool does not run again."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        resume = [resolved(asked.interrupts[0]["id"], True)]
        done = await server.run(*shown(asked), resume=resume)
        result = {
            "id": done.all("TOOL_CALL_RESULT", "messageId")[0],
            "role": "tool",
            "toolCallId": asked.all("TOOL_CALL_START", "toolCallId")[0],
            "content": "sent to ada",
        }
        said = {
            "id": done.all("TEXT_MESSAGE_START", "messageId")[0],
            "role": "assistant",
            "content": "done",
        }
        stream = await server.run(
            *shown(asked), result, said, user("u2", "/say next"), resume=resume
        )
        assert (stream.text, stream.outcome) == ("next", "success")
        assert stream.turn_id != asked.turn_id
        assert outbox.sent == ["ada"]


async def test_an_unknown_id_is_a_warning() -> None:
    """Case 14: a forged answer for nothing. Answered like `connect`."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        await server.run(user("u1", "/say hi"))
        stream = await server.run(resume=[resolved("forged", {"approved": True})])
        assert stream.types[:3] == ["RUN_STARTED", "CUSTOM", "MESSAGES_SNAPSHOT"]
        assert stream.warnings == ["unknown_interrupt"]
        assert stream.outcome == "success"


async def test_a_wrong_choice_brings_the_question_again() -> None:
    """Case 17g: not an offered value; nothing changes, and the page is not stuck."""
    outbox = Outbox()
    async with serving(outbox.agent(metadata={"options": OPTIONS})) as server:
        asked = await ask(server)
        [question] = asked.interrupts
        assert question["responseSchema"] == {"enum": ["yes", "no"]}
        wrong = await server.run(*shown(asked), resume=[resolved(question["id"], "maybe")])
        assert wrong.warnings == ["invalid_answer"]
        assert [i["id"] for i in wrong.interrupts] == [question["id"]]

        right = await server.run(*shown(asked), resume=[resolved(question["id"], "no")])
        assert right.outcome == "success"
        assert outbox.sent == []


async def test_the_question_comes_again_without_an_answer() -> None:
    """Case 2: the same view, no `resume`: one RUN_STARTED, the question, nothing else."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        again = await server.run(*shown(asked))
        assert again.types == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        assert again.interrupts == asked.interrupts


async def test_a_message_typed_over_an_open_question_stays_on_the_screen() -> None:
    """It is not recorded; the question comes again; what the page lacks is restated."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        whole = await server.run(*shown(asked), user("u2", "hello?"))
        assert whole.types == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
        assert whole.warnings == ["session_interrupted"]
        assert whole.interrupts == asked.interrupts


async def test_a_page_that_lacks_something_is_shown_it_with_the_question() -> None:
    """Here the model's thoughts; what the person typed ends the snapshot."""
    outbox = Outbox()
    script = "/think hm\n" + ASK
    async with serving(outbox.agent()) as server:
        asked = await ask(server, script)
        lacking = await server.run(*shown(asked, script), user("u2", "hello?"))
        [snapshot] = lacking.all("MESSAGES_SNAPSHOT", "messages")
        assert [m["role"] for m in snapshot] == ["user", "reasoning", "assistant", "user"]
        assert snapshot[-1]["id"] == "u2"
        assert lacking.interrupts == asked.interrupts


async def test_an_edit_leaves_the_question_and_coming_back_finds_it() -> None:
    """Coverage is per branch: the edit runs as normal, the old branch asks again."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        edited = await server.run(user("edit", "/say instead"))
        assert (edited.text, edited.outcome) == ("instead", "success")
        assert edited.turn_id != asked.turn_id

        back = await server.run(*shown(asked))
        assert back.interrupts == asked.interrupts
        assert back.turn_id == asked.turn_id
        stream = await server.run(*shown(asked), resume=[resolved(asked.interrupts[0]["id"], True)])
        assert (stream.turn_id, stream.text) == (asked.turn_id, "done")
        assert outbox.sent == ["ada"]


async def test_an_answer_brings_its_branch_along() -> None:
    """Case 17a: the client switched branches on its own side and answers in one request."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        await server.run(user("edit", "/say instead"))
        stream = await server.run(*shown(asked), resume=[resolved(asked.interrupts[0]["id"], True)])
        assert (stream.turn_id, stream.text, stream.outcome) == (asked.turn_id, "done", "success")
        assert outbox.sent == ["ada"]


async def test_an_edit_that_gives_the_question_up_ends_the_old_turn() -> None:
    """`cancelled` with the edit, as the official client has to send it: one new turn."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        stream = await server.run(
            user("edit", "/say instead"), resume=[cancelled(asked.interrupts[0]["id"])]
        )
        assert (stream.text, stream.outcome) == ("instead", "success")
        assert stream.turn_id != asked.turn_id
        assert outbox.sent == []


async def test_a_provider_that_fails_after_the_answer_loses_nothing() -> None:
    """Case 7 and 17h: the tool ran once; a finished run, then the error; again answers."""
    outbox = Outbox()
    script = '/tool send {"to": "ada"}\n/then /fail 400'
    async with serving(outbox.agent()) as server:
        asked = await ask(server, script)
        resume = [resolved(asked.interrupts[0]["id"], True)]
        failed = await server.run(*shown(asked, script), resume=resume)
        assert failed.types[-2:] == ["RUN_FINISHED", "RUN_ERROR"]
        assert "outcome" not in failed.events[-2]

        result = {
            "id": failed.all("TOOL_CALL_RESULT", "messageId")[0],
            "role": "tool",
            "toolCallId": asked.all("TOOL_CALL_START", "toolCallId")[0],
            "content": "sent to ada",
        }
        again = await server.run(*shown(asked, script), result, resume=resume)
        assert again.turn_id != asked.turn_id
        assert again.types[-2:] == ["RUN_FINISHED", "RUN_ERROR"]
        following = await server.run(*shown(asked, script), result, user("u2", "/say fine"))
        assert following.text == "fine"
        assert outbox.sent == ["ada"]


async def test_an_answer_while_another_turn_runs_is_not_an_error() -> None:
    """A stock page forgets the question when it answers: it is told, never refused."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        running = asyncio.create_task(server.run(user("u1", "/hang")))
        await until(lambda: is_running(server))
        late = asyncio.create_task(
            server.run(user("u1", "/hang"), user("u2", "x"), resume=[resolved("old", True)])
        )
        await until(lambda: has_two_readers(server))
        await server.cancel()
        assert (await running).outcome == "cancelled"
        assert (await late).warnings == ["turn_already_active"]


async def test_a_cancel_while_a_question_is_open_gives_it_up() -> None:
    """Case 12: the thread is not bricked."""
    outbox = Outbox()
    async with serving(outbox.agent()) as server:
        asked = await ask(server)
        assert (await server.cancel())["cancelled"] is True
        late = await server.run(*shown(asked), resume=[resolved(asked.interrupts[0]["id"], True)])
        assert late.outcome == "cancelled"
        following = await server.run(*shown(asked), user("u2", "/say free"))
        assert following.text == "free"
        assert outbox.sent == []


async def test_an_answer_outside_a_turn_may_open_one() -> None:
    """The run goes on until the decision on it is done; what it starts is shown."""
    agent = Agent("a")

    @agent.decide(on="interrupt.resumed")
    async def decide(request: DecisionRequest) -> Any:
        return llm_call()

    async with serving(agent) as server:
        said = await server.run(user("u1", "/say hi"))
        session_id = said.last["metadata"]["agui-server/sessionId"]
        await server.engine.submit(session_id, cmd.RaiseInterrupt(reason="check"))
        reply = said.all("TEXT_MESSAGE_START", "messageId")[0]
        asked = await server.run(
            user("u1", "/say hi"), {"id": reply, "role": "assistant", "content": "hi"}
        )
        [question] = asked.interrupts
        stream = await server.run(resume=[resolved(question["id"], True)])

        assert (stream.text, stream.outcome) == ("hi", "success")
        assert stream.last["metadata"]["agui-server/turnId"] != said.turn_id


async def has_two_readers(server: Server) -> bool:
    """Whether two streams wait for more."""
    [row] = await server.engine.store.sessions(limit=1)
    return server.engine.reader(row.session_id, 0).feed.readers == 2
