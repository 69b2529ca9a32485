"""A chat page without a screen: what a frontend keeps, and what it sends.

It holds the messages it shows and the questions it was asked, posts a `RunAgentInput` for
everything a person does, and prints what comes back. The examples play with it; a
browser does the same with `@ag-ui/client`.
"""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import httpx
import uvicorn

from agui_server import create_app
from engine import Engine

Message = dict[str, Any]


@asynccontextmanager
async def page(engine: Engine, agent: str) -> AsyncGenerator["Page"]:
    """Serve an engine's agents to one page, from a free port of this machine."""
    server = uvicorn.Server(uvicorn.Config(create_app(engine), log_level="error"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        free.listen()  # whoever calls before the server is up waits
        serving = asyncio.create_task(server.serve(sockets=[free]))
        address = "http://{}:{}".format(*free.getsockname())
        async with httpx.AsyncClient(base_url=address, timeout=60) as http:
            yield Page(http, agent)
        server.should_exit = True
        await serving


class Page:
    """One conversation, as a page sees it."""

    def __init__(self, http: httpx.AsyncClient, agent: str) -> None:
        self.http = http
        self.agent = agent
        self.messages: list[Message] = []
        self.questions: list[dict[str, Any]] = []
        self.session_id = ""
        self.is_hearing = asyncio.Event()
        self._turns: list[str] = []
        self._runs = count(1)

    # ------------------------------------------------- what a person does

    async def say(self, text: str) -> None:
        """Type a message."""
        print(f"person: {text}")
        number = len([m for m in self.messages if m["role"] == "user"]) + 1
        self.messages.append({"id": f"u{number}", "role": "user", "content": text})
        await self.run()

    async def edit(self, text: str) -> list[Message]:
        """Write another message in the place of the last; return the conversation that is left."""
        print(f"person edits: {text}")
        left = self.messages
        place = max(index for index, m in enumerate(left) if m["role"] == "user")
        edited = {"id": f"{left[place]['id']}-edited", "role": "user", "content": text}
        self.messages = [*left[:place], edited]
        await self.run()
        return left

    async def show(self, messages: Sequence[Message]) -> None:
        """Show another branch of the conversation."""
        print("person: (goes back to the other branch)")
        self.messages = list(messages)
        await self.run()

    async def answer(self, payload: Any) -> None:
        """Answer the open question."""
        print(f"person answers: {json.dumps(payload)}")
        [question, *_] = self.questions
        entry = {"interruptId": question["id"], "status": "resolved", "payload": payload}
        await self.run(resume=[entry])

    async def answer_as(self, person: str, payload: Any) -> None:
        """Let a backend say what one of its people answered, and look what came of it."""
        print(f"{person} answers: {json.dumps(payload)}")
        [question, *_] = self.questions
        url = f"/api/machine/sessions/{self.session_id}/interrupts/{question['id']}/answer"
        responder = {"channel": "chat", "user": person}
        answered = await self.http.post(url, json={"payload": payload, "responder": responder})
        answered.raise_for_status()
        await self._settled()
        await self.run()

    async def _settled(self) -> None:
        """Wait until the agent has done what it was let do."""
        while True:
            shown = await self.http.get("/api/client/sessions/thread")
            if shown.json()["status"] != "running":
                return
            await asyncio.sleep(0.02)

    async def stop(self) -> None:
        """Press Stop."""
        print("person: (stops it)")
        await self.http.post("/api/client/sessions/thread/cancel")

    # --------------------------------------------------------- one request

    async def run(self, resume: Sequence[dict[str, Any]] = ()) -> None:
        """Send the conversation, and read the stream to its end."""
        body: dict[str, Any] = {
            "threadId": "thread",
            "runId": f"run-{next(self._runs)}",
            "protocolVersion": "1.0",
            "messages": self.messages,
            "tools": [],
            "context": [],
            "state": {},
            "forwardedProps": {},
        }
        if resume:
            body["resume"] = list(resume)
        url = f"/api/channels/ag-ui/agents/{self.agent}/run"
        self.questions = []
        async with self.http.stream("POST", url, json=body) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    self._take(json.loads(line.removeprefix("data: ")))

    def _take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "RUN_STARTED":
                self.session_id = event["metadata"]["agui-server/sessionId"]
                self._note_turn(event["metadata"].get("agui-server/turnId"))
            case "TEXT_MESSAGE_START":
                self.messages.append({"id": event["messageId"], "role": "assistant", "content": ""})
            case "TEXT_MESSAGE_CONTENT":
                self.messages[-1]["content"] += event["delta"]
                self.is_hearing.set()
            case "TEXT_MESSAGE_END":
                print(f"agent: {self.messages[-1]['content']}")
            case "TOOL_CALL_START":
                self._call(event)
            case "TOOL_CALL_ARGS":
                self.messages[-1]["toolCalls"][-1]["function"]["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                print(f"tool: {event['content']}")
                named = {"id": event["messageId"], "role": "tool"}
                called = {"toolCallId": event["toolCallId"], "content": event["content"]}
                self.messages.append(named | called)
            case "MESSAGES_SNAPSHOT":
                self._restate(event["messages"])
            case "CUSTOM":
                print(f"warning: {event['value']['code']}")
            case "RUN_FINISHED":
                self._finish(event.get("outcome", {}))
            case "RUN_ERROR":
                print(f"error: {event['code']}")
            case _:
                return

    def _restate(self, messages: list[Message]) -> None:
        known = {message["id"] for message in self.messages}
        for message in messages:
            if message["id"] not in known and message["role"] in {"assistant", "tool"}:
                who = "agent" if message["role"] == "assistant" else "tool"
                print(f"{who}: {message['content']}")
        self.messages = messages

    def _note_turn(self, turn_id: str | None) -> None:
        if turn_id is None:
            return
        if turn_id not in self._turns:
            self._turns.append(turn_id)
        print(f"(turn {self._turns.index(turn_id) + 1})")

    def _call(self, event: dict[str, Any]) -> None:
        parent, call_id = event["parentMessageId"], event["toolCallId"]
        if not self.messages or self.messages[-1]["id"] != parent:
            self.messages.append({"id": parent, "role": "assistant", "toolCalls": []})
        function = {"name": event["toolCallName"], "arguments": ""}
        calls = self.messages[-1].setdefault("toolCalls", [])
        calls.append({"id": call_id, "type": "function", "function": function})

    def _finish(self, outcome: dict[str, Any]) -> None:
        self.questions = outcome.get("interrupts", [])
        for question in self.questions:
            print(f"agent asks: {question.get('message')}")
        if outcome.get("type") == "cancelled":
            print("(cancelled)")
