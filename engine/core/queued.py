"""The queue: input that waits until the running turn completes.

Source: `protocol.md` section 4, the first rule.
"""

from engine.core import events as ev
from engine.core.draft import Draft
from engine.core.interrupts import is_paused
from engine.core.messages import ClientContext, Message
from engine.core.state import QueuedTurn, State, Turn
from engine.core.status import active_turn
from engine.core.turns import start_turn
from engine.core.worker import ClientMessages


def enqueue(
    draft: Draft,
    behind: Turn,
    messages: tuple[Message, ...],
    client: ClientContext,
    turn_id: str | None,
) -> str:
    """Let input wait behind a turn; return the id of the turn it will start."""
    queued_id = turn_id or draft.env.new_id("turn")
    sent = None if client == ClientContext() else client
    draft.emit(ev.TurnQueued(behind=behind.id, messages=messages, client=sent), queued_id)
    return queued_id


def start_next(draft: Draft) -> bool:
    """Start what waited behind a turn that has completed. False: nothing may start now."""
    ready = _ready(draft.state)
    if ready is None:
        return False
    turn = start_turn(draft, ready.client, ready.id)
    node = draft.state.tree.get(draft.state.control.head)
    trigger = ClientMessages(
        messages=ready.messages,
        new_from=node.depth + 1 if node is not None else 0,
        client=ready.client,
    )
    draft.trigger(turn.id, trigger)
    return True


def _ready(state: State) -> QueuedTurn | None:
    """Return the first one whose turn is over. One behind a parked turn stays with it."""
    if not state.control.queue or active_turn(state) is not None or is_paused(state):
        return None
    return next((q for q in state.control.queue if state.turn(q.behind) is None), None)
