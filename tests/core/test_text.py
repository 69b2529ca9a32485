"""Text that every encoder can carry; transcripts that every model accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.ids import is_id
from engine.core.messages import (
    AssistantMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    transcript,
)
from engine.core.text import SurrogateJoiner, repair, repair_json

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)


@given(ANY_TEXT)
def test_repaired_text_can_be_encoded(text: str) -> None:
    """Whatever comes in, UTF-8 takes it; what was fine stays what it was."""
    repaired = repair(text)
    assert repaired.encode("utf-8").decode("utf-8") == repaired
    assert repair(repaired) == repaired


@given(st.lists(ANY_TEXT, max_size=6))
def test_pieces_join_to_the_repaired_whole(pieces: list[str]) -> None:
    """However a text is cut, inside a pair too, what is shown is the repair of the whole."""
    joiner = SurrogateJoiner()
    shown = "".join(joiner.feed(piece) for piece in pieces) + joiner.flush()
    assert shown == repair("".join(pieces))


def test_json_is_repaired_to_its_keys() -> None:
    """Nothing of a value escapes."""
    assert repair_json({"\ud800": ["\udc00", {"a": 1}]}) == {"\ufffd": ["\ufffd", {"a": 1}]}


@pytest.mark.parametrize(
    ("value", "valid"),
    [("a", True), ("", False), ("x" * 256, True), ("x" * 257, False), ("a\nb", False)],
    ids=["short", "empty", "longest", "too long", "control"],
)
def test_ids(value: str, valid: bool) -> None:  # noqa: FBT001
    """1 to 256 characters, no control characters."""
    assert is_id(value) is valid


def test_results_stand_behind_their_calls_in_the_order_of_the_calls() -> None:
    """Whatever order they arrived in; a call without a result is told so."""
    calls = tuple(ToolCall(id=f"c{i}", name="t") for i in range(3))
    path = [
        UserMessage(id="u", content="x"),
        AssistantMessage(id="a", tool_calls=calls),
        ToolMessage(id="t2", tool_call_id="c2", content="two"),
        ToolMessage(id="t0", tool_call_id="c0", content="zero"),
        UserMessage(id="v", content="y"),
    ]
    sent = transcript(path)
    assert [m.role for m in sent] == ["user", "assistant", "tool", "tool", "tool", "user"]
    results = [m for m in sent if isinstance(m, ToolMessage)]
    assert [(m.tool_call_id, m.content) for m in results] == [
        ("c0", "zero"),
        ("c1", "no result"),
        ("c2", "two"),
    ]


def test_a_result_nobody_asked_for_is_not_sent() -> None:
    """No provider accepts one."""
    path = [
        UserMessage(id="u", content="x"),
        ToolMessage(id="t", tool_call_id="nobody", content="?"),
    ]
    assert transcript(path) == path[:1]
