"""Where a view that has landed belongs: which branch becomes the active one.

Numbers are the rules of `protocol.md` section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.branches import Landing
from engine.core.commands import Answer
from engine.core.errors import TurnAlreadyActive
from engine.core.interrupts import pauses, pausing
from engine.core.messages import AssistantMessage, ReasoningMessage
from engine.core.state import OpenInterrupt, State, Turn
from engine.core.status import active_turn, status
from engine.core.tree import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The head a view wants.

    `turn_id` is the parked turn that comes back with it. `asks`: a view that adds nothing
    may be a wish for another reply here. `is_held`: the view's new messages cannot be
    recorded, for the question that pauses the active branch would pause them, too.
    """

    head: str | None
    turn_id: str | None = None
    asks: bool = False
    is_held: bool = False


def find_place(state: State, landing: Landing, answers: Sequence[Answer]) -> Place:
    """Return where a view belongs.

    Raises:
        TurnAlreadyActive: rule 5, for a view that adds nothing.
    """
    if landing.remainder:
        return _place_of_new_messages(state, landing)
    return _place_of_old_messages(state, landing, answers)


def _place_of_new_messages(state: State, landing: Landing) -> Place:
    """Find the place of a view that adds messages.

    1. At the end of a parked turn's branch: that turn comes back.
    2. Where the question that pauses the active branch would pause them too: held.
    3. Else right there, beside whatever follows.
    """
    parked = _parked_turn_ending(state, landing.at)
    if parked is not None:
        return Place(head=landing.at, turn_id=parked.id)
    if landing.at != state.control.head:
        here = pausing(state)
        if any(pauses(state, interrupt, landing.at) for interrupt in here):
            return Place(head=state.control.head, is_held=True)
    return Place(head=landing.at)


def _place_of_old_messages(state: State, landing: Landing, answers: Sequence[Answer]) -> Place:
    """Find the place of a view that adds nothing (rules 3 and 4).

    1. Above an open interrupt that the answers name: the branch of that question. This
       wins; of several the one on the active branch, else the first.
    2. On or above the head of the active branch's open turn: that head. While it runs only
       from its input on, else rule 5.
    3. On a message of a parked turn: it comes back.
    4. An empty view, or one whose answers are all old: nothing moves.
    5. Else where it ends: another reply, or another branch.
    """
    head = state.control.head
    named = _named(state, landing, answers)
    if named is not None:
        return _branch_of(state, named)
    turn = active_turn(state)
    if turn is not None and _is_above(state, landing.at, head):
        if status(state, turn) == "running" and not _is_of(state, landing.at, turn):
            raise TurnAlreadyActive(turn.id)
        return Place(head=head)
    parked = _parked_turn_around(state, landing.at)
    if parked is not None:
        return Place(head=parked.tip, turn_id=parked.id)
    if landing.at is None or answers:
        return Place(head=head)
    return Place(head=landing.at, asks=True)


def _named(state: State, landing: Landing, answers: Sequence[Answer]) -> OpenInterrupt | None:
    found = [
        interrupt
        for answer in answers
        if (interrupt := state.interrupt(answer.interrupt_id)) is not None
        and _is_above(state, landing.at, _end_of(state, interrupt))
    ]
    here = [i for i in found if pauses(state, i, state.control.head)]
    return next(iter([*here, *found]), None)


def _branch_of(state: State, interrupt: OpenInterrupt) -> Place:
    """Return the branch that an open question pauses."""
    if pauses(state, interrupt, state.control.head):
        return Place(head=state.control.head)
    parked = state.is_parked(interrupt.turn_id)
    return Place(head=_end_of(state, interrupt), turn_id=interrupt.turn_id if parked else None)


def _end_of(state: State, interrupt: OpenInterrupt) -> str | None:
    """Return the end of the branch a question is on: its turn's, or its anchor."""
    if pauses(state, interrupt, state.control.head):
        return state.control.head
    if state.is_parked(interrupt.turn_id):
        return state.end_of(interrupt.turn_id)
    return interrupt.anchor


def _is_above(state: State, message_id: str | None, end: str | None) -> bool:
    """Whether a view that ends on a message ends on or above the end of a branch."""
    return message_id is None or state.tree.is_on_path(message_id, end)


def _is_of(state: State, message_id: str | None, turn: Turn) -> bool:
    """Whether a view ends on a message of a turn: its input, or what followed."""
    node = state.tree.get(message_id)
    return (
        message_id is None
        or message_id == state.control.head
        or (node is not None and node.turn_id == turn.id)
        or message_id == _answered_by(state, turn)
    )


def _answered_by(state: State, turn: Turn) -> str | None:
    """Return the message a turn answers that began without one of its own: another reply."""
    first: Node | None = None
    for node in state.tree.upward(state.control.head):
        if node.turn_id != turn.id:
            break
        first = node
    if first is None or not isinstance(first.message, AssistantMessage | ReasoningMessage):
        return None
    return first.parent_id


def _parked_turn_ending(state: State, message_id: str | None) -> Turn | None:
    return next((t for t in state.control.turns if t.parked and t.tip == message_id), None)


def _parked_turn_around(state: State, message_id: str | None) -> Turn | None:
    """Return the parked turn whose branch a view ends on: on its end, or on a message of it.

    The end need not be its own message: a turn that began with a wish for another reply
    may have recorded nothing yet.
    """
    node = state.tree.get(message_id)
    if node is None:
        return None
    at_end = _parked_turn_ending(state, message_id)
    return at_end or next(
        (
            turn
            for turn in state.control.turns
            if turn.parked
            and node.turn_id == turn.id
            and state.tree.is_on_path(node.message.id, turn.tip)
        ),
        None,
    )
