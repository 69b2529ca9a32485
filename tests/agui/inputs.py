"""Inputs of a run for the tests of this folder, and what becomes of them."""

import json
from typing import Any

import pytest

from agui_server.agui.inbound import RunRequest, parse_run
from agui_server.agui.wire import BadRequest
from engine.core.messages import Message

USER = {"id": "m1", "role": "user", "content": "hello"}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ASKED = {"id": "m2", "role": "assistant", "toolCalls": [CALL]}


def run_input(**members: Any) -> dict[str, Any]:
    """Return the smallest input there is, with some members added or replaced."""
    return {"threadId": "t", "runId": "r", "messages": [USER], **members}


def parsed(**members: Any) -> RunRequest:
    """Parse an input with these members."""
    return parse_run(json.dumps(run_input(**members)).encode())


def read(*messages: Any) -> tuple[Message, ...]:
    """Read the messages of an input, nothing being recorded."""
    return parsed(messages=list(messages)).history().messages


def refused(body: bytes) -> BadRequest:
    """Return the refusal of a body, in either of the two steps."""
    with pytest.raises(BadRequest) as raised:
        parse_run(body).history()
    return raised.value


def noticed(request: RunRequest) -> list[tuple[str, str]]:
    """Return every notice of both steps."""
    return [(n.code, n.detail) for n in (*request.notices, *request.history().notices)]
