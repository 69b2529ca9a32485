"""A prompt's choices: what a channel shows, and what the chosen one means. Pure.

A channel names a choice by its index. The value is read from the recorded prompt, so that
nothing can be sent that was not offered.

Source: `protocol.md` section 6, "Answer a prompt".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.interrupts import options
from engine.core.messages import Json, members


@dataclass(frozen=True, slots=True)
class Choice:
    """One button of a prompt, or one line of its picker.

    `value` is the answer it stands for; `label` and `style` are for the display only.
    """

    label: str
    value: Json
    style: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return `{label, value, style?}`, as a prompt's own options are written."""
        shown: dict[str, Json] = {"label": self.label, "value": self.value}
        return shown if self.style is None else {**shown, "style": self.style}


APPROVE_OR_DECLINE = (
    Choice("Approve", {"approved": True}, "primary"),
    Choice("Decline", {"approved": False}, "danger"),
)
"""What a prompt is shown with that asks something and says nothing of its answers."""


def choices(payload: Json) -> Sequence[Choice]:
    """Return what a channel offers for the payload of an interrupt, in the order of the indexes.

    1. Its `metadata.options`, but for those without a value.
    2. A `message` with neither options nor a `responseSchema`: Approve and Decline.
    3. Else none: the answer is written by hand.
    """
    offered = options(payload)
    if offered is not None:
        return [_choice(index, option) for index, option in enumerate(offered)]
    prompt = members(payload)
    message = prompt.get("message")
    if not isinstance(message, str) or not message or members(prompt.get("responseSchema")):
        return ()
    return APPROVE_OR_DECLINE


def _choice(index: int, option: dict[str, Json]) -> Choice:
    """Return an option as it is shown; one without a label is named by its value or its place."""
    label, value, style = option.get("label"), option["value"], option.get("style")
    if not isinstance(label, str) or not label:
        label = value if isinstance(value, str) and value else f"Option {index + 1}"
    return Choice(label, value, style if isinstance(style, str) else None)
