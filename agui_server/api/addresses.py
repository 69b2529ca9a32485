"""Which session a request is about.

An address is a session id, or (for a client) its own name for a thread when only one agent
has it. A session of somebody else's is refused, of another tenant's is not there.

Source: `protocol.md` section 12.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agui_server.api.callers import Caller, Client
from agui_server.api.refusals import ambiguous_thread, invalid, session_owner
from engine import Engine, Thread
from engine.core import commands as cmd
from engine.core.errors import Forbidden, UnknownAgent, UnknownSession
from engine.core.handle import Receipt
from engine.core.ids import is_id
from engine.core.state import Control, State
from engine.runtime.identifiers import new_id
from engine.store.protocol import Companion, SessionRow


async def find(engine: Engine, caller: Caller, address: str) -> State:
    """Return the session an address of a path names.

    Raises:
        UnknownSession: there is none.
        Forbidden: it is somebody else's.
        Refusal: 409 `ambiguous_thread`.
    """
    if isinstance(caller, Client):
        rows = await engine.store.threads(
            tenant=caller.tenant, owner=caller.owner, thread_id=address
        )
        row = only(rows, address)
        if row is not None:
            return await _own(engine, caller, row.session_id)
    return await _own(engine, caller, address)


def only(rows: Sequence[SessionRow], thread_id: str) -> SessionRow | None:
    """Return the session of a thread's name, if there is one.

    Raises:
        Refusal: 409 `ambiguous_thread`: there are several.
    """
    if len(rows) > 1:
        raise ambiguous_thread(thread_id, rows)
    return rows[0] if rows else None


async def _own(engine: Engine, caller: Caller, session_id: str) -> State:
    state = await engine.state(session_id) if is_id(session_id) else None
    if state is None or state.control.tenant != caller.tenant:
        raise UnknownSession(session_id)
    if not caller.may_see(state.control):
        raise Forbidden(f"Session {session_id} is somebody else's.")
    return state


# ------------------------------------------------------------ where input goes


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The session an input goes to. `birth` creates it when it does not exist yet."""

    session_id: str
    thread_id: str
    birth: cmd.Birth | None = None

    def guard(self, receipt: Receipt) -> Sequence[Companion]:
        """Refuse a commit onto a session that somebody else has created meanwhile."""
        if self.birth is not None and receipt.before.seq > 0:
            _check_same(receipt.before, self.birth)
        return ()


def _check_same(control: Control, birth: cmd.Birth) -> None:
    if (control.tenant, control.owner) != (birth.tenant, birth.owner):
        raise session_owner(control.session_id)
    _check_names(control, birth.agent_id, None)


def _check_names(control: Control, agent_id: str | None, thread_id: str | None) -> None:
    """Refuse an agent or a thread beside a session id, when they are not that session's."""
    for name, given, real in (
        ("agent_id", agent_id, control.agent_id),
        ("thread_id", thread_id, control.thread_id),
    ):
        if given not in {None, real}:
            raise invalid(name, f"session {control.session_id!r} has {real!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a body says of its session. `creates`: its input may be the first of one."""

    owner: str
    agent_id: str | None
    thread_id: str | None
    session_id: str | None
    creates: bool


async def place_of(engine: Engine, caller: Caller, names: Names) -> Place:
    """Return where an input goes.

    1. `session_id`: that session.
    2. `agent_id` and `thread_id`: that thread; the input may create it.
    3. `thread_id` alone: the thread of that name.
    4. `agent_id` alone: a new session, whose thread gets a name.

    Raises:
        UnknownSession, UnknownAgent: 404.
        Refusal: 409 `ambiguous_thread`, or 422 naming what is missing or wrong.
    """
    if names.session_id is not None:
        control = (await _own(engine, caller, names.session_id)).control
        _check_names(control, names.agent_id, names.thread_id)
        return Place(session_id=control.session_id, thread_id=control.thread_id)
    if names.agent_id is not None and names.creates:
        thread_id = names.thread_id or new_id("thread")
        thread = Thread(caller.tenant, names.owner, names.agent_id, thread_id)
        session_id = await engine.session_of(thread)
        return Place(session_id=session_id, thread_id=thread_id, birth=_birth(thread))
    if names.thread_id is None:
        raise invalid("agent_id" if names.creates else "session_id", "name a session, or a thread")
    rows = await engine.store.threads(
        tenant=caller.tenant, owner=names.owner, thread_id=names.thread_id
    )
    wanted = [row for row in rows if names.agent_id in {None, row.agent_id}]
    row = only(wanted, names.thread_id)
    if row is None:
        raise UnknownSession(names.thread_id)
    return Place(session_id=row.session_id, thread_id=row.thread_id)


async def machine_place_of(engine: Engine, caller: Caller, names: Names) -> Place:
    """Return where a machine's input goes: it may choose the id of a new session.

    Raises:
        UnknownSession, UnknownAgent: 404.
        Refusal: 409 `session_owner`, 409 `ambiguous_thread`, or 422 naming the field.
    """
    if names.session_id is None or names.agent_id is None:
        return await place_of(engine, caller, names)
    thread_id = names.thread_id or new_id("thread")
    birth = _birth(Thread(caller.tenant, names.owner, names.agent_id, thread_id))
    state = await engine.state(names.session_id)
    if state is not None:
        _check_same(state.control, birth)
        _check_names(state.control, None, names.thread_id)
        thread_id = state.control.thread_id
    elif names.agent_id not in engine.agents:
        raise UnknownAgent(names.agent_id)
    elif not names.creates:
        raise UnknownSession(names.session_id)
    return Place(session_id=names.session_id, thread_id=thread_id, birth=birth)


def _birth(thread: Thread) -> cmd.Birth:
    return cmd.Birth(
        agent_id=thread.agent_id,
        owner=thread.owner,
        tenant=thread.tenant,
        thread_id=thread.thread_id,
    )
