"""Cases 17a to 17i: what comes with an answer or instead of it, and where it belongs."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine import Agent, DecisionRequest, Tool, interrupt, tool_result
from engine.core import events as ev
from engine.runtime.clock import FakeClock
from tests.agui.given import Event, cancelled, resolved
from tests.cases.given import ASK, Mailer, Page, asked, pass_time

YES = {"approved": True}

AFTER_YES = [f"user: {ASK}", "assistant: send()", "tool: sent to ada", "assistant: done"]
"""A conversation in which the call was approved."""


@pytest.mark.parametrize("shown", ["whole", "shared part", "nothing"])
async def test_case_17a_an_answer_comes_with_the_branch_that_the_page_shows(shown: str) -> None:
    """The page went back to a paused branch on its own and answers there in the same request.

    The branch becomes the active one and its turn goes on; the answer is not thrown away,
    also when the view says less than the answer about where the page is.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        await page.say("/say hello")
        other = Page(page.server, messages=list(page.messages), typed=5)
        stream, question = await asked(page)
        await other.say("/say instead")
        await other.say("/say and on")

        view = {"whole": page.messages, "shared part": page.messages[:2], "nothing": []}[shown]
        resumed = await page.server.run(*view, resume=[resolved(question, YES)])
        assert (resumed.turn_id, resumed.text, resumed.outcome) == (
            stream.turn_id,
            "done",
            "success",
        )
        assert resumed.warnings == []
        assert mailer.sent == ["ada"]
        log = await page.log()
        assert [r.payload for r in log.of(ev.SessionInterruptResumed)] == [YES]
        assert (log.turns, log.branches) == ((4, 4), 2)
        assert mailer.model.last == ["user: /say hello", "assistant: hello", *AFTER_YES[:-1]]


@pytest.mark.parametrize("up", [timedelta(0), timedelta(days=20)], ids=["all down", "half up"])
@pytest.mark.parametrize("runs", ["the engine", "the worker"])
async def test_case_17b_a_call_that_a_person_holds_has_no_deadline(
    tmp_path: Path, up: timedelta, runs: str
) -> None:
    """A question stays open for forty days and a restart, then somebody approves.

    No time ran against the call: it runs now, and the same turn ends.
    """
    mailer, clock = Mailer(), FakeClock()
    agent = _sending_itself if runs == "the worker" else Mailer.agent
    where: dict[str, Any] = {"db": tmp_path / "a.db", "clock": clock}
    async with mailer.served(agent(mailer), **where) as page:
        stream, question = await asked(page)
        await pass_time(clock, up)
    clock.advance(timedelta(days=40) - up)

    async with mailer.served(agent(mailer), page, **where):
        still = await page.send()
        assert [i["id"] for i in still.interrupts] == [question]
        resumed = await page.send(resume=[resolved(question, YES)])
        log = await page.log()

    assert (resumed.turn_id, resumed.text, resumed.outcome) == (stream.turn_id, "done", "success")
    assert resumed.all("TOOL_CALL_RESULT", "content") == ["sent to ada"]
    assert mailer.sent == ["ada"]
    assert log.count(ev.ToolCallErrored, ev.DecisionErrored, ev.LlmCallErrored) == 0
    assert (log.turns, log.count(ev.SessionInterruptResumed)) == ((1, 1), 1)


def _sending_itself(mailer: Mailer) -> Agent:
    """An agent whose worker asks first and then does the work of its tool itself."""
    agent = Agent("a", tools=[Tool("send", "Send an email.", {"type": "object"})])

    @agent.decide(on=("tool.execute", "interrupt.resumed"))
    def send(request: DecisionRequest) -> Any:
        if request.trigger.type == "tool.execute":
            return interrupt("confirm", payload={"message": "Send?"})
        mailer.sent.append("ada")
        return tool_result("sent to ada")

    return agent


def merged(messages: list[Event], keep: int) -> list[Event]:
    """Return a view whose tool-only replies are one message, under the id of one of them."""
    replies = [m for m in messages if "toolCalls" in m]
    calls = [call for reply in replies for call in reply["toolCalls"]]
    one = {**replies[keep], "toolCalls": calls}
    at = messages.index(replies[0])
    return [*messages[:at], one, *(m for m in messages[at:] if m not in replies)]


@pytest.mark.parametrize("keep", [0, 1], ids=["the first id", "the second id"])
@pytest.mark.parametrize("results", ["all", "none"])
@pytest.mark.parametrize("end", ["a reply", "the calls"])
async def test_case_17c_two_tool_replies_merged_into_one_are_accepted(
    keep: int, results: str, end: str
) -> None:
    """A page shows two replies that only call tools as one, and the person says something more.

    The view is the recorded conversation: the message goes to its end, and one turn answers it.
    """
    mailer = Mailer(asks=lambda _to: False)
    async with mailer.served() as page:
        script = '/tool send {"to": "ada"}\n/then /tool send {"to": "bob"}\n/then /then '
        script += "/say done" if end == "a reply" else "/fail 400"
        await page.say(script)
        assert page.roles[:5] == ["user", "assistant", "tool", "assistant", "tool"]
        before = await page.log()

        page.messages = merged(page.messages, keep)
        if results == "none":
            page.messages = [m for m in page.messages if m["role"] != "tool"]
        following = await page.say("/say fine")

        assert (following.status, following.text, following.outcome) == (200, "fine", "success")
        assert following.warnings == []
        log = await page.log()
        assert log.lines == [*before.lines, "user: /say fine", "assistant: fine"]
        assert (log.turns, log.branches) == ((2, 2), 1)
        assert mailer.model.last == [*before.lines, "user: /say fine"]
        assert mailer.sent == ["ada", "bob"]


@pytest.mark.parametrize("place", ["before the result", "after the result"])
async def test_case_17d_a_page_may_keep_a_tool_message_of_its_own_for_ever(place: str) -> None:
    """With its answer the page adds a result of its own making, and sends it in every view.

    It is neither recorded nor shown to the model, and every later message is answered.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, question = await asked(page)
        call_id = stream.interrupts[0]["toolCallId"]
        own = {"id": "own", "role": "tool", "toolCallId": call_id, "content": '{"approved": true}'}
        page.messages.append(own)
        await page.send(resume=[resolved(question, YES)])
        assert page.roles == ["user", "assistant", "tool", "tool", "assistant"]
        if place == "after the result":
            page.messages[2:4] = reversed(page.messages[2:4])

        said = list(AFTER_YES)
        for number in range(3):
            following = await page.say(f"/say {number}")
            said.append(f"user: /say {number}")
            assert (following.text, following.outcome) == (str(number), "success")
            assert mailer.model.last == said
            said.append(f"assistant: {number}")
            assert own in page.messages
        log = await page.log()
        assert log.lines == said
        assert (log.turns, log.branches) == ((4, 4), 1)
        assert mailer.sent == ["ada"]


async def test_case_17e_giving_a_question_up_for_another_wish_is_one_turn() -> None:
    """In one request the person gives the question up and says what to do instead.

    The paused turn goes on: the call is declined, and one reply answers the new message.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, question = await asked(page)
        resumed = await page.say("/say instead", resume=[cancelled(question)])

        assert (resumed.turn_id, resumed.text, resumed.outcome) == (
            stream.turn_id,
            "instead",
            "success",
        )
        assert (mailer.sent, len(mailer.model.requests)) == ([], 2)
        assert mailer.model.last == [
            *AFTER_YES[:2],
            "tool: a person declined",
            "user: /say instead",
        ]
        log = await page.log()
        assert log.lines == [*mailer.model.last, "assistant: instead"]
        assert (log.turns, log.branches) == ((1, 1), 1)
        assert [r.status for r in log.of(ev.SessionInterruptResumed)] == ["cancelled"]


async def test_case_17f_typing_instead_of_answering_a_frontend_tool_is_one_turn() -> None:
    """A call waits for the page, and the person types something instead.

    The message joins the turn; the model is told that the call was not answered, the page not.
    """
    mailer = Mailer()
    tools = [{"name": "pick", "description": "", "parameters": {"type": "object"}}]
    async with mailer.served() as page:
        stream = await page.say("/tool pick {}\n/then /say picked", tools=tools)
        assert stream.last["outcome"] == {
            "type": "success",
            "pendingToolCallIds": stream.all("TOOL_CALL_START", "toolCallId"),
        }
        following = await page.say("/say never mind", tools=tools)

        assert (following.turn_id, following.text) == (stream.turn_id, "never mind")
        assert following.last["outcome"] == {"type": "success"}
        assert "TOOL_CALL_RESULT" not in following.types
        assert mailer.model.last[1:] == [
            "assistant: pick()",
            "tool: not answered",
            "user: /say never mind",
        ]
        assert len(mailer.model.requests) == 2
        log = await page.log()
        assert (log.turns, log.branches) == ((1, 1), 1)
        assert (await page.say("/say on", tools=tools)).text == "on"


OPTIONS = [{"label": "Yes", "value": "yes"}, {"label": "No", "value": "no"}]
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("payload", "wrong", "right"),
    [
        pytest.param({"metadata": {"options": OPTIONS}}, "maybe", "no", id="an option"),
        pytest.param({"metadata": {"options": OPTIONS}}, None, "no", id="no option at all"),
        pytest.param({"responseSchema": NUMBER}, {"n": "many"}, {"n": 3}, id="a schema"),
    ],
)
async def test_case_17g_a_wrong_answer_brings_the_question_again(
    payload: dict[str, Any], wrong: Any, right: Any
) -> None:
    """The page sends a value that was not offered, or is not of the shape asked for.

    Nothing changes and the run ends with the question, so the page can give another answer.
    """
    mailer = Mailer()
    async with mailer.served(mailer.agent(**payload)) as page:
        stream, question = await asked(page)
        before = await page.log()
        refused = await page.send(resume=[resolved(question, wrong)])

        assert (refused.status, refused.outcome) == (200, "interrupt")
        assert refused.warnings == ["invalid_answer"]
        assert refused.interrupts == stream.interrupts
        assert await page.log() == before
        taken = await page.send(resume=[resolved(question, right)])
        assert (taken.turn_id, taken.text, taken.outcome) == (stream.turn_id, "done", "success")
        log = await page.log()
        assert log.count(ev.SessionInterruptResumed) == 1
        assert (log.turns, log.branches) == ((1, 1), 1)
        assert mailer.sent == []


@pytest.mark.parametrize("version", ["1.0", None], ids=["1.0", "old client"])
async def test_case_17h_after_an_approval_and_a_failure_the_page_can_go_on(
    version: str | None,
) -> None:
    """The approved tool ran and then the provider failed.

    A finished run stands before the error, so that the page forgets the question; its next
    message is answered, by a model that knows the result.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, question = await asked(page)
        mailer.model.failures = 1
        failed = await page.send(resume=[resolved(question, YES)], protocolVersion=version)
        assert failed.types[-2:] == ["RUN_FINISHED", "RUN_ERROR"]
        assert "outcome" not in failed.events[-2]
        assert failed.last["code"] == "provider_error"

        following = await page.say("/say fine", protocolVersion=version)
        assert (following.text, following.outcome) == ("fine", "success")
        assert following.turn_id != stream.turn_id
        assert mailer.sent == ["ada"]
        log = await page.log()
        assert log.lines == [*AFTER_YES[:-1], "user: /say fine", "assistant: fine"]
        assert (log.turns, log.branches) == ((2, 2), 1)
        assert mailer.model.last == log.lines[:-1]


@pytest.mark.parametrize("asks", ["with a call", "before it says anything"])
async def test_case_17i_a_new_reply_that_asks_does_not_pause_the_old_one(asks: str) -> None:
    """The person wishes for another reply, and that one asks a question.

    The old reply's branch was there before the question: it goes on as if there were none.
    """
    mailer = Mailer()
    async with mailer.served(_asking_again(mailer) if asks != "with a call" else None) as page:
        await page.say("/say old")
        newer = Page(page.server, messages=page.messages[:1])
        mailer.model.says = '/tool send {"to": "ada"}' if asks == "with a call" else None
        again = await newer.send()
        [question] = again.interrupts

        shown = await page.send()
        assert (shown.outcome, shown.interrupts) == ("success", [])
        following = await page.say("/say next")
        assert (following.text, following.outcome) == ("next", "success")
        assert mailer.model.last == ["user: /say old", "assistant: old", "user: /say next"]
        assert (await page.log()).count(ev.SessionInterruptResumed) == 0
        assert mailer.sent == []

        back = await newer.send()
        assert [i["id"] for i in back.interrupts] == [question["id"]]
        assert back.turn_id == again.turn_id


def _asking_again(mailer: Mailer) -> Agent:
    """An agent that asks before it replies a second time."""
    agent = Agent("a")

    @agent.decide(on="client.messages")
    def ask_first(request: DecisionRequest) -> Any:
        assert request.trigger.type == "client.messages"
        return request.proposed if request.trigger.messages else interrupt("another")

    return agent
