"""JSON at the border: odd text and numbers, depth, and the digest of an input."""

import json
from typing import Any

import orjson
import pytest

from agui_server.agui.inbound import parse_run
from agui_server.agui.wire import _ENCODER_DEPTH, MAX_DEPTH
from engine.core.messages import UserMessage
from tests.agui.inputs import USER, parsed, read, refused, run_input


def test_a_lone_surrogate_is_replaced() -> None:
    """Case 36: half a pair becomes U+FFFD in text, keys and ids; a whole pair stays."""
    message = rb'{"id": "m", "role": "user", "content": "a\ud800b \ud83d\ude00"}'
    body = (
        rb'{"threadId":"t","runId":"r","messages":[' + message + rb'],"state":{"\udc00":"\ud83d"}}'
    )
    request = parse_run(body)
    assert request.history().messages == (UserMessage(id="m", content="a\ufffdb \U0001f600"),)
    assert request.client.state == {"\ufffd": "\ufffd"}


@pytest.mark.parametrize("also", ["", '"\\ud800",'], ids=["fast-parser", "36-tolerant-parser"])
@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", float(2**64)),
        ("-9223372036854775809", float(-(2**63))),
        ("1" * 300, float("1" * 300)),
    ],
    ids=["u64", "beyond-u64", "beyond-i64", "300-digits"],
)
def test_a_huge_integer_is_a_number(also: str, number: str, value: float) -> None:
    """Both parsers read what 64 bits cannot hold as a float, and the digest can carry it."""
    body = f'{{"threadId":"t","runId":"r","messages":[],"state":[{also}{number}]}}'
    state = parse_run(body.encode()).client.state
    assert state[-1] == value
    assert type(state[-1]) is type(value)


@pytest.mark.parametrize("text", ["\u2028\u2029\x85", "\r\n\r\n", "a\x00b", "data: x"], ids=ascii)
def test_odd_text_is_kept(text: str) -> None:
    """Case 35: what looks like a line to somebody is text here."""
    assert read({**USER, "content": text}) == (UserMessage(id="m1", content=text),)


def nested(levels: int) -> Any:
    """Return a list in a list, so many levels deep."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_nesting_has_a_limit() -> None:
    """An input of 100 levels is read; one more is a 400, long before the log refuses it."""
    assert parsed(state=nested(MAX_DEPTH - 1)).client.state == nested(MAX_DEPTH - 1)
    error = refused(json.dumps(run_input(state=nested(MAX_DEPTH))).encode())
    assert (error.status, error.code) == (400, "invalid_json")


def test_the_encoder_stops_where_it_is_said_to() -> None:
    """The limit on nesting leans on orjson's own; another release may move it."""
    orjson.dumps(nested(_ENCODER_DEPTH))
    with pytest.raises(orjson.JSONEncodeError):
        orjson.dumps(nested(_ENCODER_DEPTH + 1))


def test_the_digest_does_not_see_the_order_of_keys() -> None:
    """A retried POST may be encoded anew: its digest is the same."""
    sent = run_input(state={"a": 1, "b": {"c": 2, "d": 3}}, tools=[])
    again: dict[str, Any] = {"tools": [], "state": {"b": {"d": 3, "c": 2}, "a": 1}}
    again |= run_input()
    assert parse_run(orjson.dumps(sent)).digest == parse_run(orjson.dumps(again)).digest


@pytest.mark.parametrize(
    "members",
    [
        {"messages": [{**USER, "content": "bye"}]},
        {"messages": [USER, {**USER, "id": "m2"}]},
        {"resume": [{"interruptId": "i", "status": "cancelled"}]},
        {"tools": [{"name": "x", "description": ""}]},
        {"context": [{"description": "", "value": ""}]},
        {"state": {}},
        {"forwardedProps": {"x": 1}},
    ],
    ids=["content", "message", "resume", "tools", "context", "state", "props"],
)
def test_the_digest_sees_what_is_asked(members: dict[str, Any]) -> None:
    """Anything that makes another input makes another digest."""
    assert parsed(**members).digest != parsed().digest


def test_the_digest_does_not_see_ids_of_the_run() -> None:
    """The ids are compared beside the digest, by the rule that needs them."""
    assert parsed(runId="r2", parentRunId="p", protocolVersion="1.0").digest == parsed().digest
