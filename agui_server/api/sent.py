"""Messages of a body, beyond their shape: ids, content parts, and no id twice.

The parts of a content are read as a run reads them. What a run leaves out with a notice is
refused here, for nobody would read the notice.
"""

from collections.abc import Sequence
from dataclasses import replace

from agui_server.agui.inbound_parts import read_content
from agui_server.agui.wire import BadRequest, Fields, Notices
from agui_server.api.refusals import Refusal, invalid
from engine.core.ids import is_id
from engine.core.messages import AssistantMessage, Message, ToolMessage, UserMessage


class Strict(Notices):
    """Notices that refuse."""

    def ignored(self, code: str, path: str, name: str) -> None:
        """Refuse what would be left out."""
        if code == "unknown_field":
            raise invalid(f"{path}.{name}", "is not a known member")
        raise invalid(f"{path}.type", f"{name!r} is not a known type")


def checked(messages: Sequence[Message], path: str) -> tuple[Message, ...]:
    """Return the messages of a list, each id once; one that repeats another is left out.

    Raises:
        Refusal: 422 `invalid_input` naming the field below `path`.
    """
    found: dict[str, Message] = {}
    for index, message in enumerate(messages):
        read = checked_message(message, f"{path}[{index}]")
        if found.setdefault(read.id, read) != read:
            raise invalid(f"{path}[{index}].id", "is that of another message of this list")
    return tuple(found.values())


def checked_message(message: Message, path: str) -> Message:
    """Return a message whose ids can be ids and whose content can be shown.

    Raises:
        Refusal: 422 `invalid_input` naming the field below `path`.
    """
    _check_id(message.id, f"{path}.id")
    match message:
        case AssistantMessage():
            for index, call in enumerate(message.tool_calls):
                _check_id(call.id, f"{path}.tool_calls[{index}].id")
            return message
        case UserMessage():
            return replace(message, content=_content(message, path))
        case ToolMessage():
            _check_id(message.tool_call_id, f"{path}.tool_call_id")
            return replace(message, content=_content(message, path))
        case _:
            return message


def _check_id(value: str, path: str) -> None:
    if not is_id(value):
        raise invalid(path, "must be 1 to 256 characters, none of them a control")


def _content(message: UserMessage | ToolMessage, path: str) -> str | list[object]:
    if isinstance(message.content, str):
        return message.content
    try:
        return read_content(Fields({"content": message.content}, path, Strict()))
    except Refusal:
        raise
    except BadRequest as error:
        field, _, sentence = error.detail.partition(": ")
        raise invalid(field, sentence) from None
