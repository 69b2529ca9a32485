"""A commit in the making: events emitted so far, and the state they lead to."""

from dataclasses import dataclass

from engine.core.apply import apply
from engine.core.env import Env
from engine.core.events import Body, Event
from engine.core.state import Control, Decision, State
from engine.core.worker import Trigger


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the caller should be told although the command went through."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Raised:
    """A trigger nobody has looked at yet. It becomes a decision when the commit settles.

    `beside`: it starts work that stands beside an interrupt, which does not hold it up.
    """

    turn_id: str | None
    trigger: Trigger
    beside: bool = False


class Draft:
    """The working copy of one command.

    Rules read `state` and call `emit`; each event is folded at once, by the same
    `apply` that replays the log. Nothing outside sees a draft until it is committed.
    """

    __slots__ = ("controls", "env", "events", "notices", "raised", "released", "state", "taken")

    def __init__(self, state: State, env: Env) -> None:
        self.state = state
        self.env = env
        self.events: list[Event] = []
        self.controls: list[Control] = []
        """What was open after each event."""
        self.raised: list[Raised] = []
        self.notices: list[Notice] = []
        self.taken: list[str] = []
        """Ids of the interrupts this command cleared, in order."""
        self.released: list[str] = []
        """Calls that an interrupt held which was cleared: their clocks start anew."""

    def emit(self, body: Body, turn_id: str | None) -> None:
        """Record that something happened."""
        control = self.state.control
        event = Event(control.session_id, control.seq + 1, self.env.now, turn_id, body)
        self.events.append(event)
        self.state = apply(self.state, event)
        self.controls.append(self.state.control)

    def trigger(self, turn_id: str | None, trigger: Trigger, *, beside: bool = False) -> None:
        """Ask for a decision, once the rules at hand are through."""
        self.raised.append(Raised(turn_id, trigger, beside))

    @property
    def waiting(self) -> tuple[Decision | Raised, ...]:
        """Every trigger that is not decided: those in line or out, and those just raised."""
        return (*self.state.control.decisions, *self.raised)

    def notice(self, code: str, detail: str) -> None:
        """Tell the caller something."""
        self.notices.append(Notice(code, detail))

    def fork(self) -> "Draft":
        """Return a copy to try something on; see :meth:`adopt`."""
        copy = Draft(self.state, self.env)
        copy.events = list(self.events)
        copy.controls = list(self.controls)
        copy.raised = list(self.raised)
        copy.notices = list(self.notices)
        copy.taken = list(self.taken)
        copy.released = list(self.released)
        return copy

    def adopt(self, fork: "Draft") -> None:
        """Take over what was tried on a fork."""
        self.state = fork.state
        self.events = fork.events
        self.controls = fork.controls
        self.raised = fork.raised
        self.notices = fork.notices
        self.taken = fork.taken
        self.released = fork.released
