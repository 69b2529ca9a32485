"""The scripted model: offline, deterministic, streaming.

It answers from the last user message. Lines of it that start with `/` direct it
(`scripted_script.py` lists them); without any it is a small demo assistant
(`scripted_chat.py`). Everything it does follows from the request, so the same
request is answered the same way on every machine.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import cast

from engine.adapters.scripted_chat import answer
from engine.adapters.scripted_script import (
    CallTool,
    Directive,
    Fail,
    Hang,
    Say,
    Split,
    Think,
    Tokens,
    parse,
)
from engine.core.errors import ModelError
from engine.core.messages import (
    AssistantMessage,
    Json,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolMessage,
    Usage,
    UserMessage,
)
from engine.core.ports import (
    Finish,
    ModelDelta,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)

_WORDS = re.compile(r"\S+\s*|\s+")
_TOO_MANY_REQUESTS = 429
_REQUEST_TIMEOUT = 408
_SERVER_ERROR = 500


class ScriptedModel:
    """A :class:`engine.core.ports.Model` without a provider.

    It holds nothing, so one instance serves any number of calls, and a stream can
    be closed at any time. Before each delta it lets the event loop run.
    """

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Stream one reply; it ends with :class:`Finish`, its usage counted in words.

        Raises:
            ModelError: the script says `/fail`. 429 is `rate_limited`, anything else
                `provider_error`; 429, 408 and 5xx are retryable.
        """
        directives = _directives(request)
        calls = 0
        has_text = False
        for directive in directives:
            pause_s = 0.0
            match directive:
                case Fail():
                    _fail(directive, request.attempt)
                    continue
                case Hang():
                    await asyncio.Event().wait()
                    continue
                case CallTool():
                    deltas = _tool_call(directive, calls)
                    calls += 1
                case Think():
                    deltas = map(ReasoningDelta, _WORDS.findall(directive.text))
                case Say() | Split() | Tokens():
                    if has_text:
                        yield TextDelta("\n")
                    has_text = True
                    deltas = map(TextDelta, _pieces(directive))
                    pause_s = directive.pause_s if isinstance(directive, Tokens) else 0.0
            for delta in deltas:
                await asyncio.sleep(pause_s)
                yield delta
        yield Finish(usage=(_usage(request, directives),))


def _directives(request: ModelRequest) -> Sequence[Directive]:
    """Return what this reply does: a step of the script, or the assistant's own idea."""
    start = _last_user(request.messages)
    content = request.messages[start].content if start is not None else ""
    text, attachments = _read(cast("str | list[Json]", content))
    script = parse(text)
    since = request.messages[start + 1 :] if start is not None else request.messages
    asked = [m for m in since if isinstance(m, AssistantMessage) and m.tool_calls]
    step = len(asked)
    if step in script:
        return script[step]
    if asked:
        return [Say(_report(asked[-1], since))]
    return [] if script else answer(text, attachments, request)


def _last_user(messages: Sequence[Message]) -> int | None:
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], UserMessage):
            return index
    return None


def _read(content: str | list[Json]) -> tuple[str, str]:
    """Return the text of a message's content, and what came beside it: `(2 images)`."""
    if isinstance(content, str):
        return content, ""
    texts = [str(part.get("text", "")) for part in content if part.get("type") == "text"]
    others = Counter(str(part.get("type")) for part in content if part.get("type") != "text")
    names = [f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in others.items()]
    return "\n".join(texts), f"({', '.join(names)})" if names else ""


def _report(asked: AssistantMessage, since: Iterable[Message]) -> str:
    """Say what each tool call of a message came to, a line each."""
    results = {m.tool_call_id: m for m in since if isinstance(m, ToolMessage)}
    lines: list[str] = []
    for call in asked.tool_calls:
        result = results.get(call.id)
        if result is None:
            lines.append(f"{call.name} has no result")
        elif result.error is not None:
            lines.append(f"{call.name} failed: {result.error}")
        else:
            text, attachments = _read(result.content)
            lines.append(f"{call.name}: {' '.join(filter(None, (text, attachments)))}")
    return "\n".join(lines)


def _pieces(directive: Say | Split | Tokens) -> Iterator[str]:
    match directive:
        case Say(text):
            return iter(_WORDS.findall(text))
        case Split(text):
            units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
            return map(chr, units)
        case Tokens(count):
            return (f"word{index} " for index in range(count))


def _tool_call(directive: CallTool, index: int) -> list[ToolCallDelta]:
    """Return the call's name, then its arguments in up to two pieces."""
    half = (len(directive.arguments) + 1) // 2
    pieces = (directive.arguments[:half], directive.arguments[half:])
    begin = ToolCallDelta(index, name=directive.name)
    return [begin, *(ToolCallDelta(index, piece) for piece in pieces if piece)]


def _fail(directive: Fail, attempt: int) -> None:
    if directive.times is not None and attempt > directive.times:
        return
    status = directive.status
    try:
        message = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        message = str(status)
    if status == _TOO_MANY_REQUESTS:
        raise ModelError("rate_limited", message, retryable=True)
    is_passing = status == _REQUEST_TIMEOUT or status >= _SERVER_ERROR
    raise ModelError("provider_error", message, retryable=is_passing)


# -------------------------------------------------------------------- usage


def _usage(request: ModelRequest, directives: Iterable[Directive]) -> Usage:
    reasoning = sum(len(d.text.split()) for d in directives if isinstance(d, Think))
    return Usage(
        model="scripted",
        provider="scripted",
        input_tokens=_words(request.system) + sum(map(_input_words, request.messages)),
        output_tokens=sum(map(_output_words, directives)),
        reasoning_tokens=reasoning or None,
    )


def _input_words(message: Message) -> int:
    match message:
        case UserMessage() | ToolMessage():
            return _words(_read(message.content)[0])
        case AssistantMessage():
            return _words(message.content) + sum(_words(c.arguments) for c in message.tool_calls)
        case SystemMessage() | ReasoningMessage():
            return _words(message.content)
        case _:
            return 0  # activity: a model never sees it


def _output_words(directive: Directive) -> int:
    match directive:
        case Say(text) | Split(text) | Think(text):
            return _words(text)
        case Tokens(count):
            return count
        case CallTool(name, arguments):
            return _words(name) + _words(arguments)
        case Fail() | Hang():
            return 0


def _words(text: str | None) -> int:
    return len(text.split()) if text else 0
