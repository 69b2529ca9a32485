"""Bodies and requests that are refused: which status, which code, which field.

A refusal changes nothing, and is the same on every route that reads such a body.
"""

import json
from typing import Any

import httpx
import pytest

from agui_server.api.bodies import TAGS, parse
from agui_server.api.refusals import Refusal
from agui_server.api.shapes import ClientInput, InputBody
from agui_server.app import create_app
from agui_server.settings import Settings
from engine import Agent, Engine
from engine.core.messages import Message
from engine.store.memory import MemoryStore
from tests.api.given import CLIENT, MACHINE, Api, Json, api, code
from tests.api.refused import INPUTS, JSON, OTHERS, RAW, says, sends


@pytest.mark.parametrize(("body", "field"), [pytest.param(b, f, id=i) for i, b, f in INPUTS])
async def test_an_input_that_is_not_ours_is_refused(body: Json, field: str) -> None:
    """422 `invalid_input`, the field, and a sentence that begins with it; no session."""
    async with api() as server:
        refused = await server.post(f"{CLIENT}/input", body)
        assert code(refused) == (422, "invalid_input")
        assert refused.json()["field"] == field
        assert refused.json()["detail"].startswith(f"{field}: ")
        assert (await server.get(CLIENT)).json() == {"sessions": []}


def test_an_unknown_type_is_told_the_known_ones() -> None:
    """All seven."""
    with pytest.raises(Refusal) as refused:
        parse(json.dumps(sends("client.shout")).encode(), InputBody)
    for known in sorted(TAGS):
        assert (f"'{known}'" in refused.value.detail) == ("." in known)


def test_a_name_that_is_said_again_is_cut() -> None:
    """A refusal is not as long as what it refuses."""
    for body in ({"x" * 9_999: 1}, sends("x" * 9_999)):
        with pytest.raises(Refusal) as refused:
            parse(json.dumps(body).encode(), InputBody)
        assert len(refused.value.detail) < 300


def test_every_tag_of_a_union_is_known() -> None:
    """What pydantic puts into a path and no reader wants to see there."""
    roles = {
        role
        for kind in Message.__args__
        for role in kind.__annotations__["role"].__args__
    }  # fmt: skip
    types = {kind.model_fields["type"].annotation.__args__[0] for kind in ClientInput.__args__}
    assert roles | types | {"str", "list[any]"} == TAGS


POSTS = {
    "submit": [f"{MACHINE}/submit"],
    "interrupt": [f"{root}/s/interrupt" for root in (CLIENT, MACHINE)],
    "answer": [f"{root}/s/interrupts/i/answer" for root in (CLIENT, MACHINE)],
    "calls/settle": [f"{MACHINE}/s/calls/settle"],
    "input": [f"{CLIENT}/input"],
}


async def refusals(server: Api, route: str, **sent: Any) -> list[httpx.Response]:
    """Post the same to every route that reads such a body."""
    return [await server.server.client.post(path, **sent) for path in POSTS[route]]


@pytest.mark.parametrize(
    ("route", "body", "field"), [pytest.param(*rest, id=i) for i, *rest in OTHERS]
)
async def test_a_body_that_is_not_ours_is_refused(route: str, body: Any, field: str) -> None:
    """422 `invalid_input` with the field, before the session is looked for."""
    async with api() as server:
        for refused in await refusals(server, route, json=body):
            assert code(refused) == (422, "invalid_input")
            assert refused.json()["field"] == field


@pytest.mark.parametrize("route", POSTS)
@pytest.mark.parametrize(
    ("content", "headers", "status", "expected"), [pytest.param(*rest, id=i) for i, *rest in RAW]
)
async def test_a_body_that_is_no_json_object_is_refused(
    route: str, content: bytes, headers: dict[str, str], status: int, expected: str
) -> None:
    """Whatever the route: 415, 413, 400, or 422 for JSON that is no object."""
    async with Engine(agents=[Agent("a")], db=MemoryStore()) as engine:
        app = create_app(engine, Settings(max_body=1_500 if status == 413 else 20_000))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for path in POSTS[route]:
                refused = await client.post(path, content=content, headers=headers)
                assert code(refused) == (status, expected)
                if status == 422:
                    assert refused.json()["field"] == "body"


async def test_a_type_may_have_parameters() -> None:
    """`application/json; charset=utf-8`, in any case."""
    async with api() as server:
        sent = await server.server.client.post(
            f"{CLIENT}/input",
            content=json.dumps(says(content="/say hi")),
            headers={"Content-Type": "Application/JSON; charset=utf-8"},
        )
        assert sent.status_code == 202


async def test_half_a_surrogate_pair_is_replaced() -> None:
    """In a text, an id, a key: by U+FFFD."""
    async with api() as server:
        body = (
            b'{"agent_id": "a", "thread_id": "t\\ud83d", "input": {"type": "client.message",'
            b' "message": {"id": "\\ude00", "content": "/say \\ud83d",'
            b' "metadata": {"\\ud83d": 1}}}}'
        )
        sent = await server.server.client.post(f"{CLIENT}/input", content=body, headers=JSON)
        assert (sent.status_code, sent.json()["thread_id"]) == (202, "t\ufffd")
        await server.until_idle()
        [said, heard] = (await server.show(sent.json()["session_id"]))["messages"]
        assert said == {
            "id": "\ufffd",
            "role": "user",
            "content": "/say \ufffd",
            "metadata": {"\ufffd": 1},
        }
        assert heard["content"] == "\ufffd"


async def test_the_deepest_body_is_stored_and_shown() -> None:
    """What is taken can be recorded, read back, and asked for again."""
    nested: Any = "x"
    for _ in range(94):
        nested = [nested]
    store = MemoryStore()
    async with api(db=store) as server:
        sent = says(content="/say hi", metadata={"deep": nested})
        assert (await server.post(f"{CLIENT}/input", sent)).status_code == 202
        await server.until_idle()
        [row] = await server.engine.store.sessions(limit=1)
        raised = {"reason": "r", "interrupt_id": "i", "payload": nested}
        path = f"{CLIENT}/{row.session_id}"
        assert (await server.post(f"{path}/interrupt", raised)).status_code == 201
        answer = await server.post(f"{path}/interrupts/i/answer", {"payload": nested})
        assert answer.json() == {"resumed": True}
    async with api(db=store) as server:
        shown = await server.show(row.session_id)
        assert shown["messages"][0]["metadata"] == {"deep": nested}
        assert (await server.get(f"{MACHINE}/{row.session_id}/events")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", CLIENT, 405),
        ("GET", f"{CLIENT}/t/cancel", 405),
        ("DELETE", f"{MACHINE}/submit", 405),
        ("GET", "/api/client/nothing", 404),
        ("POST", f"{CLIENT}/a/b/c", 404),
    ],
)
async def test_what_no_route_answers_is_a_problem_document(
    method: str, path: str, status: int
) -> None:
    """No such path, no such method."""
    async with api() as server:
        refused = await server.server.client.request(method, path)
        assert refused.status_code == status
        assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"), ({"limit": "101"}, "limit"), ({"limit": "ten"}, "limit"),
        ({"status": "busy"}, "status"), ({"agent": "a"}, "agent"), ({"owner": "x"}, "owner"),
    ],
    ids=str,
)  # fmt: skip
async def test_a_query_that_is_not_ours_is_refused(query: Json, field: str) -> None:
    """422 naming the parameter; a client asks for nobody else's sessions."""
    async with api() as server:
        refused = await server.get(CLIENT, **query)
        assert code(refused) == (422, "invalid_input")
        assert refused.json()["field"] == field
