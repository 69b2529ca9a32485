"""Live text: what a model has said of a reply that is not recorded yet.

One buffer per attempt of a model call, append-only; each reader has a cursor into
it and takes everything since then as one piece. Nothing is queued per reader and
nothing is dropped: whoever falls behind gets fewer, larger pieces.

Source: `architecture.md` section 3.
"""

import json
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
    joiner: SurrogateJoiner = field(default_factory=SurrogateJoiner)
    closed: bool = False

    @property
    def text(self) -> str:
        """Everything said in this part so far."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Piece:
    """What a reader gets: more of a part. `begins` and `ends` mark its first and last piece."""

    part: Part
    text: str
    begins: bool
    ends: bool


@dataclass(slots=True)
class Cursor:
    """How far a reader has come: the part it reads, and how much of it it took.

    `given` are the pieces of parts that it got by other means before it began.
    """

    part: int = 0
    piece: int = 0
    begun: bool = False
    given: dict[int, int] = field(default_factory=dict[int, int])


class LiveText:
    """The output of one attempt of a model call. Parts are shown one after another."""

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
        self._tools: dict[int, Part] = {}
        self._held: list[Part] = []

    # ------------------------------------------------------------- writing

    def add(self, delta: ModelDelta) -> None:
        """Take in what the model said."""
        match delta:
            case TextDelta(text):
                self._write(self._part("text", self.message_id), text)
            case ReasoningDelta(text):
                self._write(self._part("reasoning", self._reasoning_id()), text)
            case ToolCallDelta():
                self._add_tool(delta)
            case Finish():
                self.usage, self.truncated = delta.usage, delta.truncated

    def close(self) -> None:
        """The reply is whole: nothing more is said."""
        for part in self._held:
            self._open(part)
        self._held = []
        if self.parts:
            self._close(self.parts[-1])
        self.closed = True
        self._changed()

    def _part(self, kind: PartKind, part_id: str) -> Part:
        if self.parts and self.parts[-1].kind == kind:
            return self.parts[-1]
        part = Part(kind, part_id)
        self._open(part)
        return part

    def _open(self, part: Part) -> None:
        if self.parts:
            self._close(self.parts[-1])
        self.parts.append(part)

    @staticmethod
    def _close(part: Part) -> None:
        if not part.closed and (rest := part.joiner.flush()):
            part.pieces.append(rest)
        part.closed = True

    def _write(self, part: Part, text: str) -> None:
        shown = part.joiner.feed(text)
        if shown:
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
        if self.parts and self.parts[-1].kind == "reasoning":
            return self.parts[-1].id
        count = sum(part.kind == "reasoning" for part in self.parts)
        return f"{self.message_id}-reasoning" + (f"-{count}" if count else "")

    # ------------------------------------------------------------- reading

    def read(self, cursor: Cursor) -> Iterator[Piece]:
        """Yield what was said since the cursor, and move it."""
        while cursor.part < len(self.parts):
            part = self.parts[cursor.part]
            given = cursor.given.get(cursor.part, 0)
            text = "".join(part.pieces[max(cursor.piece, given) :])
            cursor.piece = len(part.pieces)
            if text or (not given and not cursor.begun) or (cursor.begun and part.closed):
                begins, cursor.begun = not cursor.begun, True
                yield Piece(part, text, begins, part.closed)
            if not part.closed:
                return
            cursor.part, cursor.piece, cursor.begun = cursor.part + 1, 0, False

    # ----------------------------------------------------------- recording

    def message(self) -> AssistantMessage:
        """Return the reply as it is recorded."""
        text = "".join(part.text for part in self.parts if part.kind == "text")
        return AssistantMessage(
            id=self.message_id,
            content=text or None,
            tool_calls=tuple(
                ToolCall(id=part.id, name=part.name, arguments=part.text or "{}")
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


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
