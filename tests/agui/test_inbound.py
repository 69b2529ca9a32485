"""Bodies of a run that are accepted: what is read, and what is left out with a notice."""

from typing import Any

import pytest

from agui_server.agui.inbound import ResumeEntry
from engine.core.messages import (
    ActivityMessage,
    AssistantMessage,
    ClientContext,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.agui.inputs import ASKED, CALL, USER, noticed, parsed, read


def test_the_smallest_input_is_read() -> None:
    """Three members are required; all others have a value when they are absent."""
    request = parsed()
    assert (request.thread_id, request.run_id) == ("t", "r")
    assert (request.protocol_version, request.legacy, request.parent_run_id) == (None, True, None)
    assert request.client == ClientContext()
    assert request.answers == ()
    assert request.message_ids == ("m1",)
    assert request.history().messages == (UserMessage(id="m1", content="hello"),)
    assert noticed(request) == []


def test_every_member_reaches_its_place() -> None:
    """Tools, context, state, forwarded properties and answers are carried as they are."""
    tool = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object"}}
    context = {"description": "locale", "value": "de"}
    request = parsed(
        protocolVersion="1.0",
        parentRunId="p",
        tools=[tool],
        context=[context],
        state={"a": None},
        forwardedProps={"b": None},
        resume=[
            {"interruptId": "i1", "status": "resolved", "payload": False, "metadata": {}},
            {"interruptId": "i2", "status": "cancelled"},
        ],
    )
    assert (request.legacy, request.parent_run_id) == (False, "p")
    assert request.client == ClientContext(
        tools=(tool,), context=(context,), state={"a": None}, forwarded_props={"b": None}
    )
    assert request.answers == (
        ResumeEntry(interrupt_id="i1", status="resolved", payload=False),
        ResumeEntry(interrupt_id="i2", status="cancelled"),
    )
    assert noticed(request) == []


@pytest.mark.parametrize("payload", [False, 0, "", None, [], {}], ids=repr)
def test_an_empty_answer_is_an_answer(payload: object) -> None:
    """Case 11: `false`, `0` and `""` arrive as what they are."""
    request = parsed(resume=[{"interruptId": "i", "status": "resolved", "payload": payload}])
    (answer,) = request.answers
    assert answer.payload == payload
    assert type(answer.payload) is type(payload)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(
            {"role": "user", "content": [{"type": "text", "text": "x"}], "name": "n"},
            UserMessage(id="m", content=[{"type": "text", "text": "x"}], name="n"),
            id="user",
        ),
        pytest.param(
            {"role": "assistant", "content": None, "toolCalls": [CALL], "encryptedValue": "e"},
            AssistantMessage(
                id="m", tool_calls=(ToolCall(id="c1", name="look"),), encrypted_value="e"
            ),
            id="39-null-content-of-an-assistant",
        ),
        pytest.param(
            {"role": "tool", "toolCallId": "nobody-asked", "content": "1", "error": "e"},
            ToolMessage(id="m", tool_call_id="nobody-asked", content="1", error="e"),
            id="39-tool-message-without-its-call",
        ),
        pytest.param(
            {"role": "developer", "content": "be kind", "metadata": {"k": None}},
            SystemMessage(id="m", role="developer", content="be kind", metadata={"k": None}),
            id="developer",
        ),
        pytest.param(
            {"role": "system", "content": "", "subagentRunId": "s"},
            SystemMessage(id="m", content=""),
            id="system",
        ),
        pytest.param(
            {"role": "reasoning", "content": "hm", "encryptedValue": "e"},
            ReasoningMessage(id="m", content="hm", encrypted_value="e"),
            id="reasoning",
        ),
        pytest.param(
            {"role": "activity", "activityType": "PLAN", "content": {"steps": []}},
            ActivityMessage(id="m", activity_type="PLAN", content={"steps": []}),
            id="activity",
        ),
    ],
)
def test_each_role_is_read(sent: dict[str, Any], expected: Message) -> None:
    """Every role of the protocol becomes the engine's message of that role."""
    assert read({"id": "m", **sent}) == (expected,)


@pytest.mark.parametrize(
    "member",
    [
        "protocolVersion", "parentRunId", "tools", "context", "state", "forwardedProps", "resume",
    ],
)  # fmt: skip
def test_null_counts_as_absent(member: str) -> None:
    """Case 39: `tools: null` and its like are what old clients send for nothing."""
    request, bare = parsed(**{member: None}), parsed()
    assert (request.client, request.answers, request.legacy) == (bare.client, (), True)
    assert noticed(request) == []


# --- Left out, with a notice -------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "notice"),
    [
        pytest.param({"x": 1, "y": 2}, ("unknown_field", "input: ignored x, y"), id="member"),
        pytest.param(
            {"thread_id": "t"}, ("unknown_field", "input: ignored thread_id"), id="snake-case"
        ),
        pytest.param(
            {"messages": [USER, {**USER, "id": "m2", "mood": 1}, {**USER, "id": "m3", "mood": 1}]},
            ("unknown_field", "messages[]: ignored mood"),
            id="once-for-many-messages",
        ),
        pytest.param(
            {"messages": [{**USER, **{f"k{i}": 1 for i in range(9)}}]},
            ("unknown_field", "messages[]: ignored k0, k1, k2, k3, k4, …"),
            id="at-most-five-names",
        ),
        pytest.param(
            {"messages": [USER, {"role": "oracle"}]},
            ("unknown_role", "messages[]: ignored oracle"),
            id="39-unknown-role",
        ),
        pytest.param(
            {"messages": [USER, USER]},
            ("repeated_message", "messages[]: ignored m1"),
            id="message-sent-twice",
        ),
        pytest.param(
            {"messages": [{**ASKED, "toolCalls": [{**CALL, "index": 0}]}]},
            ("unknown_field", "messages[].toolCalls[]: ignored index"),
            id="member-of-a-call",
        ),
        pytest.param(
            {"protocolVersion": "1.7"},
            ("protocol_version", "the client speaks 1.7; served as 1.0"),
            id="newer-minor",
        ),
        pytest.param(
            {"protocolVersion": "1.0.0"},
            ("protocol_version", "'1.0.0' is no version; served as 1.0"),
            id="unreadable-version",
        ),
    ],
)
def test_what_is_not_known_is_left_out(members: dict[str, Any], notice: tuple[str, str]) -> None:
    """P11: nothing of a later version fails a run; one notice says what was left out."""
    request = parsed(**members)
    assert noticed(request) == [notice]
    assert len(request.history().messages) >= 1


@pytest.mark.parametrize(
    ("part", "kept", "code"),
    [
        pytest.param({"type": "hologram"}, None, "unknown_part", id="39-unknown-part"),
        pytest.param(
            {"type": "image", "source": {"type": "ipfs", "cid": "q"}},
            None,
            "unknown_source",
            id="unknown-source",
        ),
        pytest.param(
            {"type": "image", "source": {"type": "url", "value": "u", "x": 1}, "id": None},
            {"type": "image", "source": {"type": "url", "value": "u"}},
            "unknown_field",
            id="members-of-parts",
        ),
        pytest.param(
            {"type": "binary", "mimeType": "image/png", "data": "AA==", "filename": "a.png"},
            {
                "type": "image",
                "source": {"type": "data", "value": "AA==", "mimeType": "image/png"},
                "metadata": {"filename": "a.png"},
            },
            None,
            id="binary-becomes-image",
        ),
        pytest.param(
            {"type": "binary", "mimeType": "application/pdf", "url": "u"},
            {
                "type": "document",
                "source": {"type": "url", "value": "u", "mimeType": "application/pdf"},
            },
            None,
            id="binary-becomes-document",
        ),
        pytest.param(
            {"type": "binary", "mimeType": "video/mp4", "id": "f"},
            {
                "type": "video",
                "source": {"type": "file", "value": "f", "mimeType": "video/mp4"},
            },
            None,
            id="binary-becomes-video",
        ),
        pytest.param(
            {"type": "binary", "mimeType": "audio/wav"}, None, "unknown_part", id="empty-binary"
        ),
        pytest.param(
            {"type": "document", "source": {"type": "file", "value": "f", "provider": "p"}},
            {"type": "document", "source": {"type": "file", "value": "f", "provider": "p"}},
            None,
            id="file",
        ),
    ],
)
def test_parts_that_cannot_be_used_are_left_out(
    part: dict[str, Any], kept: dict[str, Any] | None, code: str | None
) -> None:
    """P12: a part is dropped or put into today's shape; the message stays."""
    text = {"type": "text", "text": "see"}
    request = parsed(messages=[{"id": "m", "role": "user", "content": [text, part]}])
    content = [text] if kept is None else [text, kept]
    assert request.history().messages == (UserMessage(id="m", content=content),)
    assert [code for code, _ in noticed(request)] == ([] if code is None else [code])


def test_content_without_a_usable_part_is_empty_text() -> None:
    """P34: a result whose parts were all dropped is answered with `""`."""
    sent = {"id": "m", "role": "tool", "toolCallId": "c", "content": [{"type": "hologram"}]}
    assert read(sent) == (ToolMessage(id="m", tool_call_id="c", content=""),)


# --- What is recorded is not read again --------------------------------------------------


def test_a_recorded_message_is_taken_from_the_record() -> None:
    """An id wins over content: not even a malformed copy of a known message is looked at."""
    recorded = UserMessage(id="m1", content="as recorded")
    request = parsed(messages=[{**USER, "content": 5}, {**USER, "id": "m2"}])
    history = request.history({"m1": recorded}.get)
    assert history.messages[0] is recorded
    assert history.messages[1] == UserMessage(id="m2", content="hello")


@pytest.mark.parametrize(
    ("calls", "taken"),
    [([CALL], True), ([], False), (None, False), ([CALL, {**CALL, "id": "c2"}], False)],
    ids=["the-same", "17c-none", "17c-absent", "17c-merged"],
)
def test_tool_calls_shown_elsewhere_are_seen(calls: Any, *, taken: bool) -> None:
    """Case 17c: a view that moved tool calls between messages is read as it is."""
    recorded = AssistantMessage(id="m2", tool_calls=(ToolCall(id="c1", name="look"),))
    request = parsed(messages=[{**ASKED, "toolCalls": calls}])
    (message,) = request.history({"m2": recorded}.get).messages
    assert (message is recorded) is taken
    assert isinstance(message, AssistantMessage)
    assert [c.id for c in message.tool_calls] == [c["id"] for c in calls or ()]
