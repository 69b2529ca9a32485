"""What the scripted model answers when nobody directs it: a small demo assistant.

It asks for a tool only when the request offers it, and understands three wishes:
an email, the weather, the time.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from engine.adapters.scripted_script import CallTool, Directive, Say
from engine.core.messages import Json
from engine.core.ports import ModelRequest

_QUOTE_LENGTH = 200
"""How much of a long message is quoted back."""

_ABOUT = r"(?:\s*:\s+|\s+(?:about|regarding|re|saying|with (?:the )?subject)\s+)(?P<subject>.+)"
_EMAILS = (
    re.compile(
        rf"\bsend\s+(?!an?\s+e?-?mail)(?P<to>\S.*?)\s+an?\s+e?-?mail{_ABOUT}",
        re.IGNORECASE | re.DOTALL,
    ),
    re.compile(rf"\be?-?mail\s+(?:to\s+)?(?P<to>\S.*?){_ABOUT}", re.IGNORECASE | re.DOTALL),
)
_WEATHER = re.compile(
    r"\bweather\b.*?\b(?:in|for|at)\s+(?P<city>[^?.!,;\n]+)", re.IGNORECASE | re.DOTALL
)
_TIME = re.compile(r"\btime\b.*?\b(?:in|at)\s+(?P<city>[^?.!,;\n]+)", re.IGNORECASE | re.DOTALL)
_ABOUT_ME = re.compile(r"\bwhat (?:do|can) you (?:know|see|remember)\b", re.IGNORECASE)

_WHEN = re.compile(
    r"\s+(?:today|tomorrow|tonight|now|right now|please|like|at the moment)\s*$", re.IGNORECASE
)


def answer(text: str, attachments: str, request: ModelRequest) -> list[Directive]:
    """Return what to do about a user's words.

    `attachments` names what came beside the text, such as `(1 image)`.
    """
    offered = {tool["name"] for tool in request.tools}
    for name, wish in _WISHES.items():
        arguments = wish(text) if name in offered else None
        if arguments is not None:
            return [CallTool(name, json.dumps(arguments, ensure_ascii=False))]
    if _ABOUT_ME.search(text):
        return [Say(_knowledge(request))]
    return [Say(_small_talk(text, attachments, request.tools))]


def _email(text: str) -> dict[str, str] | None:
    found = next(filter(None, (pattern.search(text) for pattern in _EMAILS)), None)
    if found is None:
        return None
    return {"to": _address(found["to"]), "subject": _trim(found["subject"])}


def _weather(text: str) -> dict[str, str] | None:
    return _city(_WEATHER.search(text))


def _time(text: str) -> dict[str, str] | None:
    return _city(_TIME.search(text))


_Wish: TypeAlias = Callable[[str], dict[str, str] | None]

_WISHES: Mapping[str, _Wish] = {
    "send_email": _email,
    "get_weather": _weather,
    "get_time": _time,
}
"""The tools this assistant knows how to fill, by name."""

_HINTS: Mapping[str, str] = {
    "send_email": "email ada about lunch",
    "get_weather": "weather in Lisbon",
    "get_time": "what time is it in Tokyo",
}


def _address(who: str) -> str:
    """Return the address in a person's words; a bare name lives at example.com."""
    written = re.search(r"[^\s<>\"']+@[^\s<>\"',;]+", who)
    if written is not None:
        return written[0]
    words = re.findall(r"[^\W_]+", who.lower())
    return ".".join(words) + "@example.com"


def _city(found: re.Match[str] | None) -> dict[str, str] | None:
    if found is None:
        return None
    city = _trim(_WHEN.sub("", found["city"]).removeprefix("the "))
    return {"city": city} if city else None


def _trim(words: str) -> str:
    return words.strip(" \t\r\n.!?\"'“”")


def _knowledge(request: ModelRequest) -> str:
    lines = [f"{entry.get('description')}: {entry.get('value')}" for entry in request.context]
    if request.system:
        lines.append(f"My instructions: {request.system}")
    if not lines:
        return "Nothing but what you tell me here."
    return "\n".join(["This is what I was given:", *lines])


def _small_talk(text: str, attachments: str, tools: Sequence[Json]) -> str:
    quoted = text.strip()
    if len(quoted) > _QUOTE_LENGTH:
        quoted = quoted[:_QUOTE_LENGTH].rstrip() + "…"
    said = " ".join(part for part in (f"“{quoted}”" if quoted else "", attachments) if part)
    opening = f"You said {said}." if said else "Hello!"
    hints = [f"“{_HINTS[tool['name']]}”" for tool in tools if tool["name"] in _HINTS]
    hints.append("a line such as “/tokens 20”")
    return f"{opening} I am a scripted model and work offline. Try {' or '.join(hints)}."
