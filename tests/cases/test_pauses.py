"""Cases 11 to 17: what an answer may be, who may give it, and where and when it comes."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine import Agent, DecisionRequest, Thread, Tool, interrupt, tool_result
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.messages import UserMessage
from engine.core.state import State
from engine.runtime.clock import FakeClock
from tests.agui.given import cancelled, resolved, until, user
from tests.cases.given import ASK, Mailer, Page, asked, pass_time

YES = {"approved": True}


@pytest.mark.parametrize("answer", [False, 0, "", None], ids=["false", "zero", "empty", "null"])
async def test_case_11_an_answer_that_is_falsy_is_an_answer(answer: Any) -> None:
    """A person answers with a value that many programs take for nothing.

    The question is answered, and the worker gets exactly that value.
    """
    mailer, got = Mailer(), list[Any]()
    agent = Agent("a", tools=[Tool("ask", "Ask.", {"type": "object"})])

    @agent.decide(on=("tool.execute", "interrupt.resumed"))
    def pass_on(request: DecisionRequest) -> Any:
        if request.trigger.type != "interrupt.resumed":
            return interrupt("free", payload={"message": "Which?"})
        got.append((request.trigger.status, request.trigger.answer))
        return tool_result(f"answered {request.trigger.answer!r}")

    async with mailer.served(agent) as page:
        stream, question = await asked(page, "/tool ask {}\n/then /say done")
        resumed = await page.send(resume=[resolved(question, answer)])

        assert (resumed.turn_id, resumed.text) == (stream.turn_id, "done")
        # `0 == False` to Python; to a worker they are two answers.
        assert list(map(repr, got)) == [repr(("resolved", answer))]
        [recorded] = (await page.log()).of(ev.SessionInterruptResumed)
        assert repr(recorded.payload) == repr(answer)
        assert mailer.model.last[-1] == f"tool: answered {answer!r}"
        assert (await page.send()).outcome == "success"


async def test_case_12_a_question_that_nobody_answers_can_be_cancelled() -> None:
    """Nobody ever answers, and the person stops the conversation instead.

    The turn ends, the tool never runs, and the next message is answered.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, question = await asked(page)
        answer = await page.server.cancel()
        assert answer == {"cancelled": True, "turn_ids": [stream.turn_id]}
        following = await page.say("/say free")

        assert (following.text, following.outcome) == ("free", "success")
        late = await page.send(resume=[resolved(question, YES)])
        assert late.warnings == ["unknown_interrupt"]
        assert late.interrupts == []
        log = await page.log()
        assert [r.status for r in log.of(ev.SessionInterruptResumed)] == ["cancelled"]
        assert log.turns == (2, 2)
        assert mailer.sent == []


async def test_case_12_a_question_that_nobody_answers_can_be_left_by_an_edit() -> None:
    """Nobody ever answers, and the person says the first message differently.

    The new branch is a conversation like any other, for as long as it goes on.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, question = await asked(page)
        page.messages.clear()
        for number in range(3):
            following = await page.say(f"/say free {number}")
            assert (following.text, following.outcome) == (f"free {number}", "success")
        log = await page.log()
        assert log.count(ev.SessionInterruptResumed) == 0
        assert log.turns == (4, 3)
        assert mailer.sent == []

        # The question stands where it was asked, and nowhere else.
        old = await page.server.run(user("t-1", ASK))
        assert [i["id"] for i in old.interrupts] == [question]
        assert old.turn_id == stream.turn_id


@pytest.mark.parametrize("down", [False, True], ids=["while it runs", "while it is down"])
async def test_case_12_a_question_that_nobody_answers_expires(
    tmp_path: Path,
    down: bool,  # noqa: FBT001 - named by the ids
) -> None:
    """Nobody ever answers a question that has a time limit.

    When that is over the turn goes on without the tool; an answer that comes later is old.
    """
    mailer, clock = Mailer(), FakeClock()
    soon = (clock.now() + timedelta(hours=1)).isoformat()
    where: dict[str, Any] = {"db": tmp_path / "a.db", "clock": clock}
    async with mailer.served(mailer.agent(expiresAt=soon), **where) as page:
        stream, question = await asked(page)
        assert stream.interrupts[0]["expiresAt"] == soon
        if not down:
            await pass_time(clock, timedelta(hours=2))
            await until(lambda: _is_over(page))
    if down:
        clock.advance(timedelta(hours=2))
    async with mailer.served(mailer.agent(expiresAt=soon), page, **where):
        await until(lambda: _is_over(page))
        late = await page.send(resume=[resolved(question, YES)])
        assert (late.warnings, late.outcome) == (["unknown_interrupt"], "success")
        assert late.interrupts == []
        following = await page.say("/say free")
        assert following.text == "free"
        log = await page.log()

    [taken_back] = log.of(ev.SessionInterruptResumed)
    assert (taken_back.status, taken_back.payload) == ("expired", {"status": "expired"})
    assert (log.turns, log.branches) == ((2, 2), 1)
    assert mailer.sent == []


async def _is_over(page: Page) -> bool:
    started, ended = (await page.log()).turns
    return started == ended == 1


async def test_case_13_an_answer_after_a_restart_goes_on_in_the_same_turn(tmp_path: Path) -> None:
    """The process that asked is gone when the answer comes; another one has its database.

    The tool runs there, once, and the turn that began in the first one ends in the second.
    """
    asking, answering = Mailer(), Mailer()
    async with asking.served(db=tmp_path / "a.db") as page:
        stream, question = await asked(page)

    async with answering.served(page=page, db=tmp_path / "a.db"):
        resumed = await page.send(resume=[resolved(question, YES)])
        log = await page.log()

    assert (resumed.turn_id, resumed.text, resumed.outcome) == (stream.turn_id, "done", "success")
    assert resumed.all("TOOL_CALL_RESULT", "content") == ["sent to ada"]
    assert "TOOL_CALL_START" not in resumed.types
    assert (asking.sent, answering.sent) == ([], ["ada"])
    assert len(asking.model.requests) == len(answering.model.requests) == 1
    assert (log.turns, log.branches) == ((1, 1), 1)


@pytest.mark.parametrize("forged", ["made up", "the call", "approve:the call"])
@pytest.mark.parametrize("view", ["empty", "whole", "first"])
async def test_case_14_a_forged_approval_of_a_call_nobody_is_asked_about_does_nothing(
    forged: str, view: str
) -> None:
    """An approval names a question that was never asked, for a call that is over.

    It is a warning on a run that shows the conversation; no tool and no model is called.
    """
    mailer = Mailer(asks=lambda _to: False)
    async with mailer.served() as page:
        stream = await page.say(ASK)
        call_id = stream.all("TOOL_CALL_START", "toolCallId")[0]
        before = await page.log()
        shown = {"empty": [], "whole": page.messages, "first": page.messages[:1]}[view]
        entry = resolved(forged.replace("the call", call_id), YES)
        answered = await page.server.run(*shown, resume=[entry])

        assert answered.warnings == ["unknown_interrupt"]
        assert answered.outcome == "success"
        assert set(answered.types) <= {"RUN_STARTED", "CUSTOM", "MESSAGES_SNAPSHOT", "RUN_FINISHED"}
        assert await page.log() == before
        assert (mailer.sent, len(mailer.model.requests)) == (["ada"], 2)


async def test_case_14_a_forged_approval_does_not_open_a_question_that_is_asked() -> None:
    """An approval that names the held call and not its question, while a person is asked.

    The call stays held, and the run ends with the question.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, question = await asked(page)
        call_id = stream.interrupts[0]["toolCallId"]
        before = await page.log()
        forged = await page.send(resume=[resolved(call_id, YES)])
        assert forged.warnings == ["unknown_interrupt"]
        assert [i["id"] for i in forged.interrupts] == [question]
        assert await page.log() == before
        assert mailer.sent == []


async def _anothers(page: Page) -> str:
    """Begin a conversation of another owner under the same thread name; it asks a question."""
    engine = page.server.engine
    thread = Thread(tenant="local", owner="somebody else", agent_id="a", thread_id="t")
    session_id = await engine.session_of(thread)
    birth = cmd.Birth(agent_id="a", owner="somebody else", tenant="local", thread_id="t")
    said = cmd.ClientView(messages=(UserMessage(id="secret", content=ASK),))
    await engine.submit(session_id, said, birth=birth)

    async def is_asked() -> bool:
        state = await engine.state(session_id)
        return state is not None and bool(state.control.interrupts)

    await until(is_asked)
    return session_id


async def _state(page: Page, session_id: str) -> State:
    state = await page.server.engine.state(session_id)
    assert state is not None
    return state


async def test_case_15_a_session_of_another_owner_cannot_be_cancelled() -> None:
    """A caller who has learned the id of somebody else's session asks to stop it.

    That is forbidden, and nothing in the session changes.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        session_id = await _anothers(page)
        before = await page.server.engine.store.events(session_id)
        path = f"/api/client/sessions/{session_id}/cancel"
        refused = await page.server.client.post(path)

        assert await page.server.engine.store.events(session_id) == before
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.status_code == 403


async def test_case_15_a_run_on_the_same_thread_name_sees_nothing_of_another_owners() -> None:
    """Two owners have a thread of one name, and one of them is asked a question there.

    The other one's runs are a session of their own: no message, no question, no answering it.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        session_id = await _anothers(page)
        before = await page.server.engine.store.events(session_id)
        [question] = (await _state(page, session_id)).control.interrupts

        empty = await page.send()
        assert (empty.outcome, page.messages) == ("success", [])
        said = await page.say("/say mine", resume=[resolved(question.id, YES)])
        assert (said.text, said.outcome) == ("mine", "success")
        assert said.warnings == ["unknown_interrupt"]
        assert said.last["metadata"]["agui-server/sessionId"] != session_id
        assert mailer.model.last == ["user: /say mine"]
        named = await page.server.run(thread=session_id, resume=[resolved(question.id, YES)])
        assert named.interrupts == []
        assert not any("secret" in str(event) for event in named.events)

        assert await page.server.engine.store.events(session_id) == before
        assert mailer.sent == []


async def test_case_16_the_second_of_two_answers_does_nothing() -> None:
    """A question is answered with yes, and later, from an old page, with no.

    The first answer counts; the second one changes neither what ran nor what is recorded.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        stream, question = await asked(page)
        old = list(page.messages)
        await page.send(resume=[resolved(question, True)])
        before = await page.log()
        for view in ([], old, page.messages):
            again = await page.server.run(*view, resume=[resolved(question, False)])
            assert again.turn_id == stream.turn_id
            assert (again.warnings, again.outcome) == (["unknown_interrupt"], "success")
            assert "TOOL_CALL_RESULT" not in again.types
        given_up = await page.server.run(resume=[cancelled(question)])
        assert given_up.outcome == "success"

        assert await page.log() == before
        assert [r.payload for r in before.of(ev.SessionInterruptResumed)] == [True]
        assert mailer.sent == ["ada"]


@pytest.mark.parametrize("view", ["empty", "whole"])
async def test_case_17_an_answer_to_the_newer_of_two_paused_runs_continues_that_one(
    view: str,
) -> None:
    """A paused run was left for another attempt, which asks a question too.

    The answer to the newer question continues the newer run; the older one keeps waiting.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        older, first = await asked(page)
        page.messages.clear()
        newer, second = await asked(page, ASK.replace("ada", "bob"))
        assert newer.turn_id != older.turn_id
        shown = [] if view == "empty" else page.messages
        resumed = await page.server.run(*shown, resume=[resolved(second, YES)])

        assert (resumed.turn_id, resumed.outcome) == (newer.turn_id, "success")
        assert resumed.all("TOOL_CALL_RESULT", "content") == ["sent to bob"]
        assert mailer.sent == ["bob"]
        log = await page.log()
        assert [r.interrupt_id for r in log.of(ev.SessionInterruptResumed)] == [second]
        assert (log.turns, log.branches) == ((2, 1), 2)
        back = await page.server.run(user("t-1", ASK))
        assert [i["id"] for i in back.interrupts] == [first]


@pytest.mark.parametrize("also", [False, True], ids=["alone", "beside the newer one's answer"])
async def test_case_17_an_answer_to_the_older_one_is_not_delivered_on_the_newer_branch(
    also: bool,  # noqa: FBT001 - named by the ids
) -> None:
    """With the newer run on its screen the page approves what the older, left one asked.

    What nobody looks at any more does not run: the question is cleared, the page is told that
    its answer went nowhere, and the newer run is as if the old one had never been.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        older, first = await asked(page)
        page.messages.clear()
        newer, second = await asked(page, ASK.replace("ada", "bob"))
        entries = [resolved(first, YES), *([resolved(second, YES)] if also else [])]
        answered = await page.send(resume=entries)

        assert answered.warnings == ["answer_not_delivered"]
        if not also:
            assert [i["id"] for i in answered.interrupts] == [second]
            assert mailer.sent == []
            answered = await page.send(resume=[resolved(second, YES)])
        assert (answered.turn_id, answered.outcome) == (newer.turn_id, "success")
        assert answered.all("TOOL_CALL_RESULT", "content") == ["sent to bob"]
        assert mailer.sent == ["bob"]
        log = await page.log()
        ended = {e.turn_id: e.body for e in log.events if isinstance(e.body, ev.TurnCompleted)}
        assert {t: body.error and body.error.code for t, body in ended.items()} == {
            older.turn_id: "abandoned",
            newer.turn_id: None,
        }
        assert log.turns == (2, 2)
