"""What a run has opened and not closed yet. Everything is closed before the end. Pure.

Source: `agui-1.0.md` D, P21, P27, P41.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ag_ui.core import (
    BaseEvent,
    ReasoningEndEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

from agui_server.agui.frames import DeltaFrames
from engine.runtime.live import PartKind


@dataclass(frozen=True, slots=True)
class OpenItem:
    """One open message, thought or tool call."""

    kind: PartKind
    id: str
    deltas: DeltaFrames


class OpenItems:
    """The items a run has open, in the order they were opened."""

    def __init__(self) -> None:
        self._open: dict[str, OpenItem] = {}

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._open

    def deltas(self, item_id: str, text: str) -> Iterator[bytes]:
        """Return the frames that carry more text of an open item."""
        return self._open[item_id].deltas.of(text)

    def open(
        self, kind: PartKind, item_id: str, *, name: str = "", parent_id: str | None = None
    ) -> list[BaseEvent]:
        """Open an item; return its opening events."""
        match kind:
            case "text":
                fields = ("TEXT_MESSAGE_CONTENT", "messageId")
                opening: list[BaseEvent] = [
                    TextMessageStartEvent(message_id=item_id, role="assistant")
                ]
            case "reasoning":
                fields = ("REASONING_MESSAGE_CONTENT", "messageId")
                opening = [
                    ReasoningStartEvent(message_id=item_id),
                    ReasoningMessageStartEvent(message_id=item_id, role="reasoning"),
                ]
            case "tool":
                fields = ("TOOL_CALL_ARGS", "toolCallId")
                opening = [
                    ToolCallStartEvent(
                        tool_call_id=item_id, tool_call_name=name, parent_message_id=parent_id
                    )
                ]
        self._open[item_id] = OpenItem(kind, item_id, DeltaFrames(*fields, item_id))
        return opening

    def close(self, item_id: str) -> list[BaseEvent]:
        """Close an item; return its closing events, none when it is not open."""
        item = self._open.pop(item_id, None)
        if item is None:
            return []
        match item.kind:
            case "text":
                return [TextMessageEndEvent(message_id=item_id)]
            case "reasoning":
                return [
                    ReasoningMessageEndEvent(message_id=item_id),
                    ReasoningEndEvent(message_id=item_id),
                ]
            case "tool":
                return [ToolCallEndEvent(tool_call_id=item_id)]

    def close_all(self) -> list[BaseEvent]:
        """Close whatever is open."""
        return [event for item_id in list(self._open) for event in self.close(item_id)]
