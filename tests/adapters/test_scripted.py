"""The scripted model: what each line of a script streams."""

import asyncio

import pytest

from engine.adapters.scripted import ScriptedModel
from engine.core.errors import ModelError
from engine.core.messages import (
    AssistantMessage,
    Json,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    Usage,
    UserMessage,
)
from engine.core.ports import (
    Finish,
    Model,
    ModelDelta,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from tests.adapters.given import asked, ended, reply, request_of, stream


def test_it_is_a_model() -> None:
    """The type checker accepts it where the engine needs a model."""
    model: Model = ScriptedModel()

    assert model is not None


# --------------------------------------------------------------- directives


@pytest.mark.parametrize(
    ("script", "deltas"),
    [
        pytest.param("/say hello there", [TextDelta("hello "), TextDelta("there")], id="say"),
        pytest.param("/say", [], id="say nothing"),
        pytest.param(
            '/say "a\\u2028b \\ud83d"',
            [TextDelta("a\u2028"), TextDelta("b "), TextDelta("\ud83d")],
            id="say a JSON string",
        ),
        pytest.param(
            '/say "a" or "b"',
            [TextDelta('"a" '), TextDelta("or "), TextDelta('"b"')],
            id="say prose in quotes",
        ),
        pytest.param("/say a\u2028b", [TextDelta("a\u2028"), TextDelta("b")], id="line separator"),
        pytest.param(
            "/say a\n/say b", [TextDelta("a"), TextDelta("\n"), TextDelta("b")], id="two lines"
        ),
        pytest.param(
            "/split a\U0001f600",
            [TextDelta("a"), TextDelta("\ud83d"), TextDelta("\ude00")],
            id="split",
        ),
        pytest.param('/split "\\ud83d"', [TextDelta("\ud83d")], id="split a lone half"),
        pytest.param("/tokens 2", [TextDelta("word0 "), TextDelta("word1 ")], id="tokens"),
        pytest.param("/tokens 1 every 0.1", [TextDelta("word0 ")], id="tokens with a pause"),
        pytest.param("/tokens 0", [], id="no tokens"),
        pytest.param(
            "/think so it is", [ReasoningDelta(word) for word in ("so ", "it ", "is")], id="think"
        ),
        pytest.param(
            '/tool t {"a": 1}',
            [ToolCallDelta(0, name="t"), ToolCallDelta(0, '{"a"'), ToolCallDelta(0, ": 1}")],
            id="tool",
        ),
        pytest.param("/tool t", [ToolCallDelta(0, name="t")], id="tool without arguments"),
        pytest.param(
            "/tool a {}\n/tool b {",
            [
                ToolCallDelta(0, name="a"),
                ToolCallDelta(0, "{"),
                ToolCallDelta(0, "}"),
                ToolCallDelta(1, name="b"),
                ToolCallDelta(1, "{"),
            ],
            id="two tools, one malformed",
        ),
        pytest.param(
            "please:\n  /think hm\r\n/say ok\nthanks\n/tool t",
            [ReasoningDelta("hm"), TextDelta("ok"), ToolCallDelta(0, name="t")],
            id="in the order of the lines",
        ),
    ],
)
async def test_each_line_streams_its_deltas(script: str, deltas: list[ModelDelta]) -> None:
    """A script says exactly which deltas come; lines without a directive are ignored."""
    assert await stream(request_of(script)) == deltas


@pytest.mark.parametrize(
    "line",
    [
        "/foo",
        "/",
        "/tool",
        "/tokens many",
        "/tokens 1000001",
        "/tokens 5 every 60001",
        "/fail 200",
        "/fail soon",
        "/fail 500 times x",
        "/hang around",
        "/then",
        "/then nothing",
    ],
)
async def test_a_line_it_cannot_read_is_answered_with_what_it_can(line: str) -> None:
    """The reply quotes the line and lists every directive."""
    following = [asked("t"), ended("t")] if line.startswith("/then") else []

    said = await reply(line, *following)

    assert line.removeprefix("/then ") in said
    assert "/say /split /tokens /think /tool /fail /hang /then" in said


async def test_the_last_user_message_directs() -> None:
    """What stands in earlier messages, or in those of other roles, does not."""
    said = await reply(
        "/say first",
        AssistantMessage(id="a", content="first"),
        "/say second",
        SystemMessage(id="sys", content="/say third"),
    )

    assert said == "second"


async def test_the_text_parts_of_a_message_direct() -> None:
    """Content may be a list of parts; what is not text is left aside."""
    parts: list[Json] = [
        {"type": "image", "source": {"type": "url", "value": "https://example.com/a.png"}},
        {"type": "text", "text": "/say one"},
        {"type": "text", "text": "/say two"},
    ]

    assert await reply(UserMessage(id="u", content=parts)) == "one\ntwo"


# -------------------------------------------------------------------- steps

STEPS = "/tool a\n/then /say b\n/then /tool b\n/then /then /say c"


@pytest.mark.parametrize(
    ("history", "deltas"),
    [
        pytest.param([], [ToolCallDelta(0, name="a")], id="first"),
        pytest.param(
            [asked("a"), ended("a")],
            [TextDelta("b"), ToolCallDelta(0, name="b")],
            id="second, two lines",
        ),
        pytest.param(
            [asked("a"), ended("a"), asked("b"), ended("b")], [TextDelta("c")], id="third"
        ),
        pytest.param(
            [asked("a"), ended("a"), asked("b"), ended("b"), asked("c"), ended("c", "done")],
            [TextDelta("c: "), TextDelta("done")],
            id="past the end",
        ),
        pytest.param(
            [
                AssistantMessage(id="x", content="text only"),
                asked("a"),
                ReasoningMessage(id="r", content="hm"),
                ended("a"),
            ],
            [TextDelta("b"), ToolCallDelta(0, name="b")],
            id="only replies with calls count",
        ),
    ],
)
async def test_then_is_what_follows_the_tools(
    history: list[Message], deltas: list[ModelDelta]
) -> None:
    """The replies with tool calls since the last user message tell which step it is."""
    assert await stream(request_of(STEPS, *history)) == deltas


@pytest.mark.parametrize(
    ("history", "said"),
    [
        pytest.param(
            [asked("send_email"), ended("send_email", "sent to ada@example.com")],
            "send_email: sent to ada@example.com",
            id="result",
        ),
        pytest.param(
            [asked("send_email"), ended("send_email", "declined", error="declined")],
            "send_email failed: declined",
            id="error",
        ),
        pytest.param(
            [asked("a", "b", "c"), ended("b", "2"), ended("a", "1")],
            "a: 1\nb: 2\nc has no result",
            id="several, in the order of the calls",
        ),
        pytest.param(
            [asked("a"), ended("a", [{"type": "text", "text": "1"}, {"type": "image"}])],
            "a: 1 (1 image)",
            id="parts",
        ),
        pytest.param(
            [asked("a"), ended("a", "1"), asked("b"), ended("b", "2")], "b: 2", id="the last ones"
        ),
    ],
)
async def test_without_a_then_it_says_what_the_tools_returned(
    history: list[Message], said: str
) -> None:
    """One sentence a call, from the recorded tool messages."""
    assert await reply("/tool a", *history) == said


# ----------------------------------------------------------- fail and cancel


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (429, "rate_limited", True),
        (408, "provider_error", True),
        (500, "provider_error", True),
        (503, "provider_error", True),
        (599, "provider_error", True),
        (400, "provider_error", False),
        (401, "provider_error", False),
    ],
)
async def test_a_failure_is_that_of_a_provider(status: int, code: str, retryable: bool) -> None:  # noqa: FBT001
    """The status decides the code and whether another attempt may help."""
    with pytest.raises(ModelError) as raised:
        await stream(request_of(f"/fail {status}", attempt=9))

    assert (raised.value.code, raised.value.retryable) == (code, retryable)
    assert raised.value.message.startswith(str(status))


async def test_what_stands_before_a_failure_streams_first() -> None:
    """A provider may break in the middle of a reply."""
    deltas = ScriptedModel().stream(request_of("/say a\n/fail 500\n/say b"))

    assert await anext(deltas) == TextDelta("a")
    with pytest.raises(ModelError):
        await anext(deltas)


async def test_it_fails_as_often_as_it_is_told() -> None:
    """`times N` fails the first N attempts; then the rest of the script runs."""
    script = "/fail 500 times 2\n/say ok"

    for attempt in (1, 2):
        with pytest.raises(ModelError):
            await stream(request_of(script, attempt=attempt))
    assert await reply(script, attempt=3) == "ok"


async def test_a_call_that_hangs_can_be_closed() -> None:
    """`/hang` waits until it is cancelled; the text before it has streamed."""
    deltas = ScriptedModel().stream(request_of("/say a\n/hang"))
    assert await anext(deltas) == TextDelta("a")

    waiting = asyncio.ensure_future(anext(deltas))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await deltas.aclose()


@pytest.mark.parametrize("script", ["/tokens 5", "/say a b c", "/split abc", "/tool t {}"])
async def test_a_stream_can_be_closed_after_any_delta(script: str) -> None:
    """Closing ends it at once: nothing more comes."""
    deltas = ScriptedModel().stream(request_of(script))
    await anext(deltas)

    await deltas.aclose()

    assert [delta async for delta in deltas] == []


async def test_the_loop_runs_between_tokens() -> None:
    """Other tasks have their turn before each delta."""
    turns = 0
    ended = asyncio.Event()

    async def other() -> None:
        nonlocal turns
        while not ended.is_set():
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await stream(request_of("/tokens 50"))
    ended.set()
    await task

    assert turns >= 50


# -------------------------------------------------------------------- usage


async def usage_of(request: ModelRequest) -> Usage:
    """Return what a reply says it used."""
    *_, last = [delta async for delta in ScriptedModel().stream(request)]
    assert isinstance(last, Finish)
    assert not last.truncated
    return last.usage[0]


async def test_usage_is_counted_in_words() -> None:
    """What is not counted stays unknown: `None`, never 0."""
    usage = await usage_of(
        request_of(
            AssistantMessage(id="a", tool_calls=(ToolCall(id="t", name="t", arguments="{}"),)),
            ended("t", "two words"),
            "/think one two\n/say a b c\n/tokens 10\n/tool t {}",
            system="Be kind.",
        )
    )

    assert usage == Usage(
        model="scripted",
        provider="scripted",
        input_tokens=2 + 1 + 2 + 12,
        output_tokens=2 + 3 + 10 + 2,
        reasoning_tokens=2,
    )


async def test_no_reasoning_is_not_a_count() -> None:
    """A reply that did not think says nothing about reasoning or caches."""
    usage = await usage_of(request_of("/say hi"))

    assert (usage.reasoning_tokens, usage.cached_input_tokens) == (None, None)
