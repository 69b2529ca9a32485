"""Whatever is posted, the server does not fail, and what it took can be shown."""

import asyncio
import copy
import json
from collections.abc import Generator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agui_server.demo import agents
from engine import Agent
from tests.agui.given import serving
from tests.api.given import CLIENT, LOOK, MACHINE, Api, append, asking, message, user, view

SESSION = "order 7"
INTERRUPT = "mine"

NAMES: dict[str, Any] = {"agent_id": "a", "thread_id": "t"}
CLIENT_PART = {
    "tools": [{"name": "x", "description": "y", "parameters": {"type": "object"}}],
    "context": [{"description": "x", "value": "y"}],
    "state": {"a": 1},
    "forwarded_props": {},
}
PICTURE = {"type": "image", "source": {"type": "url", "value": "x", "mimeType": "image/png"}}

INPUTS: list[dict[str, Any]] = [
    {**message("/say hi", id="m", role="user"), "client": CLIENT_PART},
    {"type": "client.message", "message": {"content": [{"type": "text", "text": "x"}, PICTURE]}},
    append(
        user("u1", LOOK),
        {
            "id": "a1",
            "role": "assistant",
            "content": "x",
            "tool_calls": [{"id": "c1", "name": "look", "arguments": "{}"}],
        },
        {"id": "t1", "role": "tool", "tool_call_id": "c1", "content": "x", "error": "y"},
        {"id": "s1", "role": "system", "content": "x"},
        {"id": "r1", "role": "reasoning", "content": "x", "encrypted_value": "y"},
        {"id": "x1", "role": "activity", "activity_type": "x", "content": {"y": [None]}},
    ),
    view(
        user("u1", "/say hi"),
        user("u2", "/say on"),
        answers=[{"interrupt_id": INTERRUPT, "status": "resolved", "payload": {"approved": True}}],
    ),
    {"type": "client.action", "name": "like", "args": [1]},
    {"type": "interrupt.resume", "interrupt_id": INTERRUPT, "payload": True},
    {"type": "tool.result", "id": "c1", "result": {"content": [{"type": "text", "text": "x"}]}},
    {"type": "tool.error", "id": "c1", "error": "x"},
]

SCHEMA = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
PROMPT = {
    "message": "?",
    "toolCallId": "c1",
    "responseSchema": SCHEMA,
    "expiresAt": "2999-01-01T00:00:00Z",
    "metadata": {"options": [{"label": "x", "value": {"approved": True}, "style": "primary"}]},
}

_INTERRUPT = {
    "reason": "r",
    "payload": PROMPT,
    "answer_by": "client",
    "interrupt_id": INTERRUPT,
}

ROUTES: dict[str, list[Any]] = {
    f"{CLIENT}/input": [{**NAMES, "turn_id": "one", "queue": True, "input": i} for i in INPUTS],
    f"{MACHINE}/submit": [
        {
            **NAMES,
            "identity": {"id": "local"},
            "session_id": SESSION,
            "queue": False,
            "payload": i,
        }
        for i in INPUTS
    ],
    f"{CLIENT}/t/interrupt": [_INTERRUPT],
    f"{MACHINE}/{SESSION}/interrupt": [{**_INTERRUPT, "answer_by": "machine"}],
    f"{CLIENT}/t/interrupts/{INTERRUPT}/answer": [{"option": 0}, {"payload": {"approved": True}}],
    f"{MACHINE}/{SESSION}/interrupts/{INTERRUPT}/answer": [{"option": 1}, {"payload": None}],
    f"{MACHINE}/{SESSION}/calls/settle": [
        {"call_id": "c1", "attempt": 0, "result": "x"},
        {"call_id": "c1", "error": "x"},
    ],
    f"{CLIENT}/t/cancel": [None],
    f"{MACHINE}/{SESSION}/cancel": [None],
}
"""Every POST route, with bodies it takes."""

WORDS = ["", "t", SESSION, INTERRUPT, "c1", "u1", "m", "local", "ada", "user", "tool", "a\ud800"]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Generator[tuple[Any, ...]]:
    """Walk over every place in a JSON value."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


@st.composite
def nearly(draw: st.DrawFn, bodies: list[Any]) -> Any:
    """Return a body that would be taken, with up to three places of it changed."""
    body = {"": copy.deepcopy(draw(st.sampled_from(bodies)))}
    for _ in range(draw(st.integers(0, 3))):
        *above, last = draw(st.sampled_from([path for path in places(body) if path]))
        holder: Any = body
        for step in above:
            holder = holder[step]
        match draw(st.sampled_from(["replace", "drop", "add"])):
            case "replace":
                holder[last] = draw(values)
            case "drop" if above:
                del holder[last]
            case _ if isinstance(holder[last], dict):
                holder[last][draw(st.text(max_size=6))] = draw(values)
            case _:
                continue
    return body[""]


@pytest.fixture(scope="module")
def served() -> Generator[tuple[asyncio.Runner, Api]]:
    """Serve agents, with one session that asks, for all examples together."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def begin() -> Api:
            others = [agent for agent in agents(None) if agent.id != "a"]
            served = serving(asking({"message": "Look?"}), Agent("b"), *others)
            server = Api(await stack.enter_async_context(served))
            await server.submit(message(LOOK), session_id=SESSION, identity={"id": "local"})
            await server.say(LOOK)
            await server.until("interrupted")
            return server

        yield runner, runner.run(begin())
        runner.run(stack.aclose())


async def posted(server: Api, path: str, content: bytes) -> None:
    """Post a body: no failure, and the session can be shown."""
    client = server.server.client
    headers = {"Content-Type": "application/json"}
    response = await client.post(path, content=content, headers=headers)
    assert response.status_code < 500, response.text
    response.json()
    if not response.is_success:
        return
    shown: httpx.Response = await client.get(f"{MACHINE}/{SESSION}")
    assert shown.status_code == 200
    assert (await client.get(f"{CLIENT}/t")).status_code in {200, 409}
    assert (await client.get(f"{CLIENT}/t/runs")).status_code in {200, 409}
    assert (await client.get(CLIENT)).status_code == 200


@pytest.mark.parametrize("path", ROUTES)
@given(data=st.data())
def test_no_body_makes_the_server_fail(
    served: tuple[asyncio.Runner, Api], path: str, data: st.DataObject
) -> None:
    """Any JSON, and above all JSON that is nearly right."""
    runner, server = served
    body = data.draw(values | nearly(ROUTES[path]))
    runner.run(posted(server, path, json.dumps(body).encode()))


@pytest.mark.parametrize("path", ROUTES)
@given(content=st.binary(max_size=40))
@example(content=b"\xef\xbb\xbf{}")
@example(content=b'{"a": 1e400}')
def test_no_bytes_make_the_server_fail(
    served: tuple[asyncio.Runner, Api], path: str, content: bytes
) -> None:
    """Neither do bytes that are no JSON at all."""
    runner, server = served
    runner.run(posted(server, path, content))


async def test_the_bodies_are_taken() -> None:
    """The properties begin with bodies that are right: none is refused for its shape."""
    async with serving(asking({"message": "Look?"})) as server:
        for path, bodies in ROUTES.items():
            for body in bodies:
                response = await server.client.post(path, json=body)
                refusal = response.json()
                if refusal.get("code") == "invalid_input":
                    assert refusal["field"] in {"queue", "turn_id", "option"}, refusal
