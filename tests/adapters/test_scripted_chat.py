"""The scripted model without a script: a small demo assistant."""

import json

import pytest

from engine.core.messages import (
    Json,
    SystemMessage,
    UserMessage,
)
from tests.adapters.given import calls, reply, request_of, stream

TOOLS = tuple({"name": name} for name in ("send_email", "get_weather", "get_time"))


@pytest.mark.parametrize(
    ("wish", "name", "arguments"),
    [
        (
            "email ada about lunch",
            "send_email",
            {"to": "ada@example.com", "subject": "lunch"},
        ),
        (
            "Please send an email to Ada Lovelace about the lunch menu.",
            "send_email",
            {"to": "ada.lovelace@example.com", "subject": "the lunch menu"},
        ),
        (
            "e-mail bob@corp.example regarding 'Q3'",
            "send_email",
            {"to": "bob@corp.example", "subject": "Q3"},
        ),
        (
            "send Zoë an email about tea",
            "send_email",
            {"to": "zoë@example.com", "subject": "tea"},
        ),
        ("Mail ada: lunch?", "send_email", {"to": "ada@example.com", "subject": "lunch"}),
        ("weather in Lisbon", "get_weather", {"city": "Lisbon"}),
        ("What's the weather like in New York today?", "get_weather", {"city": "New York"}),
        ("what time is it in Tokyo", "get_time", {"city": "Tokyo"}),
        ("What TIME is it in Tokyo right now, please?", "get_time", {"city": "Tokyo"}),
    ],
)
async def test_a_wish_becomes_a_tool_call(wish: str, name: str, arguments: Json) -> None:
    """The assistant fills the tools it knows."""
    [(called, written)] = await calls(wish, tools=TOOLS)

    assert (called, json.loads(written)) == (name, arguments)


@pytest.mark.parametrize("wish", ["email ada about lunch", "weather in Lisbon", "hello", ""])
async def test_it_asks_for_no_tool_that_is_not_offered(wish: str) -> None:
    """Without the tool, the same words get a friendly answer."""
    said = await reply(wish)

    assert wish in said
    assert "/tokens" in said


@pytest.mark.parametrize(
    ("words", "quoted"),
    [
        pytest.param("good morning", "“good morning”", id="short"),
        pytest.param("x" * 500, f"“{'x' * 200}…”", id="long"),
    ],
)
async def test_anything_else_is_quoted_with_a_hint(words: str, quoted: str) -> None:
    """The answer shows what was said, and what can be asked of the tools there are."""
    said = await reply(words, tools=[{"name": "get_time"}, {"name": "other"}])

    assert quoted in said
    assert "what time is it in Tokyo" in said
    assert "email" not in said


async def test_what_is_not_text_is_mentioned() -> None:
    """The assistant cannot see an image, but says that it came."""
    parts: list[Json] = [{"type": "text", "text": "look"}, {"type": "image"}, {"type": "image"}]

    assert "“look” (2 images)" in await reply(UserMessage(id="u", content=parts))


async def test_it_says_what_it_was_given_only_when_asked() -> None:
    """Context entries and the system prompt appear for the question about them."""
    context = ({"description": "page", "value": "checkout"},)

    asked_for = await reply("what do you know about me?", context=context, system="Be kind.")
    unasked = await reply("hello", context=context, system="Be kind.")
    empty = await reply("what do you know about me?")

    assert "page: checkout" in asked_for
    assert "Be kind." in asked_for
    assert "checkout" not in unasked
    assert "Be kind." not in unasked
    assert empty.startswith("Nothing")


async def test_a_request_without_a_user_message_is_greeted() -> None:
    """A worker may call the model before anybody has said anything."""
    assert (await reply(SystemMessage(id="s", content="Be kind."))).startswith("Hello!")


async def test_the_same_request_is_answered_the_same_way() -> None:
    """Nothing but the request decides."""
    request = request_of("hello", tools=TOOLS)

    assert await stream(request) == await stream(request)
