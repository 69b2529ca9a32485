"""What a person does with curl: ask, kill the server, start it again, answer."""

import signal
from collections.abc import Generator

import pytest

from tests.e2e.conversation import (
    Event,
    answer,
    of,
    run,
    run_input,
    running,
    said,
    stored_events,
    turn_of,
    user,
)
from tests.e2e.servers import DEMO, Server, serving

pytestmark = pytest.mark.crash

WORDS = 400


@pytest.fixture(scope="module")
def one_demo(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    """Start `agui demo` as a person does."""
    with serving(tmp_path_factory.mktemp("demo"), DEMO) as server:
        yield server


@pytest.fixture
def demo(one_demo: Server) -> Server:
    """Return the running demo; a test may kill it."""
    if not one_demo.is_running:
        one_demo.start()
    return one_demo


@pytest.fixture
def thread(request: pytest.FixtureRequest) -> str:
    """Return a thread of the test's own."""
    return request.node.name


def assert_one_turn(log: list[Event], turn_id: str) -> None:
    """Assert that a log holds one turn, from its start to its end and nothing else between."""
    types = [event["type"] for event in log]
    assert types.count("turn.started") == 1
    assert types.count("turn.completed") == 1
    begin, end = types.index("turn.started"), types.index("turn.completed")
    assert {event.get("turn_id") for event in log[begin : end + 1]} == {turn_id}
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))


def test_a_question_is_answered_after_kill_9(demo: Server, thread: str) -> None:
    """A new run, the old turn: the tool's result, the reply, success. Case 13."""
    asked = run(demo, "mailer", run_input(thread, "r1", user("email ada about lunch")))
    assert asked[-1]["outcome"]["type"] == "interrupt"
    [question] = asked[-1]["outcome"]["interrupts"]
    assert question["message"] == "Send the email?"

    demo.kill()
    demo.start()
    resume = [answer(question["id"], {"approved": True})]
    resumed = run(demo, "mailer", run_input(thread, "r2", resume=resume))

    assert resumed[0]["runId"] == "r2"
    assert turn_of(resumed) == turn_of(asked)
    assert of(resumed, "TOOL_CALL_START") == []
    [result] = of(resumed, "TOOL_CALL_RESULT")
    assert result["toolCallId"] == question["toolCallId"]
    assert result["content"] == "sent"
    assert said(resumed) == "send_email: sent"
    assert resumed[-1]["outcome"] == {"type": "success"}
    assert_one_turn(stored_events(thread, demo.db), turn_of(asked))


def test_an_approved_tool_runs_once_however_often_answered(demo: Server, thread: str) -> None:
    """The first answer counts, before and after a restart, whatever later ones say. Case 16."""
    asked = run(demo, "operator", run_input(thread, "r1", user("email ada about lunch")))
    [question] = asked[-1]["outcome"]["interrupts"]
    for number, approved in enumerate([True, True, False]):
        if number < 2:
            demo.kill()
            demo.start()
        resume = [answer(question["id"], {"approved": approved})]
        resumed = run(demo, "operator", run_input(thread, f"a{number}", resume=resume))
        assert turn_of(resumed) == turn_of(asked)
        assert resumed[-1]["outcome"] == {"type": "success"}
    assert len(demo.sent()) == 1
    assert_one_turn(stored_events(thread, demo.db), turn_of(asked))


def test_a_text_cut_by_kill_9_ends_when_asked_again(demo: Server, thread: str) -> None:
    """The turn goes on by itself; the repeated request attaches to its run. Cases 24, 29."""
    body = run_input(thread, "r1", user(f"/tokens {WORDS} every 10"))
    with running(demo, "assistant", body) as events:
        first = next(events)
        while next(events)["type"] != "TEXT_MESSAGE_CONTENT":
            pass
        demo.kill()
    demo.start()

    again = run(demo, "assistant", body)
    assert again[0]["runId"] == "r1"
    assert turn_of(again) == turn_of([first])
    assert said(again) == "".join(f"word{index} " for index in range(WORDS))
    assert again[-1]["outcome"] == {"type": "success"}

    log = stored_events(thread, demo.db)
    assert_one_turn(log, turn_of(again))
    replies = [e for e in log if e["type"] == "message.new" and "assistant" in str(e["payload"])]
    assert len(replies) == 1


def test_a_turn_nobody_waits_for_ends_after_kill_9(demo: Server, thread: str) -> None:
    """No client comes back: the turn is continued by the start alone, and is there later."""
    with running(
        demo, "assistant", run_input(thread, "r1", user("/tokens 120 every 10"))
    ) as events:
        while next(events)["type"] != "TEXT_MESSAGE_CONTENT":
            pass
        demo.kill()
    demo.start()
    later = run(demo, "assistant", run_input(thread, "r2"))
    assert later[-1]["outcome"] == {"type": "success"}
    shown = of(later, "MESSAGES_SNAPSHOT")[0]["messages"]
    assert [message["role"] for message in shown][:1] == ["user"]
    assert_one_turn(stored_events(thread, demo.db), turn_of(later))


def test_a_server_that_is_told_to_stop_ends_its_streams(demo: Server, thread: str) -> None:
    """SIGTERM in the middle of a text: a terminal event, exit within the grace. Case 33."""
    body = run_input(thread, "r1", user("/tokens 60 every 20"))
    with running(demo, "assistant", body) as events:
        while next(events)["type"] != "TEXT_MESSAGE_CONTENT":
            pass
        status = demo.stop()
        rest = list(events)
    assert rest[-1]["type"] == "RUN_ERROR"
    assert rest[-1]["code"] == "server_restarting"
    assert status in (0, -signal.SIGTERM)  # uvicorn passes the signal on when it is done
    demo.start()
    again = run(demo, "assistant", body)
    assert again[-1]["outcome"] == {"type": "success"}
