"""A server under test, spoken to through its client and machine APIs."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from engine import Agent, DecisionRequest
from engine.core.events import SessionInterruptResumed
from tests.agui.given import Server, serving, until

Json = dict[str, Any]

CLIENT = "/api/client/sessions"
MACHINE = "/api/machine/sessions"


class Api:
    """Requests to one server, each answered with a response that is checked for its kind."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.engine = server.engine

    async def get(self, path: str, **query: Any) -> httpx.Response:
        """Get a path below `/api`."""
        return checked(await self.server.client.get(path, params=query))

    async def post(self, path: str, body: Any = None) -> httpx.Response:
        """Post a JSON body."""
        return checked(await self.server.client.post(path, json=body))

    async def input(self, sent: Json, **names: Any) -> httpx.Response:
        """Send a client's input; the session is thread `t` of agent `a`, unless it is named."""
        names = names or {"agent_id": "a", "thread_id": "t"}
        return await self.post(f"{CLIENT}/input", {**names, "input": sent})

    async def say(self, text: str, **names: Any) -> httpx.Response:
        """Say something."""
        return await self.input(message(text), **names)

    async def submit(self, payload: Json, **names: Any) -> httpx.Response:
        """Send an input as a machine, for a person called `ada`."""
        wanted = {"agent_id": "a", "identity": {"id": "ada"}, **names}
        return await self.post(f"{MACHINE}/submit", {**wanted, "payload": payload})

    async def show(self, address: str = "t") -> Json:
        """Return a session as its client sees it."""
        return (await self.get(f"{CLIENT}/{address}")).json()

    async def until(self, status: str) -> None:
        """Wait until the session that was updated last has a status."""

        async def reached() -> bool:
            rows = await self.engine.store.sessions(limit=1)
            return bool(rows) and rows[0].status == status

        await until(reached)

    async def until_shown(self, condition: Callable[[Json], bool], address: str = "t") -> Json:
        """Wait until a session looks a certain way; return it."""
        shown: list[Json] = []

        async def reached() -> bool:
            shown.append(await self.show(address))
            return condition(shown[-1])

        await until(reached)
        return shown[-1]

    async def until_idle(self) -> None:
        """Wait until nothing runs and nobody is asked."""
        await self.until("idle")

    async def asked(self, address: str = "t") -> Json:
        """Wait until a person is asked; return the question."""
        await self.until("interrupted")
        return (await self.show(address))["interrupts"][0]

    async def seq(self) -> int:
        """Return how much is recorded, in all sessions together."""
        return sum(row.head_seq for row in await self.engine.store.sessions(limit=100))


def checked(response: httpx.Response) -> httpx.Response:
    """Return a response that is JSON when it went well, and a problem document when not."""
    kind = response.headers["content-type"]
    if response.is_success:
        assert kind == "application/json"
    else:
        assert kind == "application/problem+json"
        problem = response.json()
        assert problem["status"] == response.status_code
        assert {"type", "title", "code", "detail"} <= problem.keys()
    return response


def code(response: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    return response.status_code, response.json()["code"]


def message(text: str, **more: Any) -> Json:
    """Return an input that says something."""
    return {"type": "client.message", "message": {"content": text, **more}}


def append(*messages: Json) -> Json:
    """Return an input of several messages."""
    return {"type": "client.append", "messages": list(messages)}


def view(*messages: Json, **more: Any) -> Json:
    """Return a view of a conversation."""
    return {"type": "client.messages", "messages": list(messages), **more}


def user(message_id: str, text: str) -> Json:
    """Return what a person says."""
    return {"id": message_id, "role": "user", "content": text}


def look(what: str) -> str:
    """Look at something."""
    return f"seen {what}"


LOOK = '/tool look {"what": "it"}'
"""Says to the scripted model: call the tool."""


def asking(payload: Any, *, answer_by: str = "client") -> Agent:
    """Return agent `a`, which asks somebody before its tool runs."""
    agent = Agent("a", tools=[look])

    @agent.decide(on=("tool.execute",))
    def ask(_request: DecisionRequest) -> Any:
        return {
            "actions": [
                {
                    "type": "interrupt",
                    "reason": "confirm",
                    "payload": payload,
                    "answer_by": answer_by,
                }
            ]
        }

    return agent


ASK_PAGE = '/tool ask_page {"q": "where?"}'
PAGE_TOOL = {"name": "ask_page", "description": "Ask the page.", "parameters": {"type": "object"}}


async def waiting(server: Api) -> str:
    """Let the model call the client's tool; return the call's id."""
    sent = {**message(ASK_PAGE), "client": {"tools": [PAGE_TOOL]}}
    assert (await server.input(sent)).status_code == 202
    await server.until("waiting")
    return (await server.show())["messages"][-1]["tool_calls"][0]["id"]


async def texts(server: Api, address: str = "t") -> list[Any]:
    """Return what the messages of the active path say."""
    return [m.get("content") for m in (await server.show(address))["messages"]]


OPTIONS = [
    {"label": "Yes", "value": {"approved": True}, "style": "primary"},
    {"label": "No", "value": {"approved": False}},
]
CHOICE: Json = {"message": "Look?", "metadata": {"options": OPTIONS}}
FORM: Json = {
    "message": "Look?",
    "responseSchema": {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}},
        "required": ["approved"],
    },
}


async def answer(server: Api, interrupt_id: str, body: Any, address: str = "t") -> Any:
    """Answer as a button does."""
    return await server.post(f"{CLIENT}/{address}/interrupts/{interrupt_id}/answer", body)


async def resumed(server: Api) -> list[SessionInterruptResumed]:
    """Return what is recorded of the answers to the session that was updated last."""
    [row, *_] = await server.engine.store.sessions(limit=1)
    log = await server.engine.store.events(row.session_id)
    return [e.body for e in log if isinstance(e.body, SessionInterruptResumed)]


async def one(server: Api, text: str = "/say hi", **names: Any) -> str:
    """Let a person's session exist; return its id."""
    return (await server.submit(message(text), **names)).json()["session_id"]


@asynccontextmanager
async def api(*agents: Agent, **more: Any) -> AsyncGenerator[Api]:
    """Serve agents from memory; agent `a` talks and asks nobody, unless others are given."""
    async with serving(*(agents or (Agent("a"),)), **more) as server:
        yield Api(server)
