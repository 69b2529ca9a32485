"""Snapshots, and the part of the message tree that comes with them. On each kind of store."""

from collections.abc import Sequence

import pytest

from engine.core.events import AgentUpdated, HeadMoved, SharedStateUpdated, StateUpdated
from engine.core.state import Control
from engine.core.tree import Mark, Node
from engine.store.protocol import Branches, Store
from tests.store.sample import append, commit, created, replied, said


def places(nodes: Sequence[Node]) -> list[tuple[str, str | None, int, int]]:
    """Return where each node stands: id, parent, seq, depth."""
    return [(n.message.id, n.parent_id, n.seq, n.depth) for n in nodes]


async def branching(store: Store) -> Control:
    """Store m1 ← m2 ← m3 and a branch m1 ← n2, on which the snapshot's path ends."""
    snapshot = Control(session_id="s1", seq=5, head="n2", state={"x": None})
    bodies = (created(), said("m1"), replied("m2", "m1"), said("m3", "m2"), replied("n2", "m1"))
    await commit(store, append(*bodies, snapshot=snapshot), append(said("n3", "n2"), after=5))
    return snapshot


async def test_a_snapshot_replaces_the_log_before_it(store: Store) -> None:
    """`load` gives the newest snapshot, its active path only, and the events behind it."""
    snapshot = await branching(store)
    loaded = await store.load("s1")
    assert loaded
    assert loaded.snapshot == snapshot
    assert places(loaded.path.nodes) == [("m1", None, 2, 0), ("n2", "m1", 5, 1)]
    assert loaded.path.nodes[0].turn_id == "turn-1"
    assert [event.seq for event in loaded.events] == [6]

    newer = Control(session_id="s1", seq=7, head="m3")
    await commit(store, append(HeadMoved(message_id="m3"), after=6, snapshot=newer))
    loaded = await store.load("s1")
    assert loaded
    assert loaded.snapshot == newer
    assert [node.message.id for node in loaded.path.nodes] == ["m1", "m2", "m3"]
    assert loaded.events == ()


async def test_a_snapshot_before_any_message_has_no_path(store: Store) -> None:
    """A snapshot whose head is `None` comes with no nodes."""
    await commit(store, append(created(), snapshot=Control(session_id="s1", seq=1)))
    loaded = await store.load("s1")
    assert loaded
    assert (loaded.path.nodes, loaded.events) == ((), ())


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(["zz", "'"], [], id="unknown ids"),
        pytest.param(["m1"], ["m1"], id="a root"),
        pytest.param(["n3"], ["m1", "n2", "n3"], id="a leaf"),
        pytest.param(["n3", "m3", "zz"], ["m1", "m2", "m3", "n2", "n3"], id="two branches meet"),
        pytest.param(["m3", "m3", "m2"], ["m1", "m2", "m3"], id="one above another"),
    ],
)
async def test_paths(store: Store, asked: list[str], found: list[str]) -> None:
    """`paths` returns the messages and all above them once, parents first, with their depths."""
    await branching(store)
    nodes = (await store.paths("s1", asked)).nodes
    depth = {"m1": 0, "m2": 1, "m3": 2, "n2": 1, "n3": 2}
    assert [(n.message.id, n.depth) for n in nodes] == [(name, depth[name]) for name in found]


async def test_a_long_path_is_walked_whole(store: Store) -> None:
    """A path of a thousand messages comes back in one piece."""
    bodies = [said(f"m{n}", f"m{n - 1}" if n else None) for n in range(1000)]
    await commit(store, append(*bodies))
    nodes = (await store.paths("s1", ["m999"])).nodes
    assert [node.depth for node in nodes] == list(range(1000))


async def test_what_follows_a_snapshot_finds_its_branch(store: Store) -> None:
    """Behind a snapshot the head may go back to a branch that the snapshot does not show."""
    await branching(store)
    more = append(HeadMoved(message_id="m3"), said("m4", "m3"), said("n4", "n3"), after=6)
    await commit(store, more)
    loaded = await store.load("s1")
    assert loaded
    assert [node.message.id for node in loaded.path.nodes] == ["m1", "m2", "m3", "n2"]
    assert [event.seq for event in loaded.events] == [6, 7, 8, 9]


async def test_a_path_brings_where_its_values_were_written(store: Store) -> None:
    """The newest of each kind at each of its messages, and above them all; no other branch's."""
    await branching(store)
    written = (
        StateUpdated(state=1),
        StateUpdated(state=2, anchor="m2"),
        StateUpdated(state=3, anchor="m2"),
        SharedStateUpdated(state=4, anchor="m1"),
        AgentUpdated(agent={}, anchor="n2"),
    )
    await commit(store, append(*written, after=6))
    above = Mark("state", None, 7)
    found = {
        "m3": {above, Mark("state", "m2", 9), Mark("shared_state", "m1", 10)},
        "n3": {above, Mark("agent", "n2", 11), Mark("shared_state", "m1", 10)},
    }
    for message_id, marks in found.items():
        path = await store.paths("s1", [message_id])
        assert set(path.marks) == marks
    whole = await store.tree("s1")
    assert set(whole.marks) == found["m3"] | found["n3"]
    assert [node.message.id for node in whole.nodes] == ["m1", "m2", "m3", "n2", "n3"]


async def test_what_stands_behind_a_message(store: Store) -> None:
    """All but what people said: a client's view may leave it out."""
    await branching(store)
    await commit(store, append(StateUpdated(state=1, anchor="n2"), after=6))
    behind = await store.behind("s1", ["m1"])
    assert [node.message.id for node in behind.nodes] == ["m2", "n2"]
    assert behind.marks == (Mark("state", "n2", 7),)
    assert await store.behind("s1", ["m3"]) == Branches()
    named = await store.behind("s1", ["m1", "m2"])
    assert [node.message.id for node in named.nodes] == ["n2"]
