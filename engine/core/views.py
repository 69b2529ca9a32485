"""What a client's view does: it lands, answers, joins a turn or starts one.

Source: `protocol.md` sections 3 and 4; `agui.md` sections 2.2 and 3.
"""

from engine.core import events as ev
from engine.core import values
from engine.core.branches import Landing, land
from engine.core.calls import ask_about, is_undecided
from engine.core.commands import Answer, ClientView
from engine.core.draft import Draft
from engine.core.errors import Forbidden, InvalidAnswer, SessionInterrupted, TurnAlreadyActive
from engine.core.inputs import answer_client_call, begin, is_known_turn, join
from engine.core.interrupts import clear, is_paused, pauses, pausing
from engine.core.messages import SystemMessage
from engine.core.places import Place, find_place
from engine.core.state import Turn
from engine.core.status import TurnStatus, active_turn, status
from engine.core.turns import park


def client_view(draft: Draft, command: ClientView) -> str | None:
    """Apply a view and its answers; return the turn it started, resumed or joined.

    In this order: the view lands and the head moves there, client calls are answered,
    interrupts are answered, new messages are recorded.

    Raises:
        InvalidInput: the turn id cannot be one.
        InvalidView: rule 2 of section 3.
        TurnAlreadyActive: the running turn would have to be left.
        SessionInterrupted: (unless `lenient`) the branch stays paused.
        InvalidAnswer, Forbidden: (unless `lenient`) an answer cannot be taken.
    """
    if command.turn_id is not None and is_known_turn(draft, command.turn_id):
        return command.turn_id
    landing = land(draft.state, command.messages)
    place = find_place(draft.state, landing, command.answers)
    cleared: list[bool] = []
    leaves = _active_status(draft)
    if place.is_held:
        # Every path waits. Once the answers are in, the view may go where it belongs.
        cleared = [
            _answer(draft, command, answer, _news(draft, landing)) for answer in command.answers
        ]
        place = find_place(draft.state, landing, command.answers)
    held_before = bool(cleared)
    _go(draft, landing, place, leaves)
    turn = active_turn(draft.state)
    was = leaves if held_before else _active_status(draft)
    ended = [
        answer_client_call(draft, message, _news(draft, landing))
        for message in (() if place.is_held else landing.tool_answers)
    ]
    if not held_before:
        cleared = [
            _answer(draft, command, answer, _news(draft, landing)) for answer in command.answers
        ]
    touched = any(cleared) or any(ended)
    if not landing.remainder:
        if touched:
            return turn.id if turn is not None else None
        return _regenerate(draft, command, landing, turn) if place.asks else None
    if place.is_held or is_paused(draft.state):
        return _still_paused(draft, command, turn, touched=touched)
    if turn is None:
        return begin(draft, command.client, landing, command.turn_id)
    if was == "running":
        raise TurnAlreadyActive(turn.id)
    join(draft, command.client, landing, turn)
    return turn.id


def _news(draft: Draft, landing: Landing) -> tuple[SystemMessage, ...] | None:
    """Return the instructions of a view for its turn; `None` when they are those it has."""
    turn = active_turn(draft.state)
    if turn is None or turn.client.instructions == landing.instructions:
        return None
    return landing.instructions


def _active_status(draft: Draft) -> TurnStatus | None:
    turn = active_turn(draft.state)
    return status(draft.state, turn) if turn is not None else None


def _go(draft: Draft, landing: Landing, place: Place, leaves: TurnStatus | None) -> None:
    """Move the head to where the view belongs; the turn that is left is parked.

    `leaves` is what the turn of the active branch was doing when the view came.

    Raises:
        TurnAlreadyActive: it runs. Only a turn that is paused or waits can be left.
    """
    if landing.unknown_history and not place.is_held:
        draft.notice("unknown_history", "none of these messages is recorded: a new branch")
    if place.head == draft.state.control.head and place.turn_id is None:
        return
    turn = active_turn(draft.state)
    if turn is not None:
        if leaves == "running":
            raise TurnAlreadyActive(turn.id)
        park(draft, turn)
    moved = ev.HeadMoved(message_id=place.head, values=values.at(draft, place.head))
    draft.emit(moved, place.turn_id)
    if place.turn_id is not None:
        _ask_again(draft, place.turn_id)


def _ask_again(draft: Draft, turn_id: str) -> None:
    """Ask about calls of a turn that is back and that nobody would start or end any more.

    The question that held one was answered while its branch was left, which was told nobody.
    """
    for call in draft.state.calls_of(turn_id):
        is_ours = call.kind in {"function", "worker", "unknown"} and call.attempt == 0
        if is_ours and not is_undecided(draft, call):
            ask_about(draft, call)


def _answer(
    draft: Draft,
    command: ClientView,
    answer: Answer,
    instructions: tuple[SystemMessage, ...] | None,
) -> bool:
    interrupt = draft.state.interrupt(answer.interrupt_id)
    lands = interrupt is not None and pauses(draft.state, interrupt, draft.state.control.head)
    try:
        if clear(draft, answer, command.caller, instructions=instructions):
            if not (lands or answer.cancelled):
                detail = f"Interrupt {answer.interrupt_id} was on a branch that is not shown."
                draft.notice("answer_not_delivered", detail)
            return True
    except (InvalidAnswer, Forbidden) as error:
        if not command.lenient:
            raise
        draft.notice(error.code, str(error))
        return False
    draft.notice("unknown_interrupt", f"Interrupt {answer.interrupt_id} is not open.")
    return False


def _still_paused(
    draft: Draft, command: ClientView, turn: Turn | None, *, touched: bool
) -> str | None:
    waiting = [i.id for i in pausing(draft.state)]
    if not command.lenient:
        raise SessionInterrupted(waiting)
    draft.notice("session_interrupted", str(SessionInterrupted(waiting)))
    return turn.id if turn is not None and touched else None


def _regenerate(
    draft: Draft, command: ClientView, landing: Landing, turn: Turn | None
) -> str | None:
    """A view that adds nothing asks for a reply when it ends on a user or tool message."""
    if command.answers or not command.regenerate or turn is not None:
        return None
    if not landing.asks or is_paused(draft.state):
        return None
    return begin(draft, command.client, landing, command.turn_id)
