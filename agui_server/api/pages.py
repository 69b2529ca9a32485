"""Pages of a list of sessions: the latest updated first, continued by a cursor.

Source: `protocol.md` section 13.
"""

import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import datetime

from agui_server.api.callers import Caller, Client
from agui_server.api.refusals import Refusal
from agui_server.api.shapes import ListQuery, MachineListQuery
from engine.core.messages import Json
from engine.store.protocol import SessionRow, Store
from engine.store.rows import from_micros, to_micros

_PLACE = re.compile(r"\A(\d{1,18}):(.+)\Z", re.ASCII | re.DOTALL)


async def page(
    store: Store, caller: Caller, query: ListQuery, shown: Callable[[SessionRow], dict[str, Json]]
) -> dict[str, Json]:
    """Return `{sessions, cursor?}`; there is a cursor when there are more.

    Raises:
        Refusal: 400 `invalid_cursor`.
    """
    asked = query.owner if isinstance(query, MachineListQuery) else None
    equals = {
        "tenant": caller.tenant,
        "owner": caller.owner if isinstance(caller, Client) else asked,
        "agent_id": query.agent_id,
        "status": query.status,
    }
    before = None if query.cursor is None else read_cursor(query.cursor)
    found = await store.sessions(
        limit=query.limit + 1,
        before=before,
        **{name: value for name, value in equals.items() if value is not None},
    )
    rows = found[: query.limit]
    answer: dict[str, Json] = {"sessions": [shown(row) for row in rows]}
    if len(found) > query.limit:
        answer["cursor"] = write_cursor(rows[-1])
    return answer


def write_cursor(row: SessionRow) -> str:
    """Return the place behind a session: opaque, and safe in a URL."""
    place = f"{to_micros(row.updated_at)}:{row.session_id}"
    return urlsafe_b64encode(place.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[datetime, str]:
    """Return the place a cursor stands for.

    Raises:
        Refusal: 400 `invalid_cursor`.
    """
    padded = cursor + "=" * (-len(cursor) % 4)
    try:
        place = b64decode(padded, altchars=b"-_", validate=True).decode()
        micros, session_id = _PLACE.findall(place)[0]
        return from_micros(int(micros)), session_id
    except (ValueError, LookupError, OverflowError):
        detail = "This cursor is none of ours: begin the list again."
        raise Refusal(400, "invalid_cursor", detail) from None
