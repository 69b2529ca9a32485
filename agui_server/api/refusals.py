"""What a route refuses by itself, before it asks the engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agui_server.agui.wire import BadRequest
from engine.store.protocol import SessionRow


@dataclass(eq=False)
class Refusal(BadRequest):
    """A refused request. `more` are further members of its problem document."""

    more: dict[str, Any] = field(default_factory=dict[str, Any])


def invalid(path: str, sentence: str) -> Refusal:
    """Return the refusal of one field of a body or a query: 422 `invalid_input`.

    `path` leads to it, such as `input.messages[0].content`; the document has it as `field`.
    """
    return Refusal(422, "invalid_input", f"{path}: {sentence}", {"field": path})


def ambiguous_thread(thread_id: str, rows: Sequence[SessionRow]) -> Refusal:
    """Return the refusal of a thread's name that several sessions have: 409."""
    detail = f"Several agents have a thread {thread_id!r}: use the session id."
    more = {"session_ids": [row.session_id for row in rows]}
    return Refusal(409, "ambiguous_thread", detail, more)


def session_owner(session_id: str) -> Refusal:
    """Return the refusal of a session id that is another owner's: 409."""
    detail = f"Session {session_id!r} has another owner."
    return Refusal(409, "session_owner", detail)
