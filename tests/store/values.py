"""Strategies: any value of the core's types, by their annotations."""

from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st

from engine.core.events import Body
from engine.core.worker import GiveResult

TEXT = st.text(max_size=12)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
MOMENTS = st.integers(-(10**15), 10**16).map(
    lambda micros: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
)
RESULTS = TEXT | st.fixed_dictionaries(
    {"content": st.lists(st.dictionaries(TEXT, JSON), max_size=2)}
)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    str: TEXT,
    int: st.integers(-(2**62), 2**62),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    datetime: MOMENTS,
    NoneType: st.none(),
}


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for an annotation of the core."""
    if annotation in SCALARS:
        return SCALARS[annotation]
    if is_dataclass(annotation) and isinstance(annotation, type):
        return _instances(annotation)
    inside = get_args(annotation)
    match get_origin(annotation):
        case origin if origin in {Union, UnionType}:
            return st.one_of([values(member) for member in inside])
        case origin if origin is Literal:
            return st.sampled_from(inside)
        case origin if origin is tuple:
            return st.lists(values(inside[0]), max_size=2).map(tuple)
        case origin if origin is list:
            return st.lists(values(inside[0]), max_size=2)
        case origin if origin is dict:
            return st.dictionaries(TEXT, values(inside[1]), max_size=2)
        case _:
            raise AssertionError(f"no strategy for {annotation}")


def _instances(kind: type[Any]) -> st.SearchStrategy[Any]:
    made: dict[str, st.SearchStrategy[Any]] = {}
    for field in fields(kind):
        strategy = RESULTS if (kind, field.name) == (GiveResult, "result") else values(field.type)
        # What is usual (a default) comes often.
        made[field.name] = (
            strategy if field.default is MISSING else st.just(field.default) | strategy
        )
    return st.builds(kind, **made)


BODIES: dict[type[Body], st.SearchStrategy[Body]] = {kind: values(kind) for kind in get_args(Body)}
