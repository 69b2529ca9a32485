"""Text that every JSON encoder and every browser can carry.

A Python string may hold a lone UTF-16 surrogate; UTF-8 cannot. Text is repaired
where it enters the engine (model output, tool output, client input), so nothing
behind that border has to think of it again.
"""

import re
from typing import Any, cast

_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def repair(text: str) -> str:
    """Join surrogate pairs and replace each lone surrogate by U+FFFD.

    Text without surrogates is returned as the same object.
    """
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def repair_json(value: Any) -> Any:
    """Repair every string (keys too) of a JSON value; untouched values are shared."""
    match value:
        case str():
            return repair(value)
        case list():
            return [repair_json(item) for item in cast("list[Any]", value)]
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {repair(key): repair_json(item) for key, item in items}
        case _:
            return value


class SurrogateJoiner:
    """Repair a text that arrives in pieces, where a pair may be cut in two.

    The first half of a pair is held back until the next piece shows whether its
    second half follows. Call :meth:`flush` when the text ends.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be shown now: repaired text, possibly empty."""
        # `isascii` looks at a flag of the string, not at its characters.
        if not self._held and (piece.isascii() or _SURROGATE.search(piece) is None):
            return piece
        text = self._held + piece
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held = text[-1]
            text = text[:-1]
        else:
            self._held = ""
        return repair(text)

    def flush(self) -> str:
        """Return what was held: U+FFFD for half a pair, else nothing."""
        held, self._held = self._held, ""
        return _REPLACEMENT if held else ""
