"""Bodies of a run that are refused: which status, which code, which field."""

import json
from typing import Any

import pytest

from agui_server.agui.inbound import check_content_type
from agui_server.agui.wire import BadRequest
from tests.agui.inputs import ASKED, CALL, USER, parsed, refused, run_input


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param(b"", 400, "invalid_json", id="39-empty"),
        pytest.param(b"hello", 400, "invalid_json", id="39-not-json"),
        pytest.param(b"[]", 422, "invalid_input", id="39-array"),
        pytest.param(b"null", 422, "invalid_input", id="null"),
        pytest.param(b'{"threadId": "\xff"}', 400, "invalid_json", id="not-utf-8"),
        pytest.param(b"\xef\xbb\xbf{}", 400, "invalid_json", id="byte-order-mark"),
        pytest.param(b'{"state": NaN}', 400, "invalid_json", id="37-nan"),
        pytest.param(b'{"state": -Infinity}', 400, "invalid_json", id="37-infinity"),
        pytest.param(b'{"state": 1e999}', 400, "invalid_json", id="37-beyond-a-double"),
        pytest.param(b'["\\ud800", NaN]', 400, "invalid_json", id="36-37-surrogate-and-nan"),
        pytest.param(b'["\\ud800", 1e999]', 400, "invalid_json", id="36-37-surrogate-and-1e999"),
        pytest.param(b'["\\ud800\xff"]', 400, "invalid_json", id="36-surrogate-and-not-utf-8"),
        pytest.param(b'["\\ud800"', 400, "invalid_json", id="36-surrogate-and-cut-off"),
        pytest.param(b'["\\ud800"]', 422, "invalid_input", id="36-surrogate-and-array"),
        pytest.param(b"[" * 100_000, 400, "invalid_json", id="deep"),
        pytest.param(
            b'["\\ud800",' + b"[" * 50_000 + b"]" * 50_001, 400, "invalid_json", id="36-deep"
        ),
    ],
)
def test_bodies_that_are_no_input_are_refused(body: bytes, status: int, code: str) -> None:
    """Cases 37 and 39: a clear refusal for every body, never an exception of another kind."""
    error = refused(body)
    assert (error.status, error.code) == (status, code)


LONG = "x" * 10_000

MALFORMED: list[tuple[str, dict[str, Any]]] = [
    ("threadId", {"threadId": ""}),
    ("threadId", {"threadId": LONG}),
    ("threadId", {"threadId": None}),
    ("threadId", {"threadId": 5}),
    ("runId", {"runId": "a\nb"}),
    ("runId", {"runId": ["r"]}),
    ("parentRunId", {"parentRunId": 5}),
    ("protocolVersion", {"protocolVersion": 1.0}),
    ("messages", {"messages": None}),
    ("messages", {"messages": {}}),
    ("messages[0]", {"messages": ["hi"]}),
    ("messages[0].role", {"messages": [{"id": "m", "content": "x"}]}),
    ("messages[0].id", {"messages": [{"role": "user", "content": "x"}]}),
    ("messages[0].id", {"messages": [{**USER, "id": ""}]}),
    ("messages[0].content", {"messages": [{"id": "m", "role": "user"}]}),
    ("messages[0].content", {"messages": [{**USER, "content": None}]}),
    ("messages[0].content", {"messages": [{**USER, "content": {}}]}),
    ("messages[0].content[0]", {"messages": [{**USER, "content": ["x"]}]}),
    ("messages[0].content[0].type", {"messages": [{**USER, "content": [{"text": "x"}]}]}),
    ("messages[0].content[0].text", {"messages": [{**USER, "content": [{"type": "text"}]}]}),
    ("messages[0].content[0].source", {"messages": [{**USER, "content": [{"type": "image"}]}]}),
    (
        "messages[0].content[0].source.mimeType",
        {
            "messages": [
                {
                    **USER,
                    "content": [{"type": "image", "source": {"type": "data", "value": "AA=="}}],
                }
            ]
        },
    ),
    ("messages[0].name", {"messages": [{**USER, "name": 1}]}),
    ("messages[0].metadata", {"messages": [{**USER, "metadata": []}]}),
    ("messages[0].encryptedValue", {"messages": [{**USER, "encryptedValue": 1}]}),
    ("messages[0].subagentRunId", {"messages": [{**USER, "subagentRunId": 1}]}),
    ("messages[1].id", {"messages": [USER, {**USER, "content": "another"}]}),
    ("messages[0].content", {"messages": [{**ASKED, "content": []}]}),
    ("messages[0].toolCalls", {"messages": [{**ASKED, "toolCalls": {}}]}),
    ("messages[0].toolCalls[0]", {"messages": [{**ASKED, "toolCalls": [1]}]}),
    ("messages[0].toolCalls[0].id", {"messages": [{**ASKED, "toolCalls": [{**CALL, "id": ""}]}]}),
    (
        "messages[0].toolCalls[0].type",
        {"messages": [{**ASKED, "toolCalls": [{**CALL, "type": "custom"}]}]},
    ),
    (
        "messages[0].toolCalls[0].function",
        {"messages": [{**ASKED, "toolCalls": [{**CALL, "function": None}]}]},
    ),
    (
        "messages[0].toolCalls[0].function.arguments",
        {"messages": [{**ASKED, "toolCalls": [{**CALL, "function": {"name": "x"}}]}]},
    ),
    ("messages[0].toolCallId", {"messages": [{"id": "m", "role": "tool", "content": ""}]}),
    (
        "messages[0].toolCallId",
        {"messages": [{"id": "m", "role": "tool", "content": "", "tool_call_id": "c"}]},
    ),
    ("messages[0].content", {"messages": [{"id": "m", "role": "system", "content": []}]}),
    ("messages[0].content", {"messages": [{"id": "m", "role": "reasoning"}]}),
    ("messages[0].activityType", {"messages": [{"id": "m", "role": "activity", "content": {}}]}),
    ("tools", {"tools": {}}),
    ("tools[0]", {"tools": ["x"]}),
    ("tools[0].name", {"tools": [{"description": ""}]}),
    ("tools[0].description", {"tools": [{"name": "x"}]}),
    ("tools[0].metadata", {"tools": [{"name": "x", "description": "", "metadata": 1}]}),
    ("context", {"context": "x"}),
    ("context[0].value", {"context": [{"description": "x"}]}),
    ("context[0].value", {"context": [{"description": "x", "value": {}}]}),
    ("resume", {"resume": {}}),
    ("resume[0].interruptId", {"resume": [{"status": "resolved"}]}),
    ("resume[0].interruptId", {"resume": [{"interruptId": LONG, "status": "resolved"}]}),
    ("resume[0].status", {"resume": [{"interruptId": "i", "status": "maybe"}]}),
    ("resume[0].status", {"resume": [{"interruptId": "i", "status": ["resolved"]}]}),
    (
        "resume[0].metadata",
        {"resume": [{"interruptId": "i", "status": "resolved", "metadata": "x"}]},
    ),
]


@pytest.mark.parametrize(
    ("path", "members"),
    [
        pytest.param(path, members, id=f"39-{i}-{path}")
        for i, (path, members) in enumerate(MALFORMED)
    ],
)
def test_a_malformed_field_is_refused_by_name(path: str, members: dict[str, Any]) -> None:
    """P10, case 39: a known field of the wrong kind is a 422 that starts with its path."""
    error = refused(json.dumps(run_input(**members)).encode())
    assert (error.status, error.code) == (422, "invalid_input")
    assert error.detail.partition(":")[0] == path
    assert LONG not in error.detail


def test_one_interrupt_answered_twice_is_refused() -> None:
    """Section 3 of agui.md: one id twice in a list is a 422 of its own code."""
    entry = {"interruptId": "i", "status": "resolved", "payload": True}
    error = refused(json.dumps(run_input(resume=[entry, entry])).encode())
    assert (error.status, error.code) == (422, "duplicate_resume")
    assert str(error) == (
        "duplicate_resume: resume: interrupt i is answered twice; send one answer"
    )


@pytest.mark.parametrize("version", ["2.0", "2.7", "10.1"])
def test_a_foreign_major_version_is_refused(version: str) -> None:
    """P47: only a major of the future is refused, before any stream."""
    error = refused(json.dumps(run_input(protocolVersion=version)).encode())
    assert (error.status, error.code) == (400, "unsupported_protocol_version")


@pytest.mark.parametrize(
    ("version", "legacy"),
    [(None, True), ("0.9", True), ("1.0", False), ("1.1", False), ("abc", False), ("", False)],
)
def test_legacy_is_a_client_before_1_0(version: str | None, *, legacy: bool) -> None:
    """Section 5 of agui.md: no version is an old client; an unreadable one is a newer."""
    assert parsed(protocolVersion=version).legacy is legacy
    assert parsed(protocolVersion="9" * 5000 + ".0").legacy is False


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("text/plain", False),
        ("application/x-www-form-urlencoded", False),
        ("application/jsonp", False),
        ("", False),
        (None, False),
    ],
)
def test_only_json_is_accepted(header: str | None, *, accepted: bool) -> None:
    """Case 39: `text/plain` is a 415, so that no form of another site can post."""
    if accepted:
        check_content_type(header)
        return
    with pytest.raises(BadRequest) as raised:
        check_content_type(header)
    assert (raised.value.status, raised.value.code) == (415, "unsupported_media_type")
