"""Hot frames say what the protocol's models say."""

import json

from ag_ui.core import (
    BaseEvent,
    ReasoningMessageContentEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
)
from hypothesis import given
from hypothesis import strategies as st

from agui_server.agui.frames import MAX_DELTA, DeltaFrames, frame

KINDS: list[tuple[str, str, type[BaseEvent], str]] = [
    ("TEXT_MESSAGE_CONTENT", "messageId", TextMessageContentEvent, "message_id"),
    ("REASONING_MESSAGE_CONTENT", "messageId", ReasoningMessageContentEvent, "message_id"),
    ("TOOL_CALL_ARGS", "toolCallId", ToolCallArgsEvent, "tool_call_id"),
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(case=st.sampled_from(KINDS), item_id=TEXT, text=TEXT)
def test_a_prepared_prefix_gives_what_the_model_gives(
    case: tuple[str, str, type[BaseEvent], str], item_id: str, text: str
) -> None:
    """Both are one `data:` line with the same JSON value."""
    kind, field, model, name = case
    [hot] = DeltaFrames(kind, field, item_id).of(text)
    cold = frame(model.model_validate({"type": kind, name: item_id, "delta": text}))
    assert json.loads(hot[5:]) == json.loads(cold[5:])
    assert hot.endswith(b"\n\n")
    assert hot.count(b"\n") == 2
    assert b"\r" not in hot


def test_no_frame_is_larger_than_a_client_reads() -> None:
    """Case 38's kin: a huge delta is several frames, each under 1 MiB even when escaped."""
    text = "\x00" * (2 * MAX_DELTA + 1)
    frames = list(DeltaFrames("TEXT_MESSAGE_CONTENT", "messageId", "m").of(text))
    assert len(frames) == 3
    assert max(map(len, frames)) < 1 << 20
    assert "".join(json.loads(f[5:])["delta"] for f in frames) == text


def test_an_empty_text_is_no_frame() -> None:
    """Old clients reject empty deltas."""
    assert list(DeltaFrames("TEXT_MESSAGE_CONTENT", "messageId", "m").of("")) == []
