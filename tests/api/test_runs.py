"""The AG-UI runs of a session, and how each ended."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from agui_server.api.runs import Run, outcomes
from engine import Agent
from engine.core import events as ev
from engine.core.messages import UserMessage
from engine.core.worker import Error
from engine.store.memory import MemoryStore
from tests.agui.given import resolved, user
from tests.api.given import CLIENT, LOOK, Api, Json, api, asking
from tests.runtime.given import Slow


async def runs(server: Api, address: str = "t") -> list[Json]:
    """Return the runs of a session."""
    return (await server.get(f"{CLIENT}/{address}/runs")).json()["runs"]


async def last_seq(server: Api) -> int:
    """Return the newest event of the session that was updated last."""
    [row, *_] = await server.engine.store.sessions(limit=1)
    return row.head_seq


def ended(found: list[Json]) -> list[tuple[str, str]]:
    """Return each run's id and outcome."""
    return [(run["run_id"], run["outcome"]) for run in found]


async def test_a_run_ends_with_its_turn() -> None:
    """First and last event, turn, outcome and time; the next run begins behind it."""
    async with api() as server:
        stream = await server.server.run(user("u1", "/say hi"))
        [run] = await runs(server)
        assert run == {
            "run_id": "r1",
            "turn_id": stream.turn_id,
            "first_seq": 1,
            "last_seq": await last_seq(server),
            "outcome": "success",
            "created_at": run["created_at"],
        }
        age = datetime.now(UTC) - datetime.fromisoformat(run["created_at"])
        assert timedelta(0) <= age < timedelta(minutes=5)
        await server.server.run(user("u1", "/say hi"), user("u2", "/say on"))
        first, second = await runs(server)
        assert first == run
        assert second["first_seq"] == run["last_seq"] + 1


async def test_a_pause_ends_a_run_and_its_answer_opens_the_next_one() -> None:
    """Two runs, one turn."""
    async with api(asking({"message": "Look?"})) as server:
        asked = await server.server.run(user("u1", LOOK))
        pause = await last_seq(server)
        answer = resolved(asked.interrupts[0]["id"], {"approved": True})
        await server.server.run(user("u1", LOOK), resume=[answer])
        first, second = await runs(server)
        assert ended([first, second]) == [("r1", "interrupt"), ("r2", "success")]
        assert first["turn_id"] == second["turn_id"]
        assert (first["last_seq"], second["first_seq"]) == (pause, pause + 1)
        assert second["last_seq"] == await last_seq(server)


async def test_a_run_id_that_comes_twice_is_two_runs() -> None:
    """Some clients resend the interrupted run's id with the answer."""
    async with api(asking({"message": "Look?"})) as server:
        asked = await server.server.run(user("u1", LOOK), runId="same")
        answer = resolved(asked.interrupts[0]["id"], {"approved": True})
        await server.server.run(user("u1", LOOK), resume=[answer], runId="same")
        assert ended(await runs(server)) == [("same", "interrupt"), ("same", "success")]


async def test_a_run_that_goes_on_has_no_end() -> None:
    """Until it is cancelled."""
    model = Slow()
    async with api(Agent("a", llm="slow"), models={"slow": model}) as server:
        task = asyncio.ensure_future(server.server.run(user("u1", "hello")))
        await model.said.wait()
        [run] = await runs(server)
        assert (run["outcome"], run["last_seq"]) == ("running", None)
        await server.post(f"{CLIENT}/t/cancel")
        await task
        [run] = await runs(server)
        assert (run["outcome"], run["last_seq"]) == ("cancelled", await last_seq(server))


async def test_a_failure_is_an_error() -> None:
    """The outcome says so, and nothing of what the provider said."""
    async with api() as server:
        await server.server.run(user("u1", "/fail 400"))
        assert ended(await runs(server)) == [("r1", "error")]


async def test_a_run_that_waits_for_its_client_succeeded() -> None:
    """The result of the client's tool opens the next one."""
    tool = {"name": "ask_page", "description": "Ask.", "parameters": {"type": "object"}}
    async with api() as server:
        said = user("u1", "/tool ask_page {}")
        stream = await server.server.run(said, tools=[tool])
        [call_id] = stream.all("TOOL_CALL_START", "toolCallId")
        [waiting] = await runs(server)
        assert (waiting["outcome"], waiting["last_seq"]) == ("success", await last_seq(server))
        call = {
            "id": call_id,
            "type": "function",
            "function": {"name": "ask_page", "arguments": "{}"},
        }
        reply = {"id": stream.all("TOOL_CALL_START", "parentMessageId")[0], "role": "assistant"}
        given = {"id": "x", "role": "tool", "toolCallId": call_id, "content": "seen"}
        await server.server.run(said, {**reply, "toolCalls": [call]}, given, tools=[tool])
        assert ended(await runs(server)) == [("r1", "success"), ("r2", "success")]


async def test_a_run_that_only_moves_has_no_turn() -> None:
    """It ends with its own commit."""
    async with api() as server:
        await server.server.run(user("u1", "/say one"))
        first = (await server.show())["messages"]
        await server.server.run(user("u1", "/say one"), user("u2", "/say two"))
        seen = [user("u1", "/say one"), {"id": first[1]["id"], "role": "assistant", "content": "1"}]
        await server.server.run(*seen)
        moved = (await runs(server))[2]
        assert (moved["turn_id"], moved["outcome"]) == (None, "success")
        assert moved["first_seq"] == moved["last_seq"] == await last_seq(server)


async def test_runs_are_the_same_after_a_restart() -> None:
    """They follow from the log; a session without runs has none."""
    store = MemoryStore()
    async with api(asking({"message": "Look?"}), db=store) as server:
        await server.server.run(user("u1", LOOK))
        before = await runs(server)
        await server.say("/say hi", agent_id="a", thread_id="other")
        assert await runs(server, "other") == []
    async with api(asking({"message": "Look?"}), db=store) as server:
        assert await runs(server) == before


# --------------------------------------------------------------- derivation

START = datetime(2026, 1, 1, tzinfo=UTC)


def log(*commits: list[tuple[str | None, Any]]) -> list[ev.Event]:
    """Return a log of commits, each a list of `(turn id, body)`."""
    events: list[ev.Event] = []
    for number, commit in enumerate(commits):
        for turn_id, body in commit:
            moment = START + timedelta(seconds=number)
            events.append(ev.Event("s", len(events) + 1, moment, turn_id, body))
    return events


def run(run_id: str, first_seq: int, turn_id: str | None = "t") -> Run:
    """Return a run as it began."""
    return Run(run_id=run_id, turn_id=turn_id, first_seq=first_seq, created_at=START)


def test_the_next_run_of_a_turn_ends_the_one_before() -> None:
    """`continued`: the turn went on in another run."""
    message = UserMessage(id="m", content="hi")
    events = log(
        [("t", ev.TurnStarted()), ("t", ev.MessageNew(message=message))],
        [("t", ev.SharedStateUpdated(state={}))],
        [("t", ev.TurnCompleted(error=Error(code="abandoned", message="left")))],
    )
    found = outcomes("s", [run("two", 3), run("one", 1)], events)
    assert [(r.run_id, r.last_seq, r.outcome) for r in found] == [
        ("one", 2, "continued"),
        ("two", 4, "cancelled"),
    ]


def test_an_answer_outside_a_turn_may_open_one() -> None:
    """The run is that turn's from then on."""
    asked = ev.SessionInterrupted(interrupt_id="i", origin="client", reason="r")
    resumed = ev.SessionInterruptResumed(interrupt_id="i", status="resolved")
    from engine.core.worker import ClientAction  # noqa: PLC0415

    waits = ev.DecisionRequested(
        decision_id="d", trigger=ClientAction(name="x"), attempt=1, deadline=START, expires=START
    )
    decided = ev.DecisionCompleted(decision_id="d", by="worker")
    events = log(
        [(None, asked)],
        [(None, resumed), (None, waits)],
        [(None, decided), ("t", ev.TurnStarted())],
        [("t", ev.TurnCompleted())],
    )
    [found] = outcomes("s", [run("r", 2, None)], events)
    assert (found.turn_id, found.last_seq, found.outcome) == ("t", 6, "success")
    [early] = outcomes("s", [run("r", 2, None)], events[:3])
    assert (early.last_seq, early.outcome) == (None, "running")


def test_a_run_whose_events_are_not_there_yet_goes_on() -> None:
    """Rows and log are read one after the other."""
    [found] = outcomes("s", [run("r", 9)], log([("t", ev.TurnStarted())]))
    assert (found.last_seq, found.outcome) == (None, "running")


def test_two_commits_of_one_moment_are_told_apart_by_their_run() -> None:
    """What ended before a run began is not its end."""
    events = log(
        [("t", ev.TurnStarted()), ("t", ev.TurnCompleted()), ("u", ev.TurnStarted())],
        [("u", ev.TurnCompleted())],
    )
    found = outcomes("s", [run("one", 1, "t"), run("two", 3, "u")], events)
    assert [(r.last_seq, r.outcome) for r in found] == [(2, "success"), (4, "success")]
