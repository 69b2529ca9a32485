"""Approvals through the real route.

Source: `protocol.md` section 10; `agui.md` section 3.
"""

from pathlib import Path
from typing import Any

import pytest

from engine import Agent, DecisionRequest, FunctionTool, Tool
from tests.agui.given import Server, Stream, cancelled, resolved, user
from tests.protocol.calls import NO, YES, results, serving, shown

ONE = '/tool send {"to": "ada"}\n/then /say done'
TWO = '/tool send {"to": "ada"}\n/tool send {"to": "bob"}\n/then /say done'
DECLINED = '{"error":"a person declined"}'


class Office:
    """An agent with a tool that needs a person, one that does not, and what really ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def agent(self, **more: Any) -> Agent:
        """Declare the agent anew, as every process does."""

        def send(to: str) -> str:
            """Send an email."""
            self.ran.append(to)
            return f"sent to {to}"

        def look(at: str) -> str:
            """Look at something."""
            self.ran.append(f"look {at}")
            return f"saw {at}"

        return Agent("a", tools=[FunctionTool(send, approve=True), look], **more)


async def ask(server: Server, said: str = ONE, **more: Any) -> Stream:
    """Run until a person is asked."""
    stream = await server.run(user("u1", said), **more)
    assert stream.outcome == "interrupt"
    return stream


def question(stream: Stream, index: int = 0) -> str:
    """The id of a question that a run ended with."""
    return stream.interrupts[index]["id"]


async def test_10_the_question_over_http() -> None:
    """Everything that a page needs to show it; nothing ran."""
    office = Office()
    async with serving(office.agent()) as server:
        stream = await ask(server)
        [asked] = stream.interrupts
        [call_id] = stream.all("TOOL_CALL_START", "toolCallId")
        assert (asked["id"], asked["reason"]) == (f"approve:{call_id}", "tool_call")
        assert asked["toolCallId"] == call_id
        assert "ada" in asked["message"]
        assert asked["responseSchema"]["required"] == ["approved"]
        assert asked["metadata"]["type"] == "tool.approval"
        assert asked["metadata"]["arguments"] == {"to": "ada"}
        assert [o["value"] for o in asked["metadata"]["options"]] == [YES, NO]
        assert office.ran == []


@pytest.mark.parametrize(
    ("payload", "result"),
    [
        (YES, "sent to ada"),
        ({"approved": True, "note": 1}, "sent to ada"),
        (NO, DECLINED),
        ({"approved": False, "reason": "not now"}, '{"error":"a person declined: not now"}'),
        ({"approved": "yes"}, DECLINED),
        ({"approved": 1}, DECLINED),
        ({"approved": None}, DECLINED),
    ],
    ids=repr,
)
async def test_10_only_exactly_true_runs_the_call_over_http(payload: Any, result: str) -> None:
    """The run ends well either way, in the same turn, and the model goes on once."""
    office = Office()
    async with serving(office.agent()) as server:
        asked = await ask(server)
        stream = await server.run(user("u1", ONE), resume=[resolved(question(asked), payload)])
        assert list(results(stream).values()) == [result]
        assert office.ran == (["ada"] if result == "sent to ada" else [])
        assert (stream.text, stream.outcome, stream.turn_id) == ("done", "success", asked.turn_id)


@pytest.mark.parametrize("payload", [True, "yes", None, {}], ids=repr)
async def test_10_anything_else_is_no_answer_over_http(payload: Any) -> None:
    """A warning, and the question again."""
    office = Office()
    async with serving(office.agent()) as server:
        asked = await ask(server)
        again = await server.run(user("u1", ONE), resume=[resolved(question(asked), payload)])
        assert again.warnings == ["invalid_answer"]
        assert again.interrupts == asked.interrupts
        assert office.ran == []


async def test_10_giving_the_question_up_declines_over_http() -> None:
    """`cancelled` runs nothing."""
    office = Office()
    async with serving(office.agent()) as server:
        asked = await ask(server)
        stream = await server.run(user("u1", ONE), resume=[cancelled(question(asked))])
        assert list(results(stream).values()) == [DECLINED]
        assert office.ran == []


async def test_10_reply_with_three_calls_one_needs_approval_over_http() -> None:
    """The others wait for the person, too."""
    office = Office()
    said = '/tool look {"at": "x"}\n/tool send {"to": "ada"}\n/tool look {"at": "y"}\n/then /say ok'
    async with serving(office.agent()) as server:
        asked = await ask(server, said)
        assert len(asked.interrupts) == 1
        assert office.ran == []
        stream = await server.run(user("u1", said), resume=[resolved(question(asked), YES)])
        assert sorted(office.ran) == ["ada", "look x", "look y"]
        assert stream.text == "ok"


async def test_10_one_of_two_answers_runs_nothing_over_http() -> None:
    """The other question comes again; with both answers the calls run or end."""
    office = Office()
    async with serving(office.agent()) as server:
        asked = await ask(server, TWO)
        first, second = question(asked, 0), question(asked, 1)
        half = await server.run(user("u1", TWO), resume=[resolved(second, NO)])
        assert [i["id"] for i in half.interrupts] == [first]
        assert office.ran == []
        stream = await server.run(user("u1", TWO), resume=[resolved(first, YES)])
        assert set(results(stream).values()) == {DECLINED, "sent to ada"}
        assert (office.ran, stream.text) == (["ada"], "done")


async def test_10_a_call_that_cannot_run_is_not_asked_about_over_http() -> None:
    """The model reads what is wrong with the arguments; nobody is asked."""
    office = Office()
    async with serving(office.agent()) as server:
        stream = await server.run(user("u1", "/tool send {}\n/then /say ok"))
        assert (stream.outcome, stream.text) == ("success", "ok")
        assert "required" in next(iter(results(stream).values()))
        assert office.ran == []


async def test_10_client_calls_are_open_at_once_over_http() -> None:
    """One run ends with the question; the next one brings the answer and the page's result."""
    office = Office()
    said = '/tool send {"to": "ada"}\n/tool pick {}\n/then /say done'
    tools = [{"name": "pick", "description": "", "parameters": {"type": "object"}}]
    async with serving(office.agent()) as server:
        asked = await ask(server, said, tools=tools)
        send, pick = asked.all("TOOL_CALL_START", "toolCallId")
        picked = {"id": "t1", "role": "tool", "toolCallId": pick, "content": "blue"}
        stream = await server.run(
            *shown(said, asked),
            picked,
            tools=tools,
            resume=[resolved(question(asked), YES)],
        )
        assert results(stream) == {send: "sent to ada"}
        assert (stream.text, stream.turn_id) == ("done", asked.turn_id)


async def test_10_a_gate_is_asked_after_the_approval_over_http() -> None:
    """The worker sees the call when the person has approved it, and may still refuse."""
    office = Office()
    seen: list[str] = []
    agent = office.agent()

    @agent.decide(on="tool.execute")
    async def decide(request: DecisionRequest) -> Any:
        assert request.trigger.type == "tool.execute"
        seen.append(request.trigger.arguments)
        if "bob" in request.trigger.arguments:
            return {"actions": [{"type": "tool.error", "error": "not bob"}]}
        return request.proposed

    async with serving(agent) as server:
        asked = await ask(server, TWO)
        assert seen == []
        answers = [resolved(question(asked, n), YES) for n in (0, 1)]
        stream = await server.run(user("u1", TWO), resume=answers)
        assert sorted(results(stream).values()) == ["sent to ada", '{"error":"not bob"}']
        assert (office.ran, len(seen)) == (["ada"], 2)


@pytest.mark.parametrize(("payload", "ran"), [(YES, ["c"]), (NO, [])], ids=["approved", "declined"])
async def test_10_a_workers_own_tool_over_http(payload: Any, ran: list[str]) -> None:
    """It is the worker's when it is approved; declined, the worker never hears of it."""
    done: list[str] = []
    agent = Agent("a", tools=[Tool("own", "Do it.", {"type": "object"}, approve=True)])

    @agent.decide(on="tool.execute")
    async def decide(request: DecisionRequest) -> Any:
        done.append("c")
        return {"actions": [{"type": "tool.result", "result": "did it"}]}

    said = "/tool own {}\n/then /say ok"
    async with serving(agent) as server:
        asked = await ask(server, said)
        assert done == []
        stream = await server.run(user("u1", said), resume=[resolved(question(asked), payload)])
        assert list(results(stream).values()) == ["did it" if ran else DECLINED]
        assert (done, stream.text) == (ran, "ok")


async def test_10_an_edit_and_back_over_http() -> None:
    """The edit runs; the question is found again, and its answer runs the call once."""
    office = Office()
    async with serving(office.agent()) as server:
        asked = await ask(server)
        edited = await server.run(user("edit", "/say instead"))
        assert (edited.text, office.ran) == ("instead", [])
        back = await server.run(*shown(ONE, asked))
        assert (back.interrupts, back.turn_id) == (asked.interrupts, asked.turn_id)
        stream = await server.run(*shown(ONE, asked), resume=[resolved(question(asked), YES)])
        assert (stream.text, office.ran) == ("done", ["ada"])


async def test_10_approved_with_an_edit_never_runs_over_http() -> None:
    """The view that brings the answer leaves the branch: its turn is over."""
    office = Office()
    async with serving(office.agent()) as server:
        asked = await ask(server)
        edited = await server.run(
            user("edit", "/say instead"), resume=[resolved(question(asked), YES)]
        )
        assert (edited.text, edited.outcome) == ("instead", "success")
        assert office.ran == []
        back = await server.run(*shown(ONE, asked))
        assert (back.interrupts, office.ran) == ([], [])


async def test_10_given_up_with_an_edit_never_runs_over_http() -> None:
    """One question is given up with the edit, the other approved on coming back."""
    office = Office()
    async with serving(office.agent()) as server:
        asked = await ask(server, TWO)
        gone, kept = question(asked, 0), question(asked, 1)
        edited = await server.run(user("edit", "/say instead"), resume=[cancelled(gone)])
        assert edited.text == "instead"
        await server.run(*shown(TWO, asked), resume=[resolved(kept, YES)])
        assert office.ran == ["bob"]


async def test_10_a_cancel_over_http() -> None:
    """The question is gone, a late answer runs nothing, and the thread goes on."""
    office = Office()
    async with serving(office.agent()) as server:
        asked = await ask(server)
        assert (await server.cancel())["turn_ids"] == [asked.turn_id]
        late = await server.run(*shown(ONE, asked), resume=[resolved(question(asked), YES)])
        assert late.outcome == "cancelled"
        following = await server.run(*shown(ONE, asked), user("u2", "/say free"))
        assert (following.text, office.ran) == ("free", [])


async def test_10_a_restart_over_http(tmp_path: Path) -> None:
    """Asked in one process, approved in the next: run once."""
    office = Office()
    db = str(tmp_path / "agents.db")
    async with serving(office.agent(), db=db) as server:
        asked = await ask(server)
    async with serving(office.agent(), db=db) as server:
        answer = [resolved(question(asked), YES)]
        stream = await server.run(*shown(ONE, asked), resume=answer, runId="after")
        assert (stream.text, stream.turn_id) == ("done", asked.turn_id)
        again = await server.run(*shown(ONE, asked), resume=answer, runId="again")
        assert (again.outcome, office.ran) == ("success", ["ada"])
