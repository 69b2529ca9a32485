"""Cases 1 to 10: an answer reaches its call, once, whatever the page sends beside it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from engine import Agent, DecisionRequest, DecisionResponse, Tool, interrupt, tool_result
from engine.core import events as ev
from tests.agui.given import Event, cancelled, resolved, until, user
from tests.cases.given import ASK, ASK_THREE, Mailer, Page, asked, has_readers

YES = {"approved": True}
NO = {"approved": False}

AFTER_YES = [f"user: {ASK}", "assistant: send()", "tool: sent to ada", "assistant: done"]
"""What is recorded once the call was approved."""


@pytest.mark.parametrize(
    "shorten",
    [
        pytest.param(lambda view: view[:1], id="the first message only"),
        pytest.param(lambda view: view[:2], id="up to an older reply"),
        pytest.param(lambda view: view[:-1], id="without the reply that asks"),
    ],
)
async def test_case_01_an_answer_with_fewer_messages_is_a_resume(
    shorten: Callable[[list[Event]], Sequence[Event]],
) -> None:
    """A page that lost messages sends the answer with what it has left.

    The paused turn goes on where it stopped; no message of the short view gets a second reply.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        await page.say("/say hello")
        stream, question = await asked(page)
        short = shorten(page.messages)
        resumed = await page.server.run(*short, resume=[resolved(question, YES)])

        assert (resumed.turn_id, resumed.text, resumed.outcome) == (
            stream.turn_id,
            "done",
            "success",
        )
        log = await page.log()
        assert log.lines == ["user: /say hello", "assistant: hello", *AFTER_YES]
        assert (log.turns, log.branches) == ((2, 2), 1)
        assert len(mailer.model.requests) == 3
        assert mailer.sent == ["ada"]


async def test_case_02_the_same_view_without_an_answer_shows_the_question_again() -> None:
    """A page that forgot the question sends its view once more, and has no answer to give.

    One run starts, it ends with the same question, and nothing happens behind it.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, _ = await asked(page)
        before = await page.log()
        again = await page.send()

        assert again.types.count("RUN_STARTED") == 1
        assert again.types.count("RUN_FINISHED") == 1
        assert set(again.types) <= {"RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"}
        assert again.interrupts == stream.interrupts
        assert page.roles == ["user", "assistant"]
        assert await page.log() == before
        assert len(mailer.model.requests) == 1


def asking_for_all(mailer: Mailer) -> Agent:
    """An agent whose worker asks about every call of a reply, in one response."""
    agent = Agent("a", tools=[mailer.agent().functions["send"]])

    @agent.decide(on="llm.finished")
    def ask_for_each(request: DecisionRequest) -> Any:
        assert request.trigger.type == "llm.finished"
        calls = request.trigger.message.tool_calls if request.trigger.message is not None else ()
        asks = [interrupt("confirm", payload={"toolCallId": c.id}) for c in calls]
        proposed = request.proposed
        return DecisionResponse(messages=proposed.messages, actions=(*proposed.actions, *asks))

    return agent


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)], ids=["in order", "mixed"])
async def test_case_03_three_answers_in_one_request_reach_their_own_calls(
    order: Sequence[int],
) -> None:
    """Three calls of one reply wait for three people, and all answers come together.

    Each answer decides the call its question was about, whatever their order is.
    """
    mailer = Mailer()
    async with mailer.served(asking_for_all(mailer)) as page:
        stream = await page.say(ASK_THREE)
        calls = stream.all("TOOL_CALL_START", "toolCallId")
        assert [i["toolCallId"] for i in stream.interrupts] == calls
        assert mailer.sent == []

        answers = [
            resolved(i["id"], a) for i, a in zip(stream.interrupts, [YES, NO, YES], strict=True)
        ]
        resumed = await page.send(resume=[answers[n] for n in order])

        results = [(e["toolCallId"], e["content"]) for e in resumed.events if "content" in e]
        assert sorted(results) == sorted(
            zip(
                calls,
                ["sent to ada", '{"error":"a person declined"}', "sent to cyd"],
                strict=True,
            )
        )
        assert sorted(mailer.sent) == ["ada", "cyd"]
        assert mailer.model.last[2:] == [
            "tool: sent to ada",
            "tool: a person declined",
            "tool: sent to cyd",
        ]
        assert len(mailer.model.requests) == 2
        assert (resumed.turn_id, resumed.text) == (stream.turn_id, "done")


@pytest.mark.parametrize("first", ["ends before", "ends during the pause", "ends after"])
async def test_case_04_a_question_about_the_second_of_three_calls_loses_none(first: str) -> None:
    """Three calls of one reply, and only the one in the middle needs a person.

    The run says so. Each of the three ends once, with what it really came to, also when a
    call was still going on when the question was raised.
    """
    mailer = Mailer(asks=lambda to: to == "bob")
    if first != "ends before":
        mailer.go.clear()
    async with mailer.served() as page:
        stream, question = await asked(page, ASK_THREE)
        calls = stream.all("TOOL_CALL_START", "toolCallId")
        assert stream.interrupts[0]["toolCallId"] == calls[1]
        if first == "ends during the pause":
            mailer.go.set()
        if first != "ends after":
            await until(lambda: _has_ended(page, calls[0]))

        answering = asyncio.create_task(page.send(resume=[resolved(question, YES)]))
        if first == "ends after":
            await until(lambda: _has_cleared(page))
            mailer.go.set()
        resumed = await answering

        both = [*stream.events, *resumed.events]
        results = [(e["toolCallId"], e["content"]) for e in both if e["type"] == "TOOL_CALL_RESULT"]
        assert sorted(results) == sorted(
            zip(calls, ["sent to ada", "sent to bob", "sent to cyd"], strict=True)
        )
        assert sorted(mailer.sent) == ["ada", "bob", "cyd"]
        assert mailer.model.last[2:] == [f"tool: sent to {to}" for to in ("ada", "bob", "cyd")]
        assert len(mailer.model.requests) == 2
        assert (resumed.turn_id, resumed.text) == (stream.turn_id, "done")


async def _has_ended(page: Page, call_id: str) -> bool:
    log = await page.log()
    return call_id in [ended.call_id for ended in log.of(ev.ToolCallCompleted)]


async def _has_cleared(page: Page) -> bool:
    return (await page.log()).count(ev.SessionInterruptResumed) == 1


async def test_case_05_a_resumed_run_tells_the_result_and_not_the_call_again() -> None:
    """The page shows the call already when the answer comes.

    The run that goes on begins with the result; the call is neither announced nor made again.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, question = await asked(page)
        resumed = await page.send(resume=[resolved(question, YES)])

        assert resumed.types == [
            "RUN_STARTED",
            "TOOL_CALL_RESULT",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
        assert resumed.all("TOOL_CALL_RESULT", "toolCallId") == stream.all(
            "TOOL_CALL_START", "toolCallId"
        )
        assert (await page.log()).count(ev.ToolCallRequested) == 1


async def test_case_06_an_old_approval_beside_a_new_message_runs_nothing_again() -> None:
    """The page goes on to something else, and still sends the approval it gave before.

    The new message is answered in a turn of its own; the approved tool ran once and stays so.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, question = await asked(page)
        approval = [resolved(question, YES)]
        await page.send(resume=approval)
        following = await page.say("/say next", resume=approval)

        assert (following.text, following.outcome) == ("next", "success")
        assert following.turn_id != stream.turn_id
        assert "TOOL_CALL_RESULT" not in following.types
        assert mailer.sent == ["ada"]
        log = await page.log()
        assert (log.turns, log.branches) == ((2, 2), 1)
        assert log.count(ev.CallStarted) == 1
        assert mailer.model.last == [*AFTER_YES, "user: /say next"]


async def test_case_07_the_same_answer_after_a_failed_model_call_loses_and_repeats_nothing() -> (
    None
):
    """The approved tool ran, the model call after it failed, the page sends its answer again.

    The tool does not run twice, and the model is asked again about the result it had.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, question = await asked(page)
        asking = list(page.messages)
        answer = [resolved(question, YES)]
        mailer.model.failures = 1
        failed = await page.send(resume=answer)
        assert failed.outcome == "error provider_error"
        assert failed.types[-2:] == ["RUN_FINISHED", "RUN_ERROR"]
        assert "outcome" not in failed.events[-2]
        before = await page.log()

        # Word for word the same: there is nothing to reply to, it is told how the turn ended.
        same = await page.server.run(*asking, resume=answer)
        assert same.types[-2:] == ["RUN_FINISHED", "RUN_ERROR"]
        assert "TOOL_CALL_RESULT" not in same.types
        assert await page.log() == before

        # With what the page has learned: its view ends on the result.
        again = await page.send(resume=answer)
        assert (again.text, again.outcome) == ("done", "success")
        assert again.turn_id != stream.turn_id
        assert mailer.sent == ["ada"]
        log = await page.log()
        assert log.lines == AFTER_YES
        assert [r.payload for r in log.of(ev.SessionInterruptResumed)] == [YES]
        assert mailer.model.last == AFTER_YES[:-1]


async def test_case_08_an_answer_with_the_whole_transcript_records_nothing_twice() -> None:
    """The page sends everything it shows together with the answer.

    What is recorded already stays as it is; only the result and the reply are new.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        await page.say("/say hello")
        await page.say("/say again")
        stream, question = await asked(page)
        before = await page.log()
        resumed = await page.send(resume=[resolved(question, YES)])

        assert resumed.turn_id == stream.turn_id
        log = await page.log()
        assert log.lines == [*before.lines, *AFTER_YES[2:]]
        ids = [recorded.message.id for recorded in log.of(ev.MessageNew)]
        assert len(ids) == len(set(ids)) == 8
        assert log.branches == 1
        assert [message["id"] for message in page.messages] == ids


async def test_case_09_an_answer_without_messages_is_recorded_and_reaches_the_model() -> None:
    """The page sends the answer alone, with an empty list of messages.

    The log holds the answer, and the model reads it as the result of its call.
    """
    mailer = Mailer()
    agent = Agent("a", tools=[Tool("choose", "Let a person choose.", {"type": "object"})])

    @agent.decide(on=("tool.execute", "interrupt.resumed"))
    def let_choose(request: DecisionRequest) -> Any:
        if request.trigger.type == "interrupt.resumed":
            return tool_result(f"they chose {request.trigger.answer['color']}")
        return interrupt("choice", payload={"message": "Which color?"})

    async with mailer.served(agent) as page:
        stream, question = await asked(page, "/tool choose {}\n/then /say so be it")
        resumed = await page.server.run(resume=[resolved(question, {"color": "blue"})])

        assert (resumed.turn_id, resumed.text) == (stream.turn_id, "so be it")
        assert resumed.all("TOOL_CALL_RESULT", "content") == ["they chose blue"]
        log = await page.log()
        [recorded] = log.of(ev.SessionInterruptResumed)
        assert (recorded.interrupt_id, recorded.status) == (question, "resolved")
        assert recorded.payload == {"color": "blue"}
        assert mailer.model.last[1:] == ["assistant: choose()", "tool: they chose blue"]
        assert (log.turns, log.branches) == ((1, 1), 1)


@pytest.mark.parametrize("answer", ["given", "given up"])
@pytest.mark.parametrize("view", ["empty", "whole"])
async def test_case_10_a_reload_after_the_answer_does_not_show_the_question(
    answer: str, view: str
) -> None:
    """A page is loaded anew after the question was answered, while its turn runs and later.

    Neither time is the question offered, and neither load changes anything.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        _, question = await asked(page)
        mailer.model.go.clear()
        fresh = Page(page.server, messages=[] if view == "empty" else list(page.messages))
        entry = resolved(question, YES) if answer == "given" else cancelled(question)
        answering = asyncio.create_task(page.send(resume=[entry]))
        await until(lambda: _has_cleared(page))
        loading = asyncio.create_task(fresh.send())
        await until(lambda: has_readers(page, 2))
        mailer.model.go.set()
        during = await loading
        assert (await answering).outcome == during.outcome == "success"
        before = await page.log()

        later = Page(page.server, messages=[] if view == "empty" else list(page.messages))
        reloaded = await later.send()
        assert reloaded.outcome == "success"
        assert reloaded.interrupts == during.interrupts == []
        assert later.ids == fresh.ids == page.ids
        assert await page.log() == before


@pytest.mark.parametrize("left", [False, True], ids=["an old tab", "after an edit"])
async def test_case_10_an_older_view_does_not_show_the_question_either(
    left: bool,  # noqa: FBT001 - named by the ids
) -> None:
    """A tab that still shows the question is loaded anew after it was answered elsewhere.

    It is shown the result of the call, also when the conversation goes on on another branch.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        _, question = await asked(page)
        tab = Page(page.server, messages=list(page.messages))
        await page.send(resume=[resolved(question, YES)])
        if left:
            await page.server.run(user("edit", "/say instead"))
        reloaded = await tab.send()
        assert (reloaded.outcome, reloaded.interrupts) == ("success", [])
        assert tab.ids == page.ids[:3]
        assert mailer.sent == ["ada"]
