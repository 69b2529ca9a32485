"""The agents of `agui demo`: small, offline, and each for one thing."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from engine import Agent, DecisionRequest, FunctionTool, Tool, ToolError, interrupt
from engine.core.messages import members

_WEATHER = ("sunny", "cloudy", "windy", "raining")

_ZONES = {
    "lisbon": "Europe/Lisbon",
    "london": "Europe/London",
    "paris": "Europe/Paris",
    "berlin": "Europe/Berlin",
    "new york": "America/New_York",
    "san francisco": "America/Los_Angeles",
    "tokyo": "Asia/Tokyo",
    "sydney": "Australia/Sydney",
}


def agents(outbox: Path | None) -> Sequence[Agent]:
    """Return the demo's agents. `outbox`: a file that gets one line for each email sent."""
    send_email = _email(outbox)
    return (_assistant(), _mailer(), _operator(send_email), _secretary(send_email))


# -------------------------------------------------------------- assistant


def get_weather(city: str) -> str:
    """Say what the weather is like in a city."""
    kind = _WEATHER[sum(map(ord, city.lower())) % len(_WEATHER)]
    degrees = 8 + sum(map(ord, city)) % 20
    return f"It is {kind} in {city}, {degrees} °C."


def get_time(city: str) -> str:
    """Say what time it is in a city."""
    zone = _ZONES.get(city.strip().lower())
    if zone is None:
        message = f"no time zone known for {city}; known are {', '.join(sorted(_ZONES))}"
        raise ToolError(message)
    try:
        now = datetime.now(ZoneInfo(zone))
    except ZoneInfoNotFoundError:
        now = datetime.now(UTC)
    return f"It is {now:%H:%M} in {city} ({now.tzname()})."


def _assistant() -> Agent:
    return Agent(
        "assistant",
        name="Assistant",
        description="Tells the weather and the time. It asks nobody.",
        tools=[get_weather, get_time],
    )


# ----------------------------------------------------------------- mailer


_SEND_EMAIL: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "subject": {"type": "string"}},
    "required": ["to", "subject"],
}


def decide(request: DecisionRequest) -> Any:
    """Pause before a sensitive action, then act on the person's answer."""
    trigger, proposed = request.trigger, request.proposed

    if trigger.type == "tool.execute" and trigger.name == "send_email":
        return {
            "actions": [
                {
                    "type": "interrupt",
                    "reason": "confirm",
                    "payload": {"message": "Send the email?"},
                }
            ]
        }

    if trigger.type == "interrupt.resumed":
        if members(trigger.payload).get("approved"):
            sent = {"content": [{"type": "text", "text": "sent"}]}
            return {"actions": [{"type": "tool.result", "result": sent}]}
        return {"actions": [{"type": "tool.error", "error": "declined"}]}

    return proposed


def _mailer() -> Agent:
    return Agent(
        "mailer",
        name="Mailer",
        description="Asks before it sends. Its worker decides everything and owns the tool.",
        tools=[Tool("send_email", "Send an email.", _SEND_EMAIL)],
        worker=decide,
    )


# --------------------------------------------------------------- operator


def _email(outbox: Path | None) -> Callable[[str, str], str]:
    def send_email(to: str, subject: str) -> str:
        """Send an email."""
        if outbox is not None:
            with outbox.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"to": to, "subject": subject}) + "\n")
        return f"sent to {to}"

    return send_email


def _operator(send_email: Callable[[str, str], str]) -> Agent:
    operator = Agent(
        "operator",
        name="Operator",
        description="Asks before it sends. Its worker only gates the tool; the engine runs it.",
        tools=[send_email],
    )

    @operator.decide(on=("tool.execute",))
    def ask_first(request: DecisionRequest) -> Any:
        if request.trigger.type == "tool.execute" and request.trigger.name == "send_email":
            return interrupt("confirm", payload={"message": "Send the email?"})
        return request.proposed

    return operator


# -------------------------------------------------------------- secretary


def _secretary(send_email: Callable[[str, str], str]) -> Agent:
    return Agent(
        "secretary",
        name="Secretary",
        description="Asks before it sends. It has no worker: its tool says that it needs approval.",
        tools=[FunctionTool(send_email, approve=True)],
    )
