"""A server for tests: the demo's agents, and agents that each do one awkward thing.

    python -m tests.e2e.app --port 8123 --db test.db --outbox test.outbox

| agent | does |
| --- | --- |
| `chooser` | asks with two options before it publishes |
| `former` | asks with a `responseSchema` before it publishes |
| `many` | holds all calls of a reply with interrupts raised in one response |
| `plain` | asks nobody; tools with and without arguments |
| `patient` | tries a failing model three times, at once |
| `flaky` | the operator of the demo, over a model whose `/fail … times N` counts across turns |
"""

import argparse
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn

from agui_server import create_app
from agui_server.demo import agents as demo_agents
from engine import Agent, DecisionRequest, Engine, interrupt, tool_error, tool_run
from engine.adapters.scripted import ScriptedModel
from engine.core.ports import ModelDelta, ModelRequest
from engine.core.worker import RetryOverride

ONCE = RetryOverride(run=60, total=60, attempts=1)
AT_ONCE = RetryOverride(run=60, total=60, attempts=3, base=1.0, max=0.01)

YES_OR_NO = [{"label": "Yes, send", "value": "yes"}, {"label": "No", "value": "no"}]

APPROVAL: dict[str, Any] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "note": {"type": "string", "maxLength": 20}},
    "required": ["approved"],
    "additionalProperties": False,
}


# ------------------------------------------------------------------- tools


def ping() -> str:
    """Answer."""
    return "pong"


def echo(text: str) -> str:
    """Say a text again."""
    return text


def broken() -> str:
    """Fail as a buggy tool does."""
    raise RuntimeError("this must never reach a client")


def publish(title: str) -> str:
    """Publish a page."""
    return f"published {title}"


# ------------------------------------------------------------------ agents


def _chooser() -> Agent:
    agent = Agent("chooser", tools=[publish])

    @agent.decide(on=("tool.execute", "interrupt.resumed"))
    def decide(request: DecisionRequest) -> Any:
        trigger = request.trigger
        if trigger.type == "tool.execute":
            asked = {"message": "Publish it?", "metadata": {"options": YES_OR_NO}}
            return interrupt("choice", payload=asked)
        if trigger.type == "interrupt.resumed":
            return tool_run() if trigger.answer == "yes" else tool_error("not published")
        return request.proposed

    return agent


def _former() -> Agent:
    agent = Agent("former", tools=[publish])

    @agent.decide(on=("tool.execute",))
    def decide(_request: DecisionRequest) -> Any:
        return interrupt("form", payload={"message": "Publish it?", "responseSchema": APPROVAL})

    return agent


def _many() -> Agent:
    agent = Agent("many", tools=[publish])

    @agent.decide(on=("tool.execute",))
    def decide(request: DecisionRequest) -> Any:
        asked = {question.tool_call_id for question in request.interrupts}
        return [
            interrupt("confirm", payload={"message": f"{call.arguments}?", "toolCallId": call.id})
            for call in request.calls
            if call.name == "publish" and call.id not in asked
        ]

    return agent


def _flaky(outbox: Path) -> Agent:
    def send_email(to: str, subject: str) -> str:
        """Send an email."""
        with outbox.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"to": to, "subject": subject}) + "\n")
        return f"sent to {to}"

    agent = Agent("flaky", llm="outage", tools=[send_email], retry={"llm": ONCE})

    @agent.decide(on=("tool.execute",))
    def ask_first(_request: DecisionRequest) -> Any:
        return interrupt("confirm", payload={"message": "Send the email?"})

    return agent


class Outage:
    """The scripted model, for which a second turn's call is another attempt of the first's.

    So `/fail 500 times 1` is a provider that is down once and up again when asked anew.
    """

    def __init__(self) -> None:
        self._model = ScriptedModel()
        self._asked = Counter[tuple[str, int]]()

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """Stream one reply."""
        key = (request.session_id, len(request.messages))
        self._asked[key] += 1
        return self._model.stream(replace(request, attempt=self._asked[key]))


def agents(outbox: Path) -> Sequence[Agent]:
    """Return all agents of this server."""
    return (
        *demo_agents(outbox),
        _chooser(),
        _former(),
        _many(),
        Agent("plain", tools=[ping, echo, broken]),
        Agent("patient", tools=[ping], retry={"llm": AT_ONCE}),
        _flaky(outbox),
    )


def main() -> None:
    """Serve until killed."""
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--db", type=Path, required=True)
    options.add_argument("--outbox", type=Path, required=True)
    chosen = options.parse_args()
    engine = Engine(agents=agents(chosen.outbox), db=chosen.db, models={"outage": Outage()})
    uvicorn.run(
        create_app(engine),
        host="127.0.0.1",
        port=chosen.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=5,
    )


if __name__ == "__main__":
    main()
