"""The tree: views on one store, none of which can spoil another by reading."""

from hypothesis import given
from hypothesis import strategies as st

from engine.core.messages import UserMessage
from engine.core.tree import Node, Tree


def grown(tree: Tree, *ids: str) -> Tree:
    """Append messages one below the other, the first at the root."""
    parent = None
    for message_id in ids:
        tree = tree.append(UserMessage(id=message_id, content=""), parent, len(tree) + 1, None)
        parent = message_id
    return tree


def shown(tree: Tree, *ids: str) -> list[str]:
    """Which of these a view holds."""
    return [message_id for message_id in ids if message_id in tree]


def test_reading_an_older_view_leaves_the_newer_one_whole() -> None:
    """A worker's question is built while a commit is under way."""
    old = grown(Tree(), "a")
    new = old.append(UserMessage(id="b", content=""), "a", 2, None)

    assert shown(old, "a", "b") == ["a"]
    assert [n.message.id for n in old.path("a")] == ["a"]
    assert old.children("a") == []
    assert shown(new, "a", "b") == ["a", "b"]
    assert [n.message.id for n in new.path("b")] == ["a", "b"]
    assert [n.message.id for n in new.children("a")] == ["b"]


def test_appending_to_an_older_view_forgets_what_failed() -> None:
    """A commit that failed costs dropping one reference."""
    old = grown(Tree(), "a")
    old.append(UserMessage(id="lost", content=""), "a", 2, None)
    kept = old.append(UserMessage(id="b", content=""), "a", 2, None)

    assert shown(kept, "a", "lost", "b") == ["a", "b"]
    assert [n.message.id for n in kept.children("a")] == ["b"]
    assert len(kept) == 2


def test_what_is_loaded_is_known_and_not_new() -> None:
    """Loading twice changes nothing."""
    tree = Tree(complete=False)
    node = Node(UserMessage(id="x", content=""), None, 7, 0, None)
    tree.load([node])
    tree.load([node])
    assert len(tree) == 1
    assert tree.get("x") == node


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25))
def test_views_never_change(steps: list[tuple[int, int]]) -> None:
    """Whatever is tried and dropped, a view that is current reads what it always read."""
    current, path = Tree(), list[str]()
    for number, (kind, parent) in enumerate(steps):
        message = UserMessage(id=f"m{number}", content="")
        below = path[parent % len(path)] if path and parent else None
        tried = current.append(message, below, number, None)
        assert shown(current, *path) == path
        assert message.id not in current
        if kind > 3:
            current = tried
            path.append(message.id)
        assert [m for m in path if m in current] == path
