"""The body of a `POST …/run`: bytes in, a :class:`RunRequest` or a refusal out. Pure.

Two steps, because an input carries the whole history each time:

1. :func:`parse_run` reads everything but the messages' insides. It tells whose thread it
   is, which run, and the digest that recognises a retried POST.
2. :meth:`RunRequest.history` builds the messages, taking those that are recorded from
   the record. Both are done before a stream is opened: whatever is malformed is an
   HTTP error.

Source: `agui.md` sections 1, 2 and 5; `agui-1.0.md` B and H.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agui_server.agui.inbound_messages import RawMessage, read_messages, scan
from agui_server.agui.wire import BadRequest, Fields, Notice, Notices, decode, digest, refuse
from engine.core.messages import ClientContext, Json, Message

_INPUT = frozenset(
    {
        "threadId", "runId", "protocolVersion", "parentRunId", "messages", "tools", "context",
        "state", "forwardedProps", "resume",
    }
)  # fmt: skip
_TOOL = frozenset({"name", "description", "parameters", "metadata"})
_CONTEXT = frozenset({"description", "value"})
_RESUME = frozenset({"interruptId", "status", "payload", "metadata"})

_DIGESTED = ("messages", "resume", "tools", "context", "state", "forwardedProps")
"""What makes two inputs the same. The ids are compared beside it."""

_VERSION = re.compile(r"(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeEntry:
    """One answer to an interrupt, as sent. An absent payload is `None`."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The messages of an input, in order, and what was left out of them."""

    messages: tuple[Message, ...]
    notices: tuple[Notice, ...]


def _nothing_recorded(_message_id: str) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A `RunAgentInput`, read. Its messages are read by :meth:`history`.

    `legacy`: the client is older than 1.0 (`agui.md` 5). `digest` is that of the input as
    it was sent, in any order of keys and without its ids: same thread, same run id and
    same digest is a retried POST. `client.instructions` is empty: the engine fills it.
    """

    thread_id: str
    run_id: str
    protocol_version: str | None
    legacy: bool
    parent_run_id: str | None
    raw_messages: tuple[RawMessage, ...]
    answers: tuple[ResumeEntry, ...]
    client: ClientContext
    digest: str
    notices: tuple[Notice, ...]

    @property
    def message_ids(self) -> tuple[str, ...]:
        """The messages' ids in order, for a look at which of them are recorded."""
        return tuple(raw["id"] for _, raw in self.raw_messages)

    def history(self, recorded: Callable[[str], Message | None] = _nothing_recorded) -> History:
        """Build the messages; those that `recorded` knows are taken from it, unread.

        `recorded` may know fewer than there are (a cache): the rest is read as if new.
        A `dict`'s `get` will do.

        Raises:
            BadRequest: 422 `invalid_input`: a message that is not recorded is malformed.
        """
        notices = Notices()
        messages = read_messages(self.raw_messages, recorded, notices)
        return History(messages=messages, notices=notices.all())


def check_content_type(header: str | None) -> None:
    """Accept `application/json` with any parameters; the body is UTF-8 whatever they say.

    Anything else is refused, so that no form of another site can post here.

    Raises:
        BadRequest: 415 `unsupported_media_type`.
    """
    media_type = (header or "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        detail = "Send the input with Content-Type: application/json."
        raise BadRequest(415, "unsupported_media_type", detail)


def parse_run(body: bytes) -> RunRequest:
    """Read a body, all but the insides of its messages.

    Raises:
        BadRequest: 400 `invalid_json`, 400 `unsupported_protocol_version`,
            422 `duplicate_resume`, 422 `invalid_input` naming the malformed field.
    """
    notices = Notices()
    fields = Fields(decode(body), "", notices)
    fields.ignore_others(_INPUT)
    thread_id, run_id = fields.identifier("threadId"), fields.identifier("runId")
    parent = fields.raw.get("parentRunId")
    version = fields.optional_text("protocolVersion")
    legacy = _is_legacy(version, notices)
    if type(fields.raw.get("messages")) is not list:
        fields.refuse_list("messages")
    raw_messages = scan(fields.raw["messages"], notices)
    answers = _read_answers(fields)
    client = ClientContext(
        tools=_read_tools(fields),
        context=_read_context(fields),
        state=fields.raw.get("state"),
        forwarded_props=fields.raw.get("forwardedProps"),
    )
    return RunRequest(
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=version,
        legacy=legacy,
        parent_run_id=None if parent is None else fields.identifier("parentRunId"),
        raw_messages=raw_messages,
        answers=answers,
        client=client,
        digest=digest({key: fields.raw[key] for key in _DIGESTED if key in fields.raw}),
        notices=notices.all(),
    )


def _is_legacy(version: str | None, notices: Notices) -> bool:
    """Whether a client is older than 1.0; a major above ours is refused.

    Source: `agui-1.0.md` H, P47: what cannot be interpreted is handled as newer.
    """
    if version is None:
        return True
    declared = _VERSION.fullmatch(version)
    if declared is None:
        notices.add("protocol_version", f"{version[:32]!r} is no version; served as 1.0")
        return False
    major, minor = int(declared[1]), int(declared[2])
    if major > 1:
        detail = f"protocolVersion: this server speaks 1.0 and cannot serve {version}."
        raise BadRequest(400, "unsupported_protocol_version", detail)
    if major == 1 and minor > 0:
        notices.add("protocol_version", f"the client speaks {version}; served as 1.0")
    return major < 1


def _read_answers(fields: Fields) -> tuple[ResumeEntry, ...]:
    entries = (_read_answer(entry) for entry in _objects(fields, "resume", _RESUME))
    answers: dict[str, ResumeEntry] = {}
    for entry in entries:
        if entry.interrupt_id in answers:
            detail = f"resume: interrupt {entry.interrupt_id} is answered twice; send one answer"
            raise BadRequest(422, "duplicate_resume", detail)
        answers[entry.interrupt_id] = entry
    return tuple(answers.values())


def _read_answer(entry: Fields) -> ResumeEntry:
    entry.optional_object("metadata")  # signatures and routing: nothing here reads them
    interrupt_id = entry.identifier("interruptId")
    payload = entry.raw.get("payload")
    match entry.raw.get("status"):
        case "resolved":
            return ResumeEntry(interrupt_id=interrupt_id, status="resolved", payload=payload)
        case "cancelled":
            return ResumeEntry(interrupt_id=interrupt_id, status="cancelled", payload=payload)
        case other:
            return refuse(entry.at("status"), '"resolved" or "cancelled"', other)


def _read_tools(fields: Fields) -> tuple[Json, ...]:
    tools = _objects(fields, "tools", _TOOL)
    for tool in tools:
        tool.text("name")
        tool.text("description")
        tool.optional_object("metadata")
    return tuple(tool.clean(_TOOL) for tool in tools)


def _read_context(fields: Fields) -> tuple[Json, ...]:
    entries = _objects(fields, "context", _CONTEXT)
    return tuple({key: entry.text(key) for key in ("description", "value")} for entry in entries)


def _objects(fields: Fields, key: str, known: frozenset[str]) -> list[Fields]:
    values = enumerate(fields.optional_list(key))
    objects = [Fields(value, f"{fields.at(key)}[{i}]", fields.notices) for i, value in values]
    for found in objects:
        found.ignore_others(known)
    return objects
