"""The message tree: every message ever recorded, each with a parent.

A `Tree` is a view on a shared, append-only store, read up to a length. Recording a
message gives a new view and leaves the old one as it was: it can be read while a commit
is under way, and a commit that fails costs dropping one reference. Only appending is not
for everybody: appending to an older view forgets what was appended since.
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

    __slots__ = ("_children", "_index", "_length", "_nodes", "complete")

    def __init__(self, *, complete: bool = True) -> None:
        self._nodes: list[Node] = []
        self._index: dict[str, int] = {}
        self._children: dict[str | None, list[int]] = {}
        self._length = 0
        self.complete = complete

    def __len__(self) -> int:
        return self._length

    def __contains__(self, message_id: object) -> bool:
        return isinstance(message_id, str) and self.get(message_id) is not None

    def get(self, message_id: str | None) -> Node | None:
        """Return the node of a message, or `None` when it is not recorded (or not loaded)."""
        index = self._length if message_id is None else self._index.get(message_id, self._length)
        return self._nodes[index] if index < self._length else None

    def append(
        self, message: Message, parent_id: str | None, seq: int, turn_id: str | None
    ) -> "Tree":
        """Return a tree that also holds `message` below `parent_id`."""
        parent = self.get(parent_id)
        self._add(Node(message, parent_id, seq, parent.depth + 1 if parent else 0, turn_id))
        grown = Tree(complete=self.complete)
        grown._nodes, grown._index, grown._children = self._nodes, self._index, self._children
        grown._length = len(self._nodes)
        return grown

    def load(self, nodes: Iterable[Node]) -> None:
        """Add recorded messages that were not loaded so far (parents before children)."""
        for node in nodes:
            if node.message.id not in self:
                self._add(node)
                self._length += 1

    def children(self, message_id: str | None) -> list[Node]:
        """Return what was recorded right below a message (`None`: at the root), oldest first."""
        indexes = self._children.get(message_id, ())
        return [self._nodes[index] for index in indexes if index < self._length]

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

    def _add(self, node: Node) -> None:
        while len(self._nodes) > self._length:
            forgotten = self._nodes.pop()
            del self._index[forgotten.message.id]
            # The last one added is the last child of its parent.
            self._children[forgotten.parent_id].pop()
        self._index[node.message.id] = self._length
        self._children.setdefault(node.parent_id, []).append(self._length)
        self._nodes.append(node)
