"""What clients send at the head: messages, actions, the ends of their calls.

A view of the whole conversation has its own file, `views.py`.

Source: `protocol.md` sections 2 (the same thing twice), 3 and 4.
"""

from dataclasses import replace

from engine.core import events as ev
from engine.core.branches import Landing, accepted_ids, land_at_head
from engine.core.calls import end_tool_call, stop_call
from engine.core.commands import AppendMessages, Birth, TakeAction
from engine.core.draft import Draft
from engine.core.errors import InvalidInput, SessionInterrupted, TurnAlreadyActive
from engine.core.ids import is_id
from engine.core.interrupts import is_paused, pausing
from engine.core.messages import ClientContext, Message, SystemMessage, ToolMessage
from engine.core.queued import enqueue
from engine.core.state import State, Turn
from engine.core.status import active_turn, status
from engine.core.turns import start_turn
from engine.core.worker import ClientAction, ClientMessages, SessionStart

NOT_ANSWERED = "not answered"
"""What a model reads about a client call that the person passed over."""


def create(draft: Draft, birth: Birth) -> None:
    """Begin the session. `session.start` is decided in the session's first turn."""
    draft.emit(
        ev.SessionCreated(
            agent_id=birth.agent_id,
            owner=birth.owner,
            tenant=birth.tenant,
            thread_id=birth.thread_id,
        ),
        None,
    )


def append_messages(draft: Draft, command: AppendMessages) -> str | None:
    """Take messages at the head; return the turn they start, join, wait for or belong to.

    1. A turn id that was used: that turn, and nothing else.
    2. Every message is recorded or accepted already: its turn, and nothing else.
    3. A result of an open client call ends it, whatever the turn is doing.
    4. The branch is paused: refused, with `queue` too.
    5. No turn is open on the branch: one starts.
    6. The turn waits only for client calls: the messages join it.
    7. It runs: with `queue` they wait behind it, else they are refused.

    Raises:
        InvalidInput: the turn id cannot be one.
        SessionInterrupted: 4.
        TurnAlreadyActive: 7.
    """
    if command.turn_id is not None and is_known_turn(draft, command.turn_id):
        return command.turn_id
    state = draft.state
    landing = land_at_head(state, command.messages)
    if not landing.remainder and not landing.tool_answers:
        return _turn_of(state, command.messages)
    turn = active_turn(state)
    was = status(state, turn) if turn is not None else None
    if landing.remainder and is_paused(state):
        raise SessionInterrupted([i.id for i in pausing(state)])
    if landing.remainder and turn is not None and was == "running" and not command.queue:
        raise TurnAlreadyActive(turn.id)
    for message in landing.tool_answers:
        answer_client_call(draft, message)
    if turn is None:
        return begin(draft, command.client, landing, command.turn_id)
    if not landing.remainder:
        return turn.id
    if was == "running":
        return enqueue(draft, turn, landing.remainder, command.client, command.turn_id)
    join(draft, command.client, landing, turn)
    return turn.id


def is_known_turn(draft: Draft, turn_id: str) -> bool:
    """Whether a turn has this id: it runs, waits in the queue, or is complete.

    Raises:
        InvalidInput: it cannot be an id.
    """
    if not is_id(turn_id):
        raise InvalidInput("turn_id", "an id is 1 to 256 characters, none of them a control")
    queued = any(waiting.id == turn_id for waiting in draft.state.control.queue)
    return queued or draft.state.turn(turn_id) is not None or draft.env.was_used(turn_id)


def _turn_of(state: State, messages: tuple[Message, ...]) -> str | None:
    """Return the turn that messages belong to which came before."""
    if not messages:
        return None
    last = messages[-1].id
    node = state.tree.get(last)
    return node.turn_id if node is not None else accepted_ids(state).get(last)


def take_action(draft: Draft, command: TakeAction) -> str | None:
    """Ask the worker about an action. Without one that wants it, nothing comes of it.

    Raises:
        InvalidInput: it has no name.
    """
    if not command.name:
        raise InvalidInput("name", "an action has a name")
    turn = active_turn(draft.state)
    turn_id = turn.id if turn is not None else None
    action = ClientAction(name=command.name, args=command.args)
    begin_session(draft, turn_id)
    if draft.env.agent.wants_trigger(action.type):
        draft.trigger(turn_id, action)
    return turn_id


def begin_session(draft: Draft, turn_id: str | None) -> None:
    """Let the worker hear of a new session, before anything else."""
    is_first = len(draft.events) > 0 and isinstance(draft.events[0].body, ev.SessionCreated)
    if is_first and draft.env.agent.wants_trigger("session.start"):
        draft.trigger(turn_id, SessionStart())


def answer_client_call(
    draft: Draft, message: ToolMessage, instructions: tuple[SystemMessage, ...] | None = None
) -> bool:
    """A tool message ends an open client call; it is recorded under its own id.

    Only a call of the active path. `instructions` stood before it in a view.
    """
    call = draft.state.call(message.tool_call_id)
    if call is None or draft.state.is_parked(call.turn_id):
        return False
    content = message.content
    result = content if isinstance(content, str) else {"content": content}
    end_tool_call(
        draft,
        call,
        result=result,
        error=message.error,
        message_id=message.id,
        instructions=instructions,
    )
    return True


def begin(draft: Draft, client: ClientContext, landing: Landing, turn_id: str | None = None) -> str:
    """Start a turn with what is new."""
    turn = start_turn(draft, _context(client, landing), turn_id)
    begin_session(draft, turn.id)
    draft.trigger(turn.id, _trigger(draft, landing, turn.client))
    return turn.id


def join(draft: Draft, client: ClientContext, landing: Landing, turn: Turn) -> None:
    """New messages join the open turn; client calls they pass over are given up."""
    for call in draft.state.calls_of(turn.id):
        if call.kind == "client":
            stop_call(draft, call, NOT_ANSWERED)
    draft.trigger(turn.id, _trigger(draft, landing, _context(client, landing)))


def _context(client: ClientContext, landing: Landing) -> ClientContext:
    if not landing.instructions:
        return client
    return replace(client, instructions=landing.instructions)


def _trigger(draft: Draft, landing: Landing, client: ClientContext) -> ClientMessages:
    node = draft.state.tree.get(draft.state.control.head)
    return ClientMessages(
        messages=landing.remainder,
        new_from=node.depth + 1 if node is not None else 0,
        client=client,
    )
