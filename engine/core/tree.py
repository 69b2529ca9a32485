"""The message tree: every message ever recorded, each with a parent.

A `Tree` is a view on a shared, append-only store, read up to a length. Recording a
message gives a new view and leaves the old one as it was, so a commit that fails
costs dropping one reference. Views of one session are used one after another,
never side by side: appending to an older view forgets what was appended since.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.core.messages import Message


@dataclass(frozen=True, slots=True)
class Node:
    """A recorded message. `seq` is that of its event, `depth` its distance from the root."""

    message: Message
    parent_id: str | None
    seq: int
    depth: int
    turn_id: str | None


class Tree:
    """Messages by id, with their parents. `complete` is false when only some were loaded."""

    __slots__ = ("_ids", "_length", "_nodes", "complete")

    def __init__(self, *, complete: bool = True) -> None:
        self._nodes: dict[str, Node] = {}
        self._ids: list[str] = []
        self._length = 0
        self.complete = complete

    def __len__(self) -> int:
        return self._length

    def __contains__(self, message_id: object) -> bool:
        if len(self._ids) != self._length:
            self._forget()
        return message_id in self._nodes

    def get(self, message_id: str | None) -> Node | None:
        """Return the node of a message, or `None` when it is not recorded (or not loaded)."""
        if message_id is None or message_id not in self:
            return None
        return self._nodes[message_id]

    def append(
        self, message: Message, parent_id: str | None, seq: int, turn_id: str | None
    ) -> "Tree":
        """Return a tree that also holds `message` below `parent_id`."""
        if len(self._ids) != self._length:
            self._forget()
        parent = self._nodes.get(parent_id) if parent_id is not None else None
        node = Node(message, parent_id, seq, parent.depth + 1 if parent else 0, turn_id)
        self._nodes[message.id] = node
        self._ids.append(message.id)
        grown = Tree(complete=self.complete)
        grown._nodes, grown._ids, grown._length = self._nodes, self._ids, len(self._ids)
        return grown

    def load(self, nodes: Iterable[Node]) -> None:
        """Add recorded messages that were not loaded so far (parents before children)."""
        if len(self._ids) != self._length:
            self._forget()
        for node in nodes:
            if node.message.id not in self._nodes:
                self._nodes[node.message.id] = node
                self._ids.append(node.message.id)
        self._length = len(self._ids)

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

    def _forget(self) -> None:
        for message_id in self._ids[self._length :]:
            del self._nodes[message_id]
        del self._ids[self._length :]
