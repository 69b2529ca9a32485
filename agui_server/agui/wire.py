"""JSON as a client sends it: read strictly where a field is known, kindly where it is not.

    bytes  ── decode ──▶  dict  ── Fields ──▶  typed values, or BadRequest naming the path
                                    └────────▶  Notices: what was left out, each kind once

The fields of a request are read by hand and not through the protocol's models: those
take names in snake_case, keep members they do not know, and fail a whole input for one
content part of a later version.

Source: `agui-1.0.md` B, P10 to P12.
"""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import orjson

from engine.core.ids import is_id
from engine.core.messages import Json
from engine.core.text import repair_json

Object = dict[str, Any]

MAX_DEPTH = 100
"""Levels of nesting that an input may have. What is stored wraps it a few times more, and
the decoder that reads the log back stops at 200 levels, the encoder at 254."""

_ENCODER_DEPTH = 254
"""Levels that orjson encodes. A test holds it to this."""

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_INDEX = re.compile(r"\[\d+\]")
_MAX_NAMES = 5
_MAX_NAME_LENGTH = 64


@dataclass(eq=False)
class BadRequest(Exception):
    """A request is refused before anything happened, by its own fault.

    `status` is an HTTP status, `code` is stable, `detail` says what to change and
    names the field by its path, such as `messages[3].content`.
    """

    status: int
    code: str
    detail: str

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something in an input that was left out, or served other than asked. The run goes on."""

    code: str
    detail: str


class Notices:
    """Notices of one request: one for each kind of place, however often it occurs."""

    __slots__ = ("_found", "_ignored")

    def __init__(self) -> None:
        self._found: list[Notice] = []
        self._ignored: dict[tuple[str, str], list[str]] = {}

    def add(self, code: str, detail: str) -> None:
        """Note something that occurs once in a request."""
        self._found.append(Notice(code, detail))

    def ignored(self, code: str, path: str, name: str) -> None:
        """Note that `name` at `path` was left out. Paths that differ in an index are one place."""
        names = self._ignored.setdefault((code, _INDEX.sub("[]", path)), [])
        name = name[:_MAX_NAME_LENGTH]
        if name not in names and len(names) <= _MAX_NAMES:
            names.append(name)

    def all(self) -> tuple[Notice, ...]:
        """Return the notices, in the order their places came up."""
        listed = (
            Notice(code, f"{place}: ignored {', '.join(_at_most(names))}")
            for (code, place), names in self._ignored.items()
        )
        return (*self._found, *listed)


def _at_most(names: list[str]) -> list[str]:
    return names if len(names) <= _MAX_NAMES else [*names[:_MAX_NAMES], "…"]


class Fields:
    """One object of an input, read field by field; `path` is where it stands.

    Every reader raises :class:`BadRequest` (422 `invalid_input`) for a value of another
    type. `null` counts as absent in the readers named `optional_…`: the schema forbids
    it, old clients send it, and nothing is lost by reading it kindly.
    """

    __slots__ = ("notices", "path", "raw")

    def __init__(self, value: Json, path: str, notices: Notices) -> None:
        if type(value) is not dict:
            refuse(path, "an object", value)
        self.raw = cast("Object", value)
        self.path = path
        self.notices = notices

    def text(self, key: str) -> str:
        """Return a string that must be there."""
        value = self.raw.get(key)
        return value if type(value) is str else refuse(self.at(key), "a string", value)

    def identifier(self, key: str) -> str:
        """Return an id that must be there."""
        value = self.raw.get(key)
        if type(value) is not str or not is_id(value):
            refuse(self.at(key), "an id of 1 to 256 characters, none of them a control", value)
        return value

    def optional_text(self, key: str) -> str | None:
        """Return a string, or `None`."""
        value = self.raw.get(key)
        if value is None or type(value) is str:
            return value
        return refuse(self.at(key), "a string", value)

    def object(self, key: str) -> Object:
        """Return an object that must be there."""
        value = self.raw.get(key)
        if type(value) is dict:
            return cast("Object", value)
        return refuse(self.at(key), "an object", value)

    def optional_object(self, key: str) -> Object | None:
        """Return an object, or `None`."""
        return None if self.raw.get(key) is None else self.object(key)

    def optional_list(self, key: str) -> list[Json]:
        """Return a list; an absent one is empty."""
        value = self.raw.get(key)
        if value is None:
            return []
        return cast("list[Json]", value) if type(value) is list else self.refuse_list(key)

    def refuse_list(self, key: str) -> NoReturn:
        """Refuse the value of `key` for not being a list."""
        refuse(self.at(key), "a list", self.raw.get(key))

    def at(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def ignore_others(self, known: frozenset[str]) -> None:
        """Note the members that are not `known`; what is not read is stripped by that."""
        if self.raw.keys() <= known:
            return
        for name in self.raw:
            if name not in known:
                self.notices.ignored("unknown_field", self.path or "input", name)

    def clean(self, known: frozenset[str]) -> Object:
        """Return the object without unknown members and without nulls.

        An object that has neither is returned as it is.
        """
        self.ignore_others(known)
        if self.raw.keys() <= known and None not in self.raw.values():
            return self.raw
        return {k: v for k, v in self.raw.items() if k in known and v is not None}


def refuse(path: str, expected: str, value: Json) -> NoReturn:
    """Refuse a known field whose value is not what the protocol says (P10)."""
    kind = cast("type[object]", type(value))
    found = _TYPE_NAMES[kind]
    raise BadRequest(422, "invalid_input", f"{path or 'input'}: expected {expected}, got {found}")


_TYPE_NAMES: dict[type[object], str] = {
    type(None): "nothing",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    list: "a list",
    dict: "an object",
}


def decode(body: bytes) -> Json:
    """Read a body as JSON.

    Integers beyond 64 bits become floats. Lone surrogates, which the fast parser
    refuses, are replaced by U+FFFD.

    Raises:
        BadRequest: 400 `invalid_json`: not UTF-8, not JSON, NaN or Infinity, a number
            beyond a double, or nested without end.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if _SURROGATE_ESCAPE.search(body) is None:
            raise _invalid_json(str(error)) from None
    try:
        return repair_json(
            json.loads(
                body.decode(),
                parse_int=_parse_int,
                parse_float=_parse_float,
                parse_constant=_parse_float,
            )
        )
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are ValueErrors
        raise _invalid_json(str(error)) from None
    except RecursionError:
        raise _invalid_json(f"nested deeper than {MAX_DEPTH} levels") from None


def _parse_int(text: str) -> int | float:
    """Read an integer as orjson does: what 64 bits cannot hold is a float."""
    if len(text) <= len(str(2**64)):
        value = int(text)
        if -(2**63) <= value < 2**64:
            return value
    return _parse_float(text)


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:_MAX_NAME_LENGTH]} is not a JSON number")
    return value


def _invalid_json(reason: str) -> BadRequest:
    return BadRequest(400, "invalid_json", f"The body is not valid JSON: {reason}")


def digest(value: Json) -> str:
    """Return the SHA-256 of a JSON value in hex, independent of the order of its keys.

    Raises:
        BadRequest: 400 `invalid_json`: nested deeper than :data:`MAX_DEPTH`.
    """
    # The encoder counts levels anyway: fill those it has beyond ours, and a value that
    # is too deep stops it. Walking the value would cost more than all the rest.
    for _ in range(_ENCODER_DEPTH - MAX_DEPTH):
        value = [value]
    try:
        canonical = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        raise _invalid_json(f"nested deeper than {MAX_DEPTH} levels") from None
    return hashlib.sha256(canonical).hexdigest()
