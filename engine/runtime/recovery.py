"""After a start: continue every session that had work in flight."""

import logging
from typing import Protocol

from engine.core.errors import EngineError
from engine.core.state import State
from engine.store.protocol import Store

logger = logging.getLogger(__name__)


class Loader(Protocol):
    """Whoever loads sessions; loading one with orphaned work recovers it."""

    async def state(self, session_id: str) -> State | None:
        """Load a session."""
        ...


async def recover_all(sessions: Loader, store: Store) -> None:
    """Load what was busy when the last process ended, one after another.

    A request for such a session does not wait for its turn here: whoever loads it
    first recovers it.
    """
    for session_id in await store.busy():
        try:
            await sessions.state(session_id)
        except EngineError:
            logger.exception("session %s could not be continued", session_id)
