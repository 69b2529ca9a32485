"""A session in a database, looked at or cancelled without an engine that runs anything.

An engine that opens a database goes on with everything that was in flight, with the agents
it was given. Here nothing goes on, so no agents are needed.
"""

import random

from engine.core import commands as cmd
from engine.core.apply import apply
from engine.core.env import AgentSpec, Env
from engine.core.errors import StorageUnavailable, UnknownSession
from engine.core.handle import Receipt, handle
from engine.core.messages import Json
from engine.core.state import State, new_session
from engine.engine import Conversation
from engine.runtime.clock import SystemClock
from engine.runtime.identifiers import new_id
from engine.runtime.schemas import conforms
from engine.runtime.summary import updated_row
from engine.store.protocol import Append, Appended, Store


async def stored(store: Store, session_id: str) -> Conversation | None:
    """Return a session as it is recorded, with every branch; an engine may run beside it."""
    loaded = await store.load(session_id)
    if loaded is None:
        return None
    state = new_session(session_id)
    for event in await store.events(session_id):
        state = apply(state, event)
    return Conversation(loaded.session, state)


async def cancel_stored(store: Store, session_id: str) -> Receipt:
    """Cancel a session of a database that no engine runs on. The store must be open to write.

    Work that was in flight is not continued first: all of it ends here.

    Raises:
        UnknownSession: it is not in this database.
        StorageUnavailable: nothing was recorded.

    Source: `protocol.md` section 7.
    """
    found = await stored(store, session_id)
    if found is None:
        raise UnknownSession(session_id)
    env = _world(found.state)
    outcome = handle(found.state, cmd.CancelSession(), env)
    if outcome.events:
        append = Append(
            session=updated_row(found.row, outcome.state, env.now, outcome.events),
            expected_seq=found.state.control.seq,
            events=outcome.events,
        )
        if not isinstance(await store.append(append), Appended):
            raise StorageUnavailable(f"Session {session_id} was changed by somebody else.")
    return outcome.receipt


def _world(state: State) -> Env:
    """Return the world of a cancel. It asks nothing of the agent: nothing is decided."""
    return Env(
        now=SystemClock().now(),
        agent=AgentSpec(id=state.control.agent_id, model=""),
        new_id=new_id,
        conforms=conforms,
        jitter=random.random,
        was_used=lambda _asked: False,
        recorded=_nothing_written,
    )


def _nothing_written(_seq: int) -> Json:
    return None
