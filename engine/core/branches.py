"""Where a client's view of the conversation lands in the message tree.

A view is matched by message id, never by content. Clients resend history, leave
parts of it out, merge it and invent results: the numbers below are the rules of
`protocol.md` section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.core.errors import InvalidView
from engine.core.messages import (
    ActivityMessage,
    AssistantMessage,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from engine.core.state import State
from engine.core.tree import Tree
from engine.core.worker import ClientMessages, ToolFinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """A view, matched.

    `at` is the message the view ends on in the tree (`None`: above every message),
    `remainder` what is new below it. `instructions` reach the model for this input
    only. `tool_answers` end open client calls. `asks` says whether the view, as it
    was sent, ends on a user or tool message.
    """

    at: str | None
    remainder: tuple[Message, ...]
    instructions: tuple[SystemMessage, ...]
    tool_answers: tuple[ToolMessage, ...]
    asks: bool
    unknown_history: bool


_SAID = (UserMessage, AssistantMessage)


def land(state: State, view: Sequence[Message]) -> Landing:
    """Match a view against the tree.

    Raises:
        InvalidView: a recorded user or assistant message stands behind new ones.
    """
    accepted = set(accepted_ids(state))
    kept, instructions, answers = _take_out(state, view, accepted)
    shown = {c.id for m in view if isinstance(m, AssistantMessage) for c in m.tool_calls}
    at, matched = _match(state.tree, kept, shown, accepted)
    if matched < len(kept) and kept[matched].id in state.tree:
        # A result of another branch may have led astray: the run without any may be longer.
        said = [m for m in kept if isinstance(m, _SAID) or m.id not in state.tree]
        elsewhere, longer = _match(state.tree, said, shown, accepted)
        if len(said) - longer < len(kept) - matched:
            at, matched, kept = elsewhere, longer, said
    at = _pass_over(state, at, shown)
    remainder = _remainder(state.tree, kept[matched:], accepted, at)
    return Landing(
        at=at,
        remainder=remainder,
        instructions=instructions,
        tool_answers=answers,
        asks=bool(view) and isinstance(view[-1], UserMessage | ToolMessage),
        unknown_history=bool(remainder) and matched == 0 and not state.tree.is_empty,
    )


def land_at_head(state: State, messages: Sequence[Message]) -> Landing:
    """Take messages at the head, wherever that is; those known already are dropped."""
    known = set(accepted_ids(state)) | {m.id for m in messages if m.id in state.tree}
    others = [m for m in messages if not isinstance(m, ToolMessage)]
    return Landing(
        at=state.control.head,
        remainder=_remainder(
            state.tree, [m for m in others if m.id not in known], known, state.control.head
        ),
        instructions=(),
        tool_answers=tuple(
            m
            for m in messages
            if isinstance(m, ToolMessage) and m.id not in known and _ends_call_here(state, m)
        ),
        asks=True,
        unknown_history=False,
    )


def accepted_ids(state: State) -> dict[str, str | None]:
    """Return input that is accepted and not yet recorded, with its turn: it counts as known."""
    waiting = [
        (message.id, decision.turn_id)
        for decision in state.control.decisions
        if isinstance(decision.trigger, ClientMessages)
        for message in decision.trigger.messages
    ]
    queued = [(message.id, turn.id) for turn in state.control.queue for message in turn.messages]
    results = [
        (decision.trigger.message_id, decision.turn_id)
        for decision in state.control.decisions
        if isinstance(decision.trigger, ToolFinished) and decision.trigger.message_id is not None
    ]
    return {
        message_id: turn_id
        for message_id, turn_id in (*waiting, *queued, *results)
        if message_id not in state.tree
    }


def _ends_call_here(state: State, message: ToolMessage) -> bool:
    call = state.call(message.tool_call_id)
    return call is not None and call.kind == "client" and not state.is_parked(call.turn_id)


def _ends_client_call(state: State, message: ToolMessage) -> bool:
    call = state.call(message.tool_call_id)
    return call is not None and call.kind == "client"


def _take_out(
    state: State, view: Sequence[Message], accepted: set[str]
) -> tuple[list[Message], tuple[SystemMessage, ...], tuple[ToolMessage, ...]]:
    """Rule 0: take out what clients add by themselves."""
    last_known = max(
        (i for i, m in enumerate(view) if m.id in state.tree or m.id in accepted), default=-1
    )
    kept: list[Message] = []
    instructions: list[SystemMessage] = []
    answers: list[ToolMessage] = []
    for index, message in enumerate(view):
        if message.id in state.tree or message.id in accepted:
            kept.append(message)
            continue
        match message:
            case ReasoningMessage() | ActivityMessage():
                continue
            case SystemMessage() if index < last_known:
                instructions.append(message)
            case ToolMessage():
                if _ends_client_call(state, message):
                    answers.append(message)
                elif not _is_known(state, message.tool_call_id):
                    kept.append(message)
            case _:
                kept.append(message)
    return kept, tuple(instructions), tuple(answers)


def _is_known(state: State, call_id: str) -> bool:
    """Whether the engine knows a call: a message shows it, it is open, or its end waits."""
    return (
        state.tree.knows_call(call_id)
        or state.call(call_id) is not None
        or any(
            isinstance(d.trigger, ToolFinished) and d.trigger.id == call_id
            for d in state.control.decisions
        )
    )


def _match(
    tree: Tree, kept: Sequence[Message], shown: set[str], accepted: set[str]
) -> tuple[str | None, int]:
    """Rule 1: the longest run of leading messages that lie, in order, on one recorded path."""
    at: str | None = None
    for index, message in enumerate(kept):
        if message.id in accepted:
            continue
        if message.id not in tree:
            return at, index
        if _follows(tree, at, message.id, shown):
            at = message.id
        elif isinstance(message, UserMessage | AssistantMessage):
            return at, index
        # Else a result or a thought that stands above already (views show results in the
        # order of the calls, the tree has them as they arrived), or on another branch.
    return at, len(kept)


def _follows(tree: Tree, at: str | None, message_id: str, shown: set[str]) -> bool:
    """Whether a message stands below `at` with nothing between that a client must show."""
    node = tree.get(message_id)
    parent = node.parent_id if node is not None else None
    for above in tree.upward(parent):
        if above.message.id == at:
            return True
        if not _may_be_missing(above.message, shown):
            return False
    return at is None


def _may_be_missing(message: Message, shown: set[str]) -> bool:
    match message:
        case UserMessage():
            return False
        case AssistantMessage(content=content, tool_calls=calls):
            return not content or _shows(calls, shown)
        case _:
            return True


def _shows(calls: Sequence[object], shown: set[str]) -> bool:
    return bool(calls) and all(getattr(call, "id", None) in shown for call in calls)


def _pass_over(state: State, at: str | None, shown: set[str]) -> str | None:
    """Rule 1, its end: results and thoughts right behind the last matched message belong to it."""
    matched = state.tree.get(at)
    if matched is None or isinstance(matched.message, UserMessage):
        return at
    while True:
        behind = [n for n in state.tree.children(at) if _belongs(n.message, shown)]
        if not behind:
            return at
        # Of several the one on the active branch, else the newest.
        here = [n for n in behind if state.tree.is_on_path(n.message.id, state.control.head)]
        at = (here or behind)[-1].message.id


def _belongs(message: Message, shown: set[str]) -> bool:
    match message:
        case ToolMessage() | ReasoningMessage() | ActivityMessage():
            return True
        case AssistantMessage(tool_calls=calls):
            return _shows(calls, shown)
        case _:
            return False


def _remainder(
    tree: Tree, messages: Sequence[Message], accepted: set[str], at: str | None
) -> tuple[Message, ...]:
    """Rule 2: what is new.

    Of a reply the engine did not record only the text is taken, and the calls that the log
    knows. Not those that stand on its path already: a model reads each call once.
    """
    new: list[Message] = []
    seen = set(accepted)
    for message in messages:
        if message.id in seen:
            continue
        seen.add(message.id)
        if message.id in tree:
            if isinstance(message, UserMessage | AssistantMessage):
                raise InvalidView(message.id)
            continue
        if isinstance(message, AssistantMessage):
            if message.content:
                known = tuple(c for c in message.tool_calls if tree.knows_call(c.id))
                here = _asked_above(tree, at) if known else set[str]()
                calls = tuple(call for call in known if call.id not in here)
                new.append(replace(message, tool_calls=calls))
            continue
        new.append(message)
    return tuple(new)


def _asked_above(tree: Tree, at: str | None) -> set[str]:
    return {
        call.id
        for node in tree.upward(at)
        if isinstance(node.message, AssistantMessage)
        for call in node.message.tool_calls
    }
