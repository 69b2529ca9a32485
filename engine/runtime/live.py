"""Live text: what a model has said of a reply that is not recorded yet.

One buffer per attempt of a model call, append-only; each reader has a cursor into
it and takes everything since then as one piece. Nothing is queued per reader and
nothing is dropped: whoever falls behind gets fewer, larger pieces.

Source: `architecture.md` section 3.
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from engine.core.messages import AssistantMessage, ReasoningMessage, ToolCall, Usage
from engine.core.ports import Finish, ModelDelta, ReasoningDelta, TextDelta, ToolCallDelta
from engine.core.text import SurrogateJoiner, repair

PartKind: TypeAlias = Literal["reasoning", "text", "tool"]


@dataclass(slots=True)
class Part:
    """A run of one kind of output. `id` is the id it is recorded under.

    `reasoning`: the reasoning message's id; `text`: the reply's; `tool`: the call's.
    """

    kind: PartKind
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    late: list[str] = field(default_factory=list[str])
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    closed: bool = False

    @property
    def text(self) -> str:
        """Everything told of this part so far."""
        return "".join(self.pieces)

    @property
    def whole(self) -> str:
        """What is recorded: also what came after the part was closed, which nobody was told."""
        return repair(self.text + "".join(self.late)) if self.late else self.text


@dataclass(frozen=True, slots=True)
class Piece:
    """What a reader gets: more of a part. `begins` and `ends` mark its first and last piece."""

    part: Part
    text: str
    begins: bool
    ends: bool


@dataclass(slots=True)
class Cursor:
    """How far a reader has come: the pieces it took of each part, and which parts ended.

    `given` are the pieces of parts that it got by other means before it began.
    """

    taken: dict[int, int] = field(default_factory=dict[int, int])
    ended: int = 0
    given: dict[int, int] = field(default_factory=dict[int, int])


class LiveText:
    """The output of one attempt of a model call.

    Parts are told one after another. Only the text may go on after a thought that came
    between: a reply has one text, and an item that was closed is never opened again.
    """

    def __init__(
        self,
        call_id: str,
        attempt: int,
        message_id: str,
        *,
        new_id: Callable[[str], str],
        changed: Callable[[], None],
    ) -> None:
        self.call_id = call_id
        self.attempt = attempt
        self.message_id = message_id
        self.parts: list[Part] = []
        self.closed = False
        self.usage: tuple[Usage, ...] = ()
        self.truncated = False
        self._new_id = new_id
        self._changed = changed
        self._text: Part | None = None
        self._tools: dict[int, Part] = {}
        self._held: list[Part] = []

    # ------------------------------------------------------------- writing

    def add(self, delta: ModelDelta) -> None:
        """Take in what the model said."""
        match delta:
            case TextDelta():
                self._add_text(delta.text)
            case ReasoningDelta():
                self._write(self._thought(), delta.text)
            case ToolCallDelta():
                self._add_tool(delta)
            case Finish():
                self.usage, self.truncated = delta.usage, delta.truncated

    def close(self) -> None:
        """The reply is whole: nothing more is said."""
        for part in self._held:
            self._open(part)
        self._held = []
        for part in self.parts:
            self._close(part)
        self.closed = True
        self._changed()

    def _add_text(self, text: str) -> None:
        """Go on with the reply's text. What comes after a tool call can only be recorded."""
        if self._text is None:
            self._text = Part("text", self.message_id)
            self._open(self._text)
        elif self.parts[-1] is not self._text and not self._text.closed:
            self._close(self.parts[-1])
        self._write(self._text, text)

    def _thought(self) -> Part:
        last = self.parts[-1] if self.parts else None
        if last is not None and last.kind == "reasoning" and not last.closed:
            return last
        part = Part("reasoning", self._reasoning_id())
        self._open(part)
        return part

    def _open(self, part: Part) -> None:
        for before in self.parts:
            if before is not self._text or part.kind == "tool":
                self._close(before)
        self.parts.append(part)

    @staticmethod
    def _close(part: Part) -> None:
        if not part.closed and (rest := part.joiner.flush()):
            part.pieces.append(rest)
        part.closed = True

    def _write(self, part: Part, text: str) -> None:
        if part.closed:
            part.late.append(text)
        elif shown := part.joiner.feed(text):
            part.pieces.append(shown)
            self._changed()

    def _add_tool(self, delta: ToolCallDelta) -> None:
        """Show the calls of one reply one after another, also when a provider mixes them.

        A call whose arguments are not whole yet keeps the floor; what arrives for the
        others meanwhile is held.
        """
        part = self._tools.get(delta.index)
        if part is None:
            part = Part("tool", self._new_id("call"), repair(delta.name or ""))
            self._tools[delta.index] = part
            if self._floor_is_taken():
                self._held.append(part)
            else:
                self._open(part)
            self._changed()
        if delta.arguments:
            self._write(part, delta.arguments)
            self._give_floor()

    def _floor_is_taken(self) -> bool:
        if self._held:
            return True
        last = self.parts[-1] if self.parts else None
        return last is not None and last.kind == "tool" and not _is_json(last.text)

    def _give_floor(self) -> None:
        while self._held and _is_json(self.parts[-1].text):
            self._open(self._held.pop(0))

    def _reasoning_id(self) -> str:
        """Return a reply's reasoning ids: derived, so that stream and record agree."""
        count = sum(part.kind == "reasoning" for part in self.parts)
        return f"{self.message_id}-reasoning" + (f"-{count}" if count else "")

    # ------------------------------------------------------------- reading

    def read(self, cursor: Cursor) -> Iterator[Piece]:
        """Yield what was said since the cursor, and move it."""
        for index in range(cursor.ended, len(self.parts)):
            yield from self._read_part(cursor, index)
        while cursor.ended < len(self.parts) and self.parts[cursor.ended].closed:
            cursor.taken.pop(cursor.ended, None)
            cursor.ended += 1

    def _read_part(self, cursor: Cursor, index: int) -> Iterator[Piece]:
        part, given = self.parts[index], cursor.given.get(index, 0)
        taken = cursor.taken.get(index)
        text = "".join(part.pieces[max(taken or 0, given) :])
        begins = taken is None and bool(text or not given)
        ends = part.closed and (begins or taken is not None) and taken != _ENDED
        if begins or ends or text:
            yield Piece(part, text, begins, ends)
            cursor.taken[index] = _ENDED if ends else len(part.pieces)

    # ----------------------------------------------------------- recording

    def message(self) -> AssistantMessage:
        """Return the reply as it is recorded."""
        text = self._text.whole if self._text is not None else ""
        return AssistantMessage(
            id=self.message_id,
            content=text or None,
            tool_calls=tuple(
                ToolCall(id=part.id, name=part.name, arguments=part.whole or "{}")
                for part in self.parts
                if part.kind == "tool"
            ),
        )

    def reasoning(self) -> tuple[ReasoningMessage, ...]:
        """Return the thoughts as they are recorded."""
        return tuple(
            ReasoningMessage(id=part.id, content=part.text)
            for part in self.parts
            if part.kind == "reasoning" and part.text
        )


_ENDED = sys.maxsize
"""Taken of a part whose end was told while one before it goes on."""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
