"""Hold a log against the tables of lives (`engine/core/status.py`).

`walk` judges a log, or a part of it that follows on a known state; `judge` the same when the
states between its events are known already. Either costs as much for each event as there
are things open, however long the log is.
"""

from collections.abc import Iterable, Sequence

from engine.core.apply import apply
from engine.core.events import Event
from engine.core.state import State, new_session
from engine.core.status import LIVES, Kind, Step, Thing, about, ending, open_things

ROWS: dict[tuple[Kind, str | None, str, str], Step] = {
    (kind, step.before, step.event, step.after): step
    for kind, steps in LIVES.items()
    for step in steps
}
"""Every row, by what an event does to a thing."""

Row = tuple[Kind, Step]


def walk_log(events: Iterable[Event]) -> set[Row]:
    """Walk a whole log."""
    return walk(new_session("session"), events)


def walk(state: State, events: Iterable[Event]) -> set[Row]:
    """Fold events onto a state; return the rows that are walked, as :func:`judge` does."""
    log, states = list(events), [state]
    for event in log:
        states.append(apply(states[-1], event))
    return judge(states, log)


def judge(states: Sequence[State], events: Sequence[Event]) -> set[Row]:
    """Return the rows that are walked. `states` are those before, between and after the events.

    Whatever changes at an event has exactly one row for it; so has what the event speaks
    of, changed or not. Nothing that has ended begins again.

    Raises:
        AssertionError: something does what no row says.
    """
    rows: set[Row] = set()
    over: set[Thing] = set()
    before = open_things(states[0])
    for state, event in zip(states[1:], events, strict=True):
        after = open_things(state)
        for thing in _touched(event, before, after):
            assert thing not in over, f"seq {event.seq}: {event.body.type}, and {thing} is over"
            rows.add(_row(event, thing, before.get(thing), after.get(thing)))
            if thing not in after:
                over.add(thing)
        before = after
    return rows


def _touched(event: Event, before: dict[Thing, str], after: dict[Thing, str]) -> list[Thing]:
    touched = [thing for thing, word in after.items() if before.get(thing) != word]
    touched += [thing for thing in before if thing not in after]
    named = about(event)
    if named is not None and named not in touched:
        touched.append(named)
    return touched


def _row(event: Event, thing: Thing, before: str | None, after: str | None) -> Row:
    kind, name = thing
    word = after if before is None or after is not None else ending(event.body)
    step = ROWS.get((kind, before, event.body.type, word or ""))
    assert step is not None, (
        f"seq {event.seq}: {kind} {name} is {before}, and {event.body.type} makes it {word}: "
        "no row of its table says so"
    )
    return kind, step
