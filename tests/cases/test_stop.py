"""Cases 23 and 25: a stop in the middle of a text, and two requests at once."""

import asyncio
from collections.abc import Sequence

import pytest

from engine.core import events as ev
from tests.agui.given import Stream, is_running, is_saying, until, user
from tests.cases.given import Mailer, Page, has_readers

LONG = "/tokens 100000 every 5"


@pytest.mark.parametrize("version", ["1.0", None], ids=["1.0", "old client"])
async def test_case_23_a_stopped_text_is_no_success_and_no_reply_comes_later(
    version: str | None,
) -> None:
    """The person stops a reply after its first words.

    The model is stopped for real, the run ends as cancelled, no reply is recorded then or
    later, and the conversation can be used.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        running = asyncio.create_task(page.say(LONG, runId="stopped", protocolVersion=version))
        await until(lambda: is_saying(page.server))
        answer = await page.server.cancel()
        stream = await running

        assert answer == {"cancelled": True, "turn_ids": [stream.turn_id]}
        assert stream.outcome == ("cancelled" if version else "error cancelled")
        assert stream.types.count("TEXT_MESSAGE_START") == stream.types.count("TEXT_MESSAGE_END")
        assert stream.text.startswith("word0 ")
        assert "result" not in stream.last
        # Nothing can come later: the model's stream is over, and its call, too.
        await until(lambda: _is_closed(mailer))
        log = await page.log()
        assert log.lines == [f"user: {LONG}"]
        assert (log.turns, log.count(ev.CallVoided)) == ((1, 1), 1)
        [ended] = log.of(ev.TurnCompleted)
        assert ended.error is not None
        assert ended.error.code == "cancelled"

        # Asked again for the same run, the server says the same.
        page.messages = page.messages[:1]
        retried = await page.send(runId="stopped", protocolVersion=version)
        assert retried.outcome == stream.outcome
        assert (retried.text, page.roles) == ("", ["user"])
        assert await page.log() == log

        following = await page.say("/say here")
        assert (following.text, following.outcome) == ("here", "success")
        assert (await page.log()).turns == (2, 2)
        assert len(mailer.model.requests) == 2


async def _is_closed(mailer: Mailer) -> bool:
    return mailer.model.closed == 1


@pytest.mark.parametrize("before", [0, 2], ids=["a new thread", "an old one"])
@pytest.mark.parametrize("count", [2, 10])
async def test_case_25_of_several_messages_at_once_one_is_answered(before: int, count: int) -> None:
    """Requests with different messages reach one thread at the same moment.

    One of them runs. The others are told that a turn is active, and leave no trace.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        for number in range(before):
            await page.say(f"/say {number}")
        earlier = await page.log()
        mailer.model.go.clear()
        posts = [
            asyncio.create_task(page.server.run(*page.messages, user(f"at once {n}", f"/say {n}")))
            for n in range(count)
        ]
        refused = await _settled(posts, count - 1)
        mailer.model.go.set()
        streams = await asyncio.gather(*posts)

        assert {(s.status, s.problem["code"]) for s in refused} == {(409, "turn_already_active")}
        [ran] = [stream for stream in streams if stream.status == 200]
        assert ran.outcome == "success"
        assert {s.problem["turn_id"] for s in refused} == {ran.turn_id}
        log = await page.log()
        assert log.lines == [*earlier.lines, f"user: /say {ran.text}", f"assistant: {ran.text}"]
        assert (log.turns, log.branches) == ((before + 1, before + 1), 1)
        assert len(mailer.model.requests) == before + 1
        assert len(await page.server.engine.store.sessions(limit=5)) == 1


@pytest.mark.parametrize("second", ["on top of it", "another reply to an older message"])
async def test_case_25_a_second_request_that_would_disturb_the_first_is_refused(
    second: str,
) -> None:
    """While a message is being answered, a request comes that wants something else of the thread.

    It is told that a turn is active; neither its message nor a move to where it looks happens.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        await page.say("/say hello")
        mailer.model.go.clear()
        running = asyncio.create_task(page.say("/say first"))
        await until(lambda: is_running(page.server))
        more = [*page.messages, user("second", "/say second")]
        view = more if second == "on top of it" else page.messages[:1]
        wish = await page.server.run(*view)
        mailer.model.go.set()
        stream = await running

        assert (wish.status, wish.problem["code"]) == (409, "turn_already_active")
        assert (stream.text, stream.outcome) == ("first", "success")
        log = await page.log()
        assert log.lines == [
            "user: /say hello",
            "assistant: hello",
            "user: /say first",
            "assistant: first",
        ]
        assert (log.turns, log.branches, log.count(ev.HeadMoved)) == ((2, 2), 1, 0)


async def _settled(posts: Sequence[asyncio.Task[Stream]], count: int) -> list[Stream]:
    """Wait until so many requests are over, and return what they got."""

    async def are_over() -> bool:
        return sum(post.done() for post in posts) >= count

    await until(are_over)
    return [post.result() for post in posts if post.done()]


@pytest.mark.parametrize("same_run", [True, False], ids=["one run id", "two run ids"])
async def test_case_25_the_same_message_twice_at_once_is_answered_once(
    same_run: bool,  # noqa: FBT001 - named by the ids
) -> None:
    """One message reaches one thread in two requests at the same moment.

    One request runs, the other attaches to its turn, and both show the one reply.
    """
    mailer = Mailer()
    async with mailer.served() as page:
        mailer.model.go.clear()
        pages = [Page(page.server), Page(page.server)]
        posts = [
            asyncio.create_task(each.say("/say once", runId="r" if same_run else f"r{number}"))
            for number, each in enumerate(pages)
        ]
        await until(lambda: is_running(page.server))
        await until(lambda: has_readers(page, 2))
        mailer.model.go.set()
        streams = await asyncio.gather(*posts)

        assert [stream.text for stream in streams] == ["once", "once"]
        assert [stream.outcome for stream in streams] == ["success", "success"]
        assert len({stream.turn_id for stream in streams}) == 1
        assert pages[0].messages == pages[1].messages
        log = await page.log()
        assert log.lines == ["user: /say once", "assistant: once"]
        assert (log.turns, len(mailer.model.requests)) == ((1, 1), 1)
        assert len(await page.server.engine.store.sessions(limit=5)) == 1
