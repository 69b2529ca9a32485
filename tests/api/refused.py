"""Bodies that are refused, with the field that is wrong. They are tables: read them as such."""

from typing import Any

from tests.api.given import Json, message, user

LONG = "x" * 257
DEEP: Any = "[" * 101 + "]" * 101


def says(**members: Any) -> Json:
    """Return a body whose message has these members."""
    return {"agent_id": "a", "input": {"type": "client.message", "message": members}}


def sends(type_: str, **members: Any) -> Json:
    """Return a body with an input of a type."""
    return {"agent_id": "a", "thread_id": "t", "input": {"type": type_, **members}}


def parts(*found: Any) -> Json:
    """Return a body whose message has these parts."""
    return says(content=list(found))


INPUTS: list[tuple[str, Json, str]] = [
    # the body
    ("no input", {"agent_id": "a"}, "input"),
    ("unknown member", {**says(content="x"), "agent": "a"}, "agent"),
    ("a member named like a role", {**says(content="x"), "tool": 1}, "tool"),
    ("an id that is a number", {**says(content="x"), "thread_id": 7}, "thread_id"),
    ("an empty id", {**says(content="x"), "agent_id": ""}, "agent_id"),
    ("a long id", {**says(content="x"), "session_id": LONG}, "session_id"),
    ("a control in an id", {**says(content="x"), "turn_id": "a\u0000"}, "turn_id"),
    ("a flag that is a word", {**says(content="x"), "queue": "yes"}, "queue"),
    ("neither session nor agent", {"input": message("x")}, "agent_id"),
    ("an answer for nobody", {"input": {"type": "tool.error", "id": "", "error": ""}}, "input.id"),
    (
        "an answer that names no session",
        {"input": {"type": "interrupt.resume", "interrupt_id": "i"}},
        "session_id",
    ),
    # the input
    ("an input that is a list", {"agent_id": "a", "input": []}, "input"),
    ("an input without a type", {"agent_id": "a", "input": {}}, "input.type"),
    ("an unknown type", sends("client.shout"), "input.type"),
    ("a type that is a number", {"agent_id": "a", "input": {"type": 1}}, "input.type"),
    ("an unknown member of an input", {**sends("client.action", name="x", arg=1)}, "input.arg"),
    ("a client beside an action", sends("client.action", name="x", client={}), "input.client"),
    ("an action without a name", sends("client.action"), "input.name"),
    ("an empty name", sends("client.action", name=""), "input.name"),
    ("a queued view", {**sends("client.messages", messages=[]), "queue": True}, "queue"),
    ("a queued answer", {**sends("interrupt.resume", interrupt_id="i"), "queue": True}, "queue"),
    ("a result with a turn", {**sends("tool.result", id="c", result=1), "turn_id": "t"}, "turn_id"),
    ("a result without a result", sends("tool.result", id="c"), "input.result"),
    ("an error that is no text", sends("tool.error", id="c", error={}), "input.error"),
    ("an answer without an id", sends("interrupt.resume", payload=True), "input.interrupt_id"),
    ("nothing to append", sends("client.append", messages=[]), "input.messages"),
    ("a view without messages", sends("client.messages"), "input.messages"),
    (
        "a question answered twice",
        sends("client.messages", messages=[], answers=[{"interrupt_id": "i"}] * 2),
        "input.answers[1].interrupt_id",
    ),
    (
        "an answer of no known status",
        sends("client.messages", messages=[], answers=[{"interrupt_id": "i", "status": "yes"}]),
        "input.answers[0].status",
    ),
    # messages
    ("a message that is text", sends("client.message", message="hi"), "input.message"),
    ("no content", says(), "input.message.content"),
    ("content that is a number", says(content=1), "input.message.content"),
    ("an unknown role", says(content="x", role="boss"), "input.message.role"),
    ("an unknown member of a message", says(content="x", text="y"), "input.message.text"),
    ("a message in camel case", says(content="x", toolCallId="y"), "input.message.toolCallId"),
    ("an empty message id", says(content="x", id=""), "input.message.id"),
    ("a long message id", says(content="x", id=LONG), "input.message.id"),
    ("a message id that is null", says(content="x", id=None), "input.message.id"),
    ("metadata that is a list", says(content="x", metadata=[]), "input.message.metadata"),
    ("a result for no call", says(content="x", role="tool"), "input.message.tool_call_id"),
    (
        "a result for an empty call",
        says(content="x", role="tool", tool_call_id=""),
        "input.message.tool_call_id",
    ),
    (
        "a call with an empty id",
        says(role="assistant", tool_calls=[{"id": "", "name": "x"}]),
        "input.message.tool_calls[0].id",
    ),
    (
        "a call without a name",
        says(role="assistant", tool_calls=[{"id": "c"}]),
        "input.message.tool_calls[0].name",
    ),
    (
        "an appended message without an id",
        sends("client.append", messages=[user("u", "x"), {"role": "user", "content": "x"}]),
        "input.messages[1].id",
    ),
    (
        "an appended message without a role",
        sends("client.append", messages=[{"id": "u", "content": "x"}]),
        "input.messages[0].role",
    ),
    (
        "one id for two messages",
        sends("client.messages", messages=[user("u", "x"), user("v", "y"), user("u", "z")]),
        "input.messages[2].id",
    ),
    (
        "an activity without a type",
        sends("client.append", messages=[{"id": "u", "role": "activity", "content": {}}]),
        "input.messages[0].activity_type",
    ),
    # parts
    ("a part that is text", parts("hi"), "input.message.content[0]"),
    ("a part without a type", parts({"text": "x"}), "input.message.content[0].type"),
    ("a part of no known type", parts({"type": "smell"}), "input.message.content[0].type"),
    ("a text part without text", parts({"type": "text"}), "input.message.content[0].text"),
    (
        "an unknown member of a part",
        parts({"type": "text", "text": "x"}, {"type": "text", "text": "x", "size": 1}),
        "input.message.content[1].size",
    ),
    ("a picture of nothing", parts({"type": "image"}), "input.message.content[0].source"),
    (
        "a source of no known type",
        parts({"type": "image", "source": {"type": "dream", "value": "x"}}),
        "input.message.content[0].source.type",
    ),
    # what a client sends beside
    (
        "a client that is a list",
        sends("client.message", message={"content": "x"}, client=[]),
        "input.client",
    ),
    (
        "an unknown member of a client",
        sends("client.message", message={"content": "x"}, client={"props": 1}),
        "input.client.props",
    ),
    (
        "a tool without a description",
        sends("client.message", message={"content": "x"}, client={"tools": [{"name": "x"}]}),
        "input.client.tools[0].description",
    ),
    (
        "context that is text",
        sends("client.message", message={"content": "x"}, client={"context": ["x"]}),
        "input.client.context[0]",
    ),
]  # fmt: skip

SUBMIT = {"agent_id": "a", "identity": {"id": "ada"}, "payload": message("x")}

OTHERS: list[tuple[str, str, Any, str]] = [
    ("no identity", "submit", {**SUBMIT, "identity": None}, "identity"),
    ("an identity that is text", "submit", {**SUBMIT, "identity": "ada"}, "identity"),
    ("an empty owner", "submit", {**SUBMIT, "identity": {"id": ""}}, "identity.id"),
    (
        "an unknown member of an identity",
        "submit",
        {**SUBMIT, "identity": {"id": "ada", "name": "Ada"}},
        "identity.name",
    ),
    ("no agent", "submit", {**SUBMIT, "agent_id": None}, "agent_id"),
    ("a slash in a session", "submit", {**SUBMIT, "session_id": "a/b"}, "session_id"),
    ("an input under its other name", "submit", {**SUBMIT, "input": {}}, "input"),
    (
        "a message that is none",
        "submit",
        {**SUBMIT, "payload": {"type": "client.message", "message": {"content": [1]}}},
        "payload.message.content[0]",
    ),
    ("no reason", "interrupt", {}, "reason"),
    ("an empty reason", "interrupt", {"reason": ""}, "reason"),
    ("no known answerer", "interrupt", {"reason": "r", "answer_by": "x"}, "answer_by"),
    ("an empty id", "interrupt", {"reason": "r", "interrupt_id": ""}, "interrupt_id"),
    ("no answer", "answer", {}, "body"),
    ("two answers", "answer", {"option": 0, "payload": 1}, "body"),
    ("no option", "answer", {"option": None}, "body"),
    ("a negative option", "answer", {"option": -1}, "option"),
    ("half an option", "answer", {"option": 0.5}, "option"),
    ("an option that is true", "answer", {"option": True}, "option"),
    ("a responder", "answer", {"payload": 1, "responder": "me"}, "responder"),
    ("no call", "calls/settle", {"result": 1}, "call_id"),
    ("no outcome", "calls/settle", {"call_id": "c"}, "body"),
    ("two outcomes", "calls/settle", {"call_id": "c", "result": 1, "error": "e"}, "body"),
    ("an error of null", "calls/settle", {"call_id": "c", "error": None}, "body"),
    (
        "a negative attempt",
        "calls/settle",
        {"call_id": "c", "result": 1, "attempt": -1},
        "attempt",
    ),
]  # fmt: skip

JSON = {"Content-Type": "application/json"}

RAW: list[tuple[str, bytes, dict[str, str], int, str]] = [
    (
        "a form",
        b"a=1",
        {"Content-Type": "application/x-www-form-urlencoded"},
        415,
        "unsupported_media_type",
    ),
    ("text that is JSON", b"{}", {"Content-Type": "text/plain"}, 415, "unsupported_media_type"),
    ("no type", b"{}", {}, 415, "unsupported_media_type"),
    ("nothing", b"", JSON, 400, "invalid_json"),
    ("not JSON", b"{", JSON, 400, "invalid_json"),
    ("not Unicode", b'"\xff"', JSON, 400, "invalid_json"),
    ("NaN", b"[NaN]", JSON, 400, "invalid_json"),
    ("a number beyond a double", b"[1e999]", JSON, 400, "invalid_json"),
    ("too deep", DEEP.encode(), JSON, 400, "invalid_json"),
    ("far too deep", b"[" * 5_000 + b"]" * 5_000, JSON, 400, "invalid_json"),
    ("too large", b'"' + b"x" * 2_000 + b'"', JSON, 413, "too_large"),
    ("a list", b"[]", JSON, 422, "invalid_input"),
    ("a text", b'"x"', JSON, 422, "invalid_input"),
    ("null", b"null", JSON, 422, "invalid_input"),
]
