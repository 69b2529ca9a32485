"""The MCP shape of a tool's result, and what a model reads of it."""

import json
import math

import pytest

from engine.core.messages import Json
from engine.core.results import as_result, result_text

TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def one(text: str) -> dict[str, Json]:
    """Return a result of one text block."""
    return {"content": [{"type": "text", "text": text}]}


@pytest.mark.parametrize(
    ("value", "result"),
    [
        pytest.param("sent", one("sent"), id="string"),
        pytest.param("", one(""), id="empty string"),
        pytest.param(None, one(""), id="nothing"),
        pytest.param(7, one("7"), id="number"),
        pytest.param(True, one("true"), id="boolean"),
        pytest.param(math.nan, one(""), id="NaN"),
        pytest.param([1, math.inf], one("[1,null]"), id="list with infinity"),
        pytest.param((1, 2), one("[1,2]"), id="tuple"),
        pytest.param(
            {"city": "Lisbon"},
            {**one('{"city":"Lisbon"}'), "structuredContent": {"city": "Lisbon"}},
            id="object",
        ),
        pytest.param({"content": [TEXT]}, {"content": [TEXT]}, id="shape"),
        pytest.param({"content": []}, {"content": []}, id="empty shape"),
        pytest.param(
            {"content": [IMAGE], "isError": True},
            {"content": [IMAGE], "isError": True},
            id="shape of an error",
        ),
        pytest.param("\ud83d\ude00 \ud83d", one("\U0001f600 \ufffd"), id="surrogates"),
        pytest.param(
            {"content": [{"type": "text", "text": "\ud83d"}]}, one("\ufffd"), id="shape is repaired"
        ),
    ],
)
def test_every_value_becomes_a_result(value: Json, result: Json) -> None:
    """Strings and JSON values get the MCP shape; a value that has it stays what it is."""
    assert as_result(value) == result


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"content": "prose"}, id="content is text"),
        pytest.param({"content": ["a", "b"]}, id="content has no blocks"),
        pytest.param({"content": [{"text": "no type"}]}, id="block without a type"),
        pytest.param({"content": [], "page": 3}, id="an empty page"),
    ],
)
def test_an_object_with_a_member_called_content_is_not_taken_for_a_result(value: Json) -> None:
    """A tool's own object is wrapped unless its `content` is a list of MCP blocks."""
    assert as_result(value)["structuredContent"] == value


def test_a_value_that_is_not_json_is_refused() -> None:
    """What has no JSON form is the caller's mistake, not silently a `repr`."""
    with pytest.raises(TypeError):
        as_result([object()])


def test_a_result_is_valid_json_for_every_encoder() -> None:
    """No NaN and no lone surrogate is left anywhere, keys and nested values included."""
    result = as_result({"\ud83d": [{"deep": -math.inf, "text": "\udc00"}]})

    text = json.dumps(result, ensure_ascii=False, allow_nan=False)

    assert json.loads(text.encode()) == result


@pytest.mark.parametrize(
    ("result", "text"),
    [
        pytest.param("sent", "sent", id="bare string"),
        pytest.param(one("sent"), "sent", id="one block"),
        pytest.param({"content": [TEXT, TEXT]}, "hello\nhello", id="two blocks"),
        pytest.param({"content": [TEXT, IMAGE]}, "hello\n[image]", id="text and image"),
        pytest.param({"content": []}, "", id="empty"),
        pytest.param({"content": [{"type": "text"}]}, "", id="block without text"),
        pytest.param(
            {"content": [TEXT], "structuredContent": {"n": 1}}, "hello", id="text before structure"
        ),
        pytest.param({"content": [], "structuredContent": {"n": 1}}, '{"n":1}', id="structure"),
        pytest.param(
            {**one(""), "structuredContent": {"n": 1}}, '{"n":1}', id="structure for empty text"
        ),
        pytest.param(
            {"content": [IMAGE], "structuredContent": {"n": 1}},
            '[image]\n{"n":1}',
            id="image and structure",
        ),
        pytest.param(
            {"content": [{"type": "resource", "resource": {"uri": "file:a", "text": "A"}}]},
            "A",
            id="embedded text",
        ),
        pytest.param(
            {"content": [{"type": "resource", "resource": {"uri": "file:a", "blob": "QQ=="}}]},
            "[resource]",
            id="embedded bytes",
        ),
        pytest.param(
            {"content": [{"type": "resource_link", "uri": "file:a", "name": "a"}]},
            "[resource_link file:a]",
            id="link",
        ),
        pytest.param({"temperature": 21}, '{"temperature":21}', id="not the shape"),
    ],
)
def test_a_model_reads_the_text_of_a_result(result: Json, text: str) -> None:
    """Text blocks joined by a newline; other blocks are named; else the structure."""
    assert result_text(result) == text
