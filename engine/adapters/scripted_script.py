r"""The scripted model's language: lines of a user message that start with `/`.

    /say TEXT                  stream a text, word by word
    /split TEXT                the same, one UTF-16 unit at a time
    /tokens N [every MS]       stream `word0 word1 …`, one delta each
    /think TEXT                reason, word by word
    /tool NAME {json}          ask for a tool call; the JSON is passed on as written
    /fail CODE [times N]       fail with an HTTP status: always, or the first N attempts
    /hang                      never answer
    /then …                    one of these again, after the tools of this step ended

Lines run in their order; others are ignored. A TEXT in quotes is a JSON string, so
that `"\u2028"` and half an emoji, `"\ud83d"`, can be written.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

MAX_TOKENS = 1_000_000
"""Most tokens of one `/tokens`: anybody may type a number into a demo."""

MAX_PAUSE_MS = 60_000
"""Longest pause between two tokens; `/hang` is for longer ones."""

_MIN_STATUS, _MAX_STATUS = 400, 599
_TOKENS = re.compile(r"(\d{1,7})(?:\s+every\s+(\d{1,5}(?:\.\d+)?)(?:\s*ms)?)?")
_FAIL = re.compile(r"(\d{3})(?:\s+times\s+(\d{1,6}))?")


@dataclass(frozen=True, slots=True)
class Say:
    """Stream a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Split:
    """Stream a text one UTF-16 unit at a time: an emoji is two lone surrogates."""

    text: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Stream `count` words, with a pause before each."""

    count: int
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Think:
    """Stream reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallTool:
    """Ask for a tool call. `arguments` is raw text; empty: none are sent."""

    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail as a provider does, with an HTTP status. `times=None`: every attempt."""

    status: int
    times: int | None = None


@dataclass(frozen=True, slots=True)
class Hang:
    """Never answer."""


Directive: TypeAlias = Say | Split | Tokens | Think | CallTool | Fail | Hang
Script: TypeAlias = Mapping[int, list[Directive]]
"""The directives of each step. Step 0 is the first reply, n the one after n rounds of tools."""


def parse(text: str) -> Script:
    """Return the script in a user's text; an empty one when no line starts with `/`.

    A line that makes no sense becomes a :class:`Say` that says so.
    """
    script: dict[int, list[Directive]] = {}
    if "/" not in text:
        return script
    # Not `splitlines`: U+2028 and its like belong to a line's text.
    for raw in text.split("\n"):
        line = raw.strip(" \t\r")
        if not line.startswith("/"):
            continue
        step = 0
        verb, rest = _verb_of(line)
        while verb == "then":
            step += 1
            verb, rest = _verb_of(rest)
        reader = _READERS.get(verb)
        directive = reader(rest) if reader else None
        script.setdefault(step, []).append(directive or _complaint(line, reader is not None))
    return script


def _verb_of(line: str) -> tuple[str, str]:
    verb, _, rest = line.partition(" ")
    return verb.removeprefix("/") if verb.startswith("/") else "", rest.strip(" \t")


def _complaint(line: str, is_known: bool) -> Say:  # noqa: FBT001 - a private word
    known = " ".join(f"/{verb}" for verb in (*_READERS, "then"))
    problem = "I cannot read this line" if is_known else "I do not know this directive"
    return Say(f"{problem}: {line}. I know {known}.")


def _text(rest: str) -> str:
    if rest.startswith('"') and rest.endswith('"'):
        try:
            decoded = json.loads(rest)
        except ValueError:
            return rest  # quotes of somebody's prose
        return str(decoded)
    return rest


def _read_tokens(rest: str) -> Tokens | None:
    found = _TOKENS.fullmatch(rest)
    if found is None:
        return None
    count, pause_ms = int(found[1]), float(found[2] or 0)
    if count > MAX_TOKENS or pause_ms > MAX_PAUSE_MS:
        return None
    return Tokens(count, pause_ms / 1000)


def _read_tool(rest: str) -> CallTool | None:
    name, _, arguments = rest.partition(" ")
    return CallTool(name, arguments.strip(" \t")) if name else None


def _read_fail(rest: str) -> Fail | None:
    found = _FAIL.fullmatch(rest)
    if found is None or not _MIN_STATUS <= int(found[1]) <= _MAX_STATUS:
        return None
    return Fail(int(found[1]), None if found[2] is None else int(found[2]))


_READERS: Mapping[str, Callable[[str], Directive | None]] = {
    "say": lambda rest: Say(_text(rest)),
    "split": lambda rest: Split(_text(rest)),
    "tokens": _read_tokens,
    "think": lambda rest: Think(_text(rest)),
    "tool": _read_tool,
    "fail": _read_fail,
    "hang": lambda rest: None if rest else Hang(),
}
"""How the rest of a line is read, by its first word. `None`: it cannot be."""
