"""What a command needs in memory before the rules can run.

A session that was loaded from a snapshot has its active path, and the branches on which
something is open. What else a command may mean is brought here, and no more.
"""

from collections.abc import Iterable

from engine.core import commands as cmd
from engine.core.apply import apply
from engine.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from engine.core.state import State, new_session
from engine.core.worker import Action, CallTool, Interrupt
from engine.runtime.entry import Entry
from engine.store.protocol import Loaded, Store


def take(entry: Entry, loaded: Loaded) -> None:
    """Fold what was loaded into the entry."""
    control = loaded.snapshot
    state = new_session(entry.session_id)
    if control is not None:
        state.tree.complete = False
        state.tree.load(loaded.path.nodes, loaded.path.marks)
        state = State(control, state.tree)
    for event in loaded.events:
        state = apply(state, event)
    entry.state, entry.row = state, loaded.session
    entry.snapshot_seq = control.seq if control is not None else 0
    entry.orphaned = loaded.session.busy and not entry.work
    entry.feed.seq = max(entry.feed.seq, state.control.seq)


async def load_messages(
    store: Store, entry: Entry, command: cmd.ClientView | cmd.AppendMessages
) -> None:
    """Have the messages that a command names, and for a view those it may mean.

    A view may leave out what stands right behind a message where it ends.
    """
    state = entry.loaded()
    if state.tree.complete:
        return
    named = [message.id for message in command.messages]
    unknown = [message_id for message_id in named if message_id not in state.tree]
    if unknown:
        found = await store.paths(entry.session_id, unknown)
        state.tree.load(found.nodes, found.marks)
    if not len(state.tree) or _names_unknown_calls(state, command.messages):
        # Nothing is here, or a call is invented, or of a branch that is not here: a rare
        # page, so it may cost a look at everything.
        await load_tree(store, entry)
    if isinstance(command, cmd.ClientView) and not state.tree.complete:
        await _load_behind(store, entry, named)


async def _load_behind(store: Store, entry: Entry, named: Iterable[str]) -> None:
    """Have what a view may leave out. Each message is asked about once: more is folded in."""
    tree = entry.loaded().tree
    known = [node.message for node in map(tree.get, named) if node is not None]
    ends = {message.id for message in known if not isinstance(message, UserMessage)}
    while ends := ends - entry.looked_behind:
        found = await store.behind(entry.session_id, sorted(ends))
        tree.load(found.nodes, found.marks)
        entry.looked_behind |= ends
        ends = {node.message.id for node in found.nodes}


async def load_tree(store: Store, entry: Entry) -> None:
    """Have every branch."""
    tree = entry.loaded().tree
    if not tree.complete:
        found = await store.tree(entry.session_id)
        tree.load(found.nodes, found.marks)
        tree.complete = True


async def used_ids(store: Store, entry: Entry, command: cmd.Command) -> set[str]:
    """Return which of the ids that a command asks for were ever used in the session."""
    used: set[str] = set()
    for event_type, asked in (*_asked_ids(command), *_held_ids(entry.loaded())):
        found = await store.last_event(entry.session_id, type=event_type, subject=asked)
        if found is not None:
            used.add(asked)
    return used


def _asked_ids(command: cmd.Command) -> list[tuple[str, str]]:
    """Return the ids that a command wants to give, with the event that would have given them."""
    match command:
        case cmd.RaiseInterrupt(interrupt_id=str(asked)):
            return [("session.interrupted", asked)]
        case cmd.AppendMessages(turn_id=str(asked)) | cmd.ClientView(turn_id=str(asked)):
            return [("turn.started", asked)]
        case cmd.AnswerDecision(response=response):
            return _asked_by(response.actions)
        case _:
            return []


def _held_ids(state: State) -> list[tuple[str, str]]:
    """Return the ids that actions want to give which wait for the branch to be free."""
    return [asked for decision in state.control.decisions for asked in _asked_by(decision.held)]


def _asked_by(actions: Iterable[Action]) -> list[tuple[str, str]]:
    asked: list[tuple[str, str]] = []
    for action in actions:
        match action:
            case Interrupt(interrupt_id=str(wanted)):
                asked.append(("session.interrupted", wanted))
            case CallTool(id=str(wanted)):
                asked.append(("tool.call.requested", wanted))
            case _:
                continue
    return asked


def _names_unknown_calls(state: State, messages: Iterable[Message]) -> bool:
    """Whether messages that are new speak of tool calls that nobody in memory asks for."""
    for message in messages:
        if message.id in state.tree:
            continue
        match message:
            case ToolMessage():
                named = [message.tool_call_id]
            case AssistantMessage():
                named = [call.id for call in message.tool_calls]
            case _:
                continue
        if not all(map(state.tree.knows_call, named)):
            return True
    return False
