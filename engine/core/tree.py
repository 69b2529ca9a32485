"""The message tree: every message ever recorded, each with a parent.

A `Tree` is a view on a shared, append-only store, read up to a length. Recording a
message gives a new view and leaves the old one as it was: it can be read while a commit
is under way, and a commit that fails costs dropping one reference. Only appending is not
for everybody: appending to an older view forgets what was appended since.

Beside its messages a tree knows where values were written (`Mark`), not what they are.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from engine.core.messages import AssistantMessage, Message, ToolMessage

ValueKind: TypeAlias = Literal["state", "shared_state", "agent"]
"""The worker's memory, the state that clients see, the agent's config."""


@dataclass(frozen=True, slots=True)
class Node:
    """A recorded message. `seq` is that of its event, `depth` its distance from the root."""

    message: Message
    parent_id: str | None
    seq: int
    depth: int
    turn_id: str | None


@dataclass(frozen=True, slots=True)
class Mark:
    """A value was written while `anchor` was the head. `seq` is that of its event."""

    kind: ValueKind
    anchor: str | None
    seq: int


class Tree:
    """Messages by id, with their parents. `complete` is false when only some were loaded."""

    __slots__ = (
        "_asking",
        "_children",
        "_entries",
        "_index",
        "_length",
        "_marks",
        "_size",
        "complete",
    )

    def __init__(self, *, complete: bool = True) -> None:
        self._entries: list[Node | Mark] = []
        self._index: dict[str, int] = {}
        self._children: dict[str | None, list[int]] = {}
        self._marks: dict[str | None, list[int]] = {}
        self._asking: dict[str, list[int]] = {}
        self._length = 0
        self._size = 0
        self.complete = complete

    def __len__(self) -> int:
        return self._size

    def __contains__(self, message_id: object) -> bool:
        return isinstance(message_id, str) and self.get(message_id) is not None

    @property
    def is_empty(self) -> bool:
        """Whether no message is recorded; of what was not loaded, that at least one is."""
        return self.complete and self._size == 0

    # ------------------------------------------------------------- growing

    def append(
        self, message: Message, parent_id: str | None, seq: int, turn_id: str | None
    ) -> "Tree":
        """Return a tree that also holds `message` below `parent_id`."""
        parent = self.get(parent_id)
        depth = parent.depth + 1 if parent else 0
        self._add(Node(message, parent_id, seq, depth, turn_id))
        return self._grown(self._size + 1)

    def mark(self, kind: ValueKind, anchor: str | None, seq: int) -> "Tree":
        """Return a tree that also knows that a value was written at `anchor`."""
        self._add(Mark(kind, anchor, seq))
        return self._grown(self._size)

    def load(self, nodes: Iterable[Node], marks: Iterable[Mark] = ()) -> None:
        """Add what is recorded and was not loaded so far (parents before children)."""
        for node in nodes:
            if node.message.id not in self:
                parent = self.get(node.parent_id)
                self._add(replace(node, depth=parent.depth + 1 if parent else 0))
                self._length += 1
                self._size += 1
        for mark in marks:
            if mark not in self._marks_at(mark.anchor):
                self._add(mark)
                self._length += 1

    def _grown(self, size: int) -> "Tree":
        grown = Tree(complete=self.complete)
        grown._entries, grown._index = self._entries, self._index
        grown._children, grown._marks = self._children, self._marks
        grown._asking = self._asking
        grown._length, grown._size = len(self._entries), size
        return grown

    def _add(self, entry: Node | Mark) -> None:
        while len(self._entries) > self._length:
            self._forget(self._entries.pop())
        match entry:
            case Node():
                self._index[entry.message.id] = self._length
                self._children.setdefault(entry.parent_id, []).append(self._length)
                for call_id in _calls_of(entry):
                    self._asking.setdefault(call_id, []).append(self._length)
            case Mark():
                self._marks.setdefault(entry.anchor, []).append(self._length)
        self._entries.append(entry)

    def _forget(self, entry: Node | Mark) -> None:
        """Take out the entry that was added last: it is also the last of each of its lists."""
        match entry:
            case Node():
                del self._index[entry.message.id]
                self._children[entry.parent_id].pop()
                for call_id in _calls_of(entry):
                    self._asking[call_id].pop()
            case Mark():
                self._marks[entry.anchor].pop()

    # ------------------------------------------------------------- reading

    def get(self, message_id: str | None) -> Node | None:
        """Return the node of a message, or `None` when it is not recorded (or not loaded)."""
        index = self._length if message_id is None else self._index.get(message_id, self._length)
        entry = self._entries[index] if index < self._length else None
        return entry if isinstance(entry, Node) else None

    def nodes(self) -> Iterator[Node]:
        """Walk over every message that is loaded, in the order they were."""
        for entry in self._entries[: self._length]:
            if isinstance(entry, Node):
                yield entry

    def children(self, message_id: str | None) -> list[Node]:
        """Return what was recorded right below a message (`None`: at the root), oldest first."""
        entries = (self._entries[i] for i in self._children.get(message_id, ()) if i < self._length)
        found = [entry for entry in entries if isinstance(entry, Node)]
        return sorted(found, key=lambda node: node.seq)

    def knows_call(self, call_id: str) -> bool:
        """Whether a recorded message asks for a tool call with this id, or is its result."""
        return any(index < self._length for index in self._asking.get(call_id, ()))

    def path(self, head_id: str | None) -> list[Node]:
        """Return the nodes from the root to `head_id`."""
        nodes = list(self.upward(head_id))
        nodes.reverse()
        return nodes

    def upward(self, message_id: str | None) -> Iterator[Node]:
        """Walk from a message to the root, itself first."""
        node = self.get(message_id)
        while node is not None:
            yield node
            node = self.get(node.parent_id)

    def child_towards(self, ancestor_id: str, message_id: str | None) -> Node | None:
        """Return the child of `ancestor_id` on the way down to `message_id`.

        `None` when they are the same message, or when the first is not above the second.
        """
        ancestor = self.get(ancestor_id)
        if ancestor is None:
            return None
        for node in self.upward(message_id):
            if node.depth <= ancestor.depth:
                return None
            if node.parent_id == ancestor_id:
                return node
        return None

    def is_on_path(self, message_id: str, head_id: str | None) -> bool:
        """Whether a message is `head_id` or stands above it."""
        return message_id == head_id or self.child_towards(message_id, head_id) is not None

    def in_force(self, head_id: str | None) -> dict[ValueKind, int]:
        """Return which event wrote each value that holds on the path to `head_id`.

        That is the newest one at the lowest message that has any. A kind that was never
        written there is left out.
        """
        found: dict[ValueKind, int] = {}
        if not self._marks:
            return found
        for anchor in (*(node.message.id for node in self.upward(head_id)), None):
            newest: dict[ValueKind, int] = {}
            for mark in self._marks_at(anchor):
                newest[mark.kind] = max(mark.seq, newest.get(mark.kind, 0))
            found = newest | found
        return found

    def _marks_at(self, anchor: str | None) -> list[Mark]:
        entries = (self._entries[i] for i in self._marks.get(anchor, ()) if i < self._length)
        return [entry for entry in entries if isinstance(entry, Mark)]


def _calls_of(node: Node) -> list[str]:
    match node.message:
        case AssistantMessage(tool_calls=calls):
            return [call.id for call in calls]
        case ToolMessage(tool_call_id=call_id):
            return [call_id]
        case _:
            return []
