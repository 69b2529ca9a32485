"""One session of the pure core, and everything it needs to be asked things.

A world keeps the session's state, its log, and a shadow: the fold of the log as it
would be read back from a database (a law keeps it). Every command goes through
:meth:`World.do`, which hands what happened to the laws (`laws.py`) and to the tally
(`tally.py`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.apply import apply
from engine.core.draft import Draft
from engine.core.due import wake_at
from engine.core.env import AgentSpec, Env
from engine.core.errors import InvalidResponse, Refused
from engine.core.handle import Outcome, handle
from engine.core.messages import Json, Message
from engine.core.propose import propose
from engine.core.state import Call, Decision, State, new_session
from engine.core.values import written
from engine.core.worker import ClientMessages, ToolExecute
from engine.runtime.schemas import conforms
from engine.store import codec
from tests.properties import tally
from tests.properties.steps import Answered, Step

BIRTH = cmd.Birth(agent_id="agent", owner="owner", tenant="tenant", thread_id="thread")


@dataclass(slots=True)
class World:
    """A session. `judge` is called with every step.

    `said` is what its worker answered, `joined` the decisions about input that joined a turn.
    """

    spec: AgentSpec
    judge: Callable[["World", Step], None]
    state: State = field(default_factory=lambda: new_session("session"))
    log: list[ev.Event] = field(default_factory=list[ev.Event])
    shadow: State = field(default_factory=lambda: new_session("session"))
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    done: list[cmd.Command] = field(default_factory=list[cmd.Command])
    said: list[Answered] = field(default_factory=list[Answered])
    joined: set[str] = field(default_factory=set[str])
    jitter: float = 0.5
    _used: set[str] = field(default_factory=set[str])
    _ids: "count[int]" = field(default_factory=count)

    def do(self, command: cmd.Command) -> Outcome | None:
        """Run a command; `None` when it was refused, which must have changed nothing."""
        state = self.state
        control, nodes = state.control, list(state.tree.upward(state.control.head))
        length = len(state.tree)
        answered = self._answered(command)
        try:
            outcome = handle(state, command, self.env(), BIRTH)
        except Refused as refused:
            assert self.state.control == control
            assert len(state.tree) == length
            assert list(state.tree.upward(control.head)) == nodes
            tally.refused(command, refused)
            return None
        except InvalidResponse as error:
            raise AssertionError(f"the engine's own proposal breaks a rule: {error}") from error
        states = [state]
        for event in outcome.events:
            states.append(apply(states[-1], event))
        step = Step(
            before=state,
            command=command,
            outcome=outcome,
            log=list(self.log),
            states=states,
            now=self.now,
        )
        self.state = outcome.state
        self.done.append(command)
        self.said += answered
        for before, event in step.walk():
            self._note(step, before, event)
        tally.took(step)
        self.judge(self, step)
        return outcome

    def _answered(self, command: cmd.Command) -> list[Answered]:
        if not isinstance(command, cmd.AnswerDecision):
            return []
        decision = self.state.decision(command.decision_id)
        if decision is None or not decision.is_out:
            return []
        draft = Draft(self.state, self.env())
        offered = propose(draft, decision.turn_id, decision.trigger, decision.id)
        return [
            Answered(
                decision=decision,
                response=command.response,
                is_proposal=command.response.actions == offered.actions,
            )
        ]

    def _note(self, step: Step, before: State, event: ev.Event) -> None:
        self.log.append(event)
        match event.body:
            case ev.SessionInterrupted(interrupt_id=used) | ev.ToolCallRequested(call_id=used):
                self._used.add(used)
            case ev.TurnStarted():
                self._used.add(event.turn_id or "")
            case (
                ev.DecisionWaiting(trigger=ClientMessages())
                | ev.DecisionRequested(trigger=ClientMessages()) as body
            ):
                is_new = before.decision(body.decision_id) is None
                if is_new and step.before.turn(event.turn_id) is not None:
                    self.joined.add(body.decision_id)
            case _:
                pass

    def restart(self, split: int = 0) -> None:
        """Lose the memory: fold the log as stored, from a snapshot that chance placed."""
        at = split % (len(self.log) + 1)
        first = new_session("session")
        for event in self.log[:at]:
            first = apply(first, through_the_codec(event))
        snapshot = codec.decode_control(codec.encode_control(first.control))
        state = State(snapshot, first.tree)
        for event in self.log[at:]:
            state = apply(state, through_the_codec(event))
        assert state.control == self.state.control
        self.state = state

    def pass_time(self, seconds: float) -> None:
        """Move the clock; whatever is due happens."""
        self.now += timedelta(seconds=seconds)
        self.do(cmd.PassTime())
        due = wake_at(self.state)
        assert due is None or due > self.now

    def new_id(self, prefix: str) -> str:
        """Return an id nobody had."""
        return f"{prefix}-{next(self._ids)}"

    # -------------------------------------------------------------- queries

    @property
    def head(self) -> str | None:
        """The end of the active path."""
        return self.state.control.head

    def path(self, head: str | None) -> tuple[Message, ...]:
        """Return the messages from the root to one."""
        return tuple(node.message for node in self.state.tree.path(head))

    def message_ids(self) -> list[str]:
        """Return every recorded message, in the order they came."""
        return [e.body.message.id for e in self.log if isinstance(e.body, ev.MessageNew)]

    def calls(self, *kinds: str) -> list[Call]:
        """Return the open calls of these kinds."""
        return [call for call in self.state.control.calls if call.kind in kinds]

    def decisions_out(self) -> list[Decision]:
        """Return what workers are asked: beside one decision, they may be at their own tools."""
        return [decision for decision in self.state.control.decisions if decision.is_out]

    def is_own_tool(self, decision: Decision) -> bool:
        """Whether a worker that answers a decision runs a tool of its own."""
        trigger = decision.trigger
        spec = self.spec.tools.get(trigger.name) if isinstance(trigger, ToolExecute) else None
        return spec is not None and spec.handler == "worker"

    def runs_apart(self, decision: Decision) -> bool:
        """Whether it is a call that goes on although its branch was left."""
        return self.is_own_tool(decision) and self.state.is_parked(decision.turn_id)

    def interrupt_ids(self) -> list[str]:
        """Return every interrupt there ever was."""
        return [e.body.interrupt_id for e in self.log if isinstance(e.body, ev.SessionInterrupted)]

    def turn_ids(self) -> list[str]:
        """Return every turn that was ever named, whether it started or not."""
        named = (e.turn_id for e in self.log if isinstance(e.body, ev.TurnStarted | ev.TurnQueued))
        return [turn_id for turn_id in named if turn_id is not None]

    def env(self) -> Env:
        """Return the world of one command."""
        return Env(
            now=self.now,
            agent=self.spec,
            new_id=self.new_id,
            conforms=_conforms,
            jitter=lambda: self.jitter,
            was_used=self._used.__contains__,
            recorded=lambda seq: written(self.log[seq - 1].body),
        )


def _conforms(schema: Json, value: Json) -> str | None:
    return _judged(json.dumps(schema), json.dumps(value))


@cache
def _judged(schema: str, value: str) -> str | None:
    """Judge a value against a schema: a session asks the same again and again."""
    return conforms(json.loads(schema), json.loads(value))


def through_the_codec(event: ev.Event) -> ev.Event:
    """Return the event as it is read back from a store."""
    text = codec.encode_body(event.body)
    body = codec.decode_body(event.body.type, text)
    assert body == event.body
    assert codec.encode_body(body) == text
    return ev.Event(event.session_id, event.seq, event.occurred_at, event.turn_id, body)
