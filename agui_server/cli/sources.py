"""Where the commands find sessions: in a database file, or at the server that holds it.

Both give the JSON of the machine API. A file that no server holds is read as it is, and
only a cancel opens it to write; nothing that was in flight is continued.

Source: `architecture.md` section 4; `protocol.md` section 7.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from agui_server.agui.wire import BadRequest
from agui_server.api.callers import Machine
from agui_server.api.pages import page
from agui_server.api.shapes import MachineListQuery
from agui_server.api.views import machine_listed, machine_view
from agui_server.cli.terminal import fail
from agui_server.settings import Settings
from engine.core.errors import EngineError
from engine.core.events import Event
from engine.offline import cancel_stored, stored
from engine.store.lock import Owner, holder
from engine.store.protocol import SessionRow
from engine.store.sql import SqlStore

Object = dict[str, Any]
T = TypeVar("T")

ANSWER_S = 30.0
"""Longest wait for a server. It answers at once, unless its machine is overloaded."""


def source_of(database: Path) -> "StoredSessions | ServedSessions":
    """Return where the sessions of a database are found right now."""
    owner = holder(database)
    if owner is None or owner.url is None:
        return StoredSessions(database)
    return ServedSessions(owner, owner.url)


# ------------------------------------------------------------------ a file


@dataclass(frozen=True, slots=True)
class StoredSessions:
    """The sessions of a file. What fails ends the command with a sentence."""

    database: Path

    def listed(self, query: MachineListQuery) -> Object:
        """Return `{sessions, cursor?}`."""
        caller = Machine(tenant=Settings().tenant)
        return self._run(lambda store: page(store, caller, query, machine_listed))

    def show(self, address: str) -> Object:
        """Return one session, as the machine API shows it; its agent is not known here."""

        async def find(store: SqlStore) -> Object:
            row = await _find(store, address)
            found = await stored(store, row.session_id)
            return {} if found is None else machine_view(found)

        return self._run(find)

    def events(self, address: str) -> list[Event]:
        """Return the stored events of a session."""

        async def read(store: SqlStore) -> list[Event]:
            return list(await store.events((await _find(store, address)).session_id))

        return self._run(read)

    def cancel(self, address: str) -> Object:
        """Stop everything that is open in a session → `{cancelled, turn_ids}`."""
        row = self._run(lambda store: _find(store, address))
        receipt = self._run(lambda store: cancel_stored(store, row.session_id), read_only=False)
        return {"cancelled": receipt.recorded, "turn_ids": list(receipt.ended)}

    def _run(self, ask: Callable[[SqlStore], Awaitable[T]], *, read_only: bool = True) -> T:
        async def asked() -> T:
            store = SqlStore(self.database, read_only=read_only)
            await store.open()
            try:
                return await ask(store)
            finally:
                await store.close()

        try:
            return asyncio.run(asked())
        except EngineError as error:
            fail(str(error))
        except BadRequest as error:
            fail(error.detail)


async def _find(store: SqlStore, address: str) -> SessionRow:
    loaded = await store.load(address)
    if loaded is not None:
        return loaded.session
    owner = Settings()
    rows = await store.threads(tenant=owner.tenant, owner=owner.owner, thread_id=address)
    if not rows:
        fail(f"There is no session or thread {address!r} in this database.")
    if len(rows) > 1:
        each = ", ".join(f"{row.session_id} ({row.agent_id})" for row in rows)
        fail(f"Several agents have a thread {address!r}; name the session: {each}")
    return rows[0]


# ---------------------------------------------------------------- a server


@dataclass(frozen=True, slots=True)
class ServedSessions:
    """The sessions of a file that a server holds, asked for over HTTP."""

    owner: Owner
    url: str

    def listed(self, query: MachineListQuery) -> Object:
        """Return `{sessions, cursor?}`."""
        asked = query.model_dump(exclude_none=True)
        status, answer = self._ask("GET", "/api/machine/sessions", params=asked)
        return self._checked(status, answer)

    def show(self, address: str) -> Object:
        """Return one session, as the machine API shows it."""
        status, answer = self._ask("GET", _machine(address))
        if status != _NOT_FOUND:
            return self._checked(status, answer)
        # It is no session id. A thread's name is for clients.
        thread = self._found(address, *self._ask("GET", _client(address)))
        return self._checked(*self._ask("GET", _machine(thread["session_id"])))

    def cancel(self, address: str) -> Object:
        """Stop everything that is open in a session → `{cancelled, turn_ids}`."""
        status, answer = self._ask("POST", f"{_machine(address)}/cancel")
        if status != _NOT_FOUND:
            return self._checked(status, answer)
        return self._found(address, *self._ask("POST", f"{_client(address)}/cancel"))

    def _ask(self, method: str, path: str, **more: Any) -> tuple[int, Object]:
        import httpx  # noqa: PLC0415 - half of the commands need it, and it takes time

        try:
            with httpx.Client(base_url=self.url, timeout=ANSWER_S, trust_env=False) as client:
                response = client.request(method, path, **more)
                return response.status_code, response.json()
        except (httpx.HTTPError, ValueError):
            fail(f"The server that holds this database ({self.owner}) does not answer.")

    def _found(self, address: str, status: int, answer: Object) -> Object:
        if status == _NOT_FOUND:
            fail(f"There is no session or thread {address!r} on {self.url}.")
        return self._checked(status, answer)

    def _checked(self, status: int, answer: Object) -> Object:
        if status >= _NO_SUCCESS:
            fail(str(answer.get("detail", f"The server answered {status}.")))
        return answer


_NOT_FOUND = 404
_NO_SUCCESS = 300


def _client(address: str) -> str:
    return f"/api/client/sessions/{quote(address, safe='')}"


def _machine(session_id: str) -> str:
    return f"/api/machine/sessions/{quote(session_id, safe='')}"
