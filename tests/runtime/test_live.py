"""Live text: one buffer, many readers, and what is recorded of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.messages import ToolCall
from engine.core.ports import Finish, ModelDelta, ReasoningDelta, TextDelta, ToolCallDelta
from engine.runtime.live import Cursor, LiveText


def live() -> LiveText:
    """An empty buffer whose calls are named in order."""
    ids = iter(f"call{i}" for i in range(100))
    return LiveText("c", 1, "m", new_id=lambda _: next(ids), changed=lambda: None)


def heard(text: LiveText, cursor: Cursor) -> list[tuple[str, str, bool, bool]]:
    """What a reader takes: part id, text, begins, ends."""
    return [(p.part.id, p.text, p.begins, p.ends) for p in text.read(cursor)]


def test_a_reader_takes_everything_since_its_last_visit_as_one_piece() -> None:
    """Who falls behind gets fewer, larger pieces; nothing is lost or repeated."""
    text = live()
    cursor = Cursor()
    text.add(TextDelta("a"))
    assert heard(text, cursor) == [("m", "a", True, False)]
    assert heard(text, cursor) == []
    for letter in "bcd":
        text.add(TextDelta(letter))
    assert heard(text, cursor) == [("m", "bcd", False, False)]
    text.close()
    assert heard(text, cursor) == [("m", "", False, True)]
    assert heard(text, cursor) == []


def test_reasoning_text_and_calls_are_parts_one_after_another() -> None:
    """Each has the id it is recorded under."""
    text = live()
    for delta in (
        ReasoningDelta("hm"),
        TextDelta("yes"),
        ToolCallDelta(0, name="t", arguments="{}"),
        Finish(),
    ):
        text.add(delta)
    text.close()
    assert [p[:2] for p in heard(text, Cursor())] == [
        ("m-reasoning", "hm"),
        ("m", "yes"),
        ("call0", "{}"),
    ]
    assert text.message().content == "yes"
    assert text.message().tool_calls == (ToolCall(id="call0", name="t", arguments="{}"),)
    assert [r.id for r in text.reasoning()] == ["m-reasoning"]


def test_calls_that_a_provider_mixes_are_shown_one_after_another() -> None:
    """Case 20: the second is held until the first has its arguments."""
    text = live()
    cursor = Cursor()
    text.add(ToolCallDelta(0, name="a", arguments='{"x'))
    text.add(ToolCallDelta(1, name="b", arguments='{"y"'))
    assert [p[0] for p in heard(text, cursor)] == ["call0"]
    text.add(ToolCallDelta(0, arguments='": 1}'))
    text.add(ToolCallDelta(1, arguments=": 2}"))
    text.close()
    assert heard(text, cursor) == [
        ("call0", '": 1}', False, True),
        ("call1", '{"y": 2}', True, True),
    ]
    assert [c.arguments for c in text.message().tool_calls] == ['{"x": 1}', '{"y": 2}']


def test_a_pair_cut_in_two_is_one_character() -> None:
    """The half is held until the other comes; a lone one is replaced at the end."""
    text = live()
    for half in ("\ud83d", "\ude00", "\ud83d"):
        text.add(TextDelta(half))
    text.close()
    assert text.message().content == "😀\ufffd"


def test_thoughts_that_a_reader_has_are_not_told_again() -> None:
    """It got them in a snapshot; only the rest comes, as a piece that begins."""
    text = live()
    text.add(ReasoningDelta("let me "))
    cursor = Cursor(given={0: 1})
    assert heard(text, cursor) == []
    text.add(ReasoningDelta("see"))
    text.add(TextDelta("ok"))
    assert heard(text, cursor) == [
        ("m-reasoning", "see", True, True),
        ("m", "ok", True, False),
    ]


def test_thoughts_that_are_over_are_skipped_whole() -> None:
    """No empty span is opened."""
    text = live()
    text.add(ReasoningDelta("hm"))
    text.add(TextDelta("ok"))
    assert heard(text, Cursor(given={0: 1})) == [("m", "ok", True, False)]


DELTAS: st.SearchStrategy[ModelDelta] = st.one_of(
    st.builds(TextDelta, st.text(max_size=4)),
    st.builds(ReasoningDelta, st.text(max_size=4)),
    st.builds(
        ToolCallDelta, st.integers(0, 2), st.sampled_from(['{"a', '": 1}', "{}", ""]), st.just("t")
    ),
)


@given(st.lists(DELTAS, max_size=20), st.sets(st.integers(0, 20)))
def test_every_reader_hears_what_is_recorded(deltas: list[ModelDelta], visits: set[int]) -> None:
    """However often it looks; each part begins once and ends once, one open at a time."""
    text = live()
    cursor = Cursor()
    got: list[Any] = []
    for index, delta in enumerate(deltas):
        text.add(delta)
        if index in visits:
            got.extend(text.read(cursor))
    text.close()
    got.extend(text.read(cursor))

    said: dict[str, str] = {}
    is_open: set[str] = set()
    for piece in got:
        part_id = piece.part.id
        assert piece.begins is (part_id not in said)
        assert piece.begins or part_id in is_open
        # One at a time; only the text may stay open while a thought is told.
        assert not piece.begins or part_id == "m" or is_open <= {"m"}
        said[part_id] = said.get(part_id, "") + piece.text
        is_open = is_open - {part_id} if piece.ends else is_open | {part_id}
    assert is_open == set()
    assert said == {part.id: part.text for part in text.parts}
    recorded = {c.id: c.arguments for c in text.message().tool_calls}
    told = {k: v for k, v in said.items() if k.startswith("call")}
    assert told.keys() == recorded.keys()
    assert all(recorded[k].startswith(v) for k, v in told.items())
    assert (text.message().content or "").startswith(said.get("m", ""))


def test_text_goes_on_after_a_thought() -> None:
    """One message, never opened twice; the thought is closed when the text goes on."""
    text = live()
    cursor = Cursor()
    for delta in (TextDelta("a"), ReasoningDelta("hm"), TextDelta("b")):
        text.add(delta)
    assert heard(text, cursor) == [("m", "ab", True, False), ("m-reasoning", "hm", True, True)]
    text.add(TextDelta("c"))
    text.close()
    assert heard(text, cursor) == [("m", "c", False, True)]


def test_text_after_a_tool_call_is_recorded_only() -> None:
    """Its message is closed; the record has it, and a snapshot will show it."""
    text = live()
    for delta in (TextDelta("a"), ToolCallDelta(0, name="t", arguments="{}"), TextDelta("b")):
        text.add(delta)
    text.close()
    assert "".join(p[1] for p in heard(text, Cursor()) if p[0] == "m") == "a"
    assert text.message().content == "ab"


@pytest.mark.parametrize("deltas", [[], [TextDelta("")]], ids=["nothing", "empty"])
def test_a_reply_without_text_has_none(deltas: list[ModelDelta]) -> None:
    """Not an empty string."""
    text = live()
    for delta in deltas:
        text.add(delta)
    text.close()
    assert text.message().content is None
