"""How the commands show sessions to a person."""

from collections.abc import Iterator
from typing import Any, cast

from rich import box
from rich.table import Table
from rich.text import Text

from agui_server.cli.terminal import one_line
from engine.core.messages import members

Object = dict[str, Any]

TITLE_LENGTH = 60
SECONDS = len("2026-01-31T12:00:00")


def table(listed: list[Object]) -> Table:
    """Return a list of sessions as a table, the latest updated first."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("session", "agent", "status", "updated", "thread", "title"):
        shown.add_column(heading, no_wrap=heading != "title", overflow="fold")
    for row in listed:
        shown.add_row(
            Text(one_line(row["session_id"])),
            Text(one_line(row["agent_id"])),
            Text(row["status"]),
            Text(row["updated_at"][:SECONDS].replace("T", " ")),
            Text(one_line(row["thread_id"])),
            Text(one_line(row["title"] or "", TITLE_LENGTH)),
        )
    return shown


def summary(session: Object) -> Iterator[str]:
    """Return a session as lines: its state, what is open, and the active path."""
    yield f"session  {one_line(session['session_id'])}"
    yield f"agent    {one_line(session['agent_id'])}"
    yield f"thread   {one_line(session['thread_id'])} of {one_line(session['owner'])}"
    yield f"status   {session['status']}"
    for turn in session["turns"]:
        yield f"turn     {one_line(turn['turn_id'])} ({turn['status']})"
    for turn_id in session["queue"]:
        yield f"queued   {one_line(turn_id)}"
    for interrupt in session["interrupts"]:
        yield from _question(interrupt)
    yield ""
    for message in session["messages"]:
        yield from _message(message)


def _question(interrupt: Object) -> Iterator[str]:
    yield f"asks     {one_line(interrupt['interrupt_id'])} ({one_line(interrupt['reason'])})"
    message = members(interrupt["payload"]).get("message")
    if isinstance(message, str):
        yield f"         {one_line(message)}"
    for index, option in enumerate(interrupt.get("options", ())):
        yield f"         {index}: {one_line(option['label'])}"
    if interrupt["answer_by"] == "machine":
        yield "         a machine answers this one"


def _message(message: Object) -> Iterator[str]:
    role = message["role"]
    if text := _text(message.get("error") or message.get("content")):
        yield f"{role:<9} {one_line(text)}"
    for call in message.get("tool_calls", ()):
        yield f"{role:<9} → {one_line(call['name'])} {one_line(call['arguments'])}"


def _text(content: Any) -> str:
    """Return the text of a content; a part of another kind is named."""
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    return " ".join(str(members(p).get("text", f"[{members(p).get('type')}]")) for p in parts)
