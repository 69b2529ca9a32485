"""What a function tool's signature and docstring tell a model, and which are refused."""

import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from engine.core.messages import Json
from engine.runtime.functions import FunctionTool, InvalidTool


class Guest(BaseModel):
    """Somebody invited."""

    name: str
    age: int = 0


def plain(to: str, subject: str = "hello") -> str:
    """Send an email.

    The second paragraph is for programmers.
    """
    return f"{to}: {subject}"


def rich(
    guests: list[Guest],
    unit: Literal["c", "f"],
    *,
    note: str | None = None,
    level: Annotated[int, Field(ge=1, le=5, description="1 to 5")] = 1,
) -> None:
    """Invite,
    over two lines.
    """  # noqa: D205 - what is tested


@pytest.mark.parametrize(
    ("function", "properties", "required"),
    [
        pytest.param(
            plain,
            {"to": {"type": "string"}, "subject": {"type": "string", "default": "hello"}},
            ["to"],
            id="plain",
        ),
        pytest.param(
            rich,
            {
                "guests": {"type": "array", "items": {"$ref": "#/$defs/Guest"}},
                "unit": {"type": "string", "enum": ["c", "f"]},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                "level": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 5,
                    "default": 1,
                    "description": "1 to 5",
                },
            },
            ["guests", "unit"],
            id="rich",
        ),
    ],
)
def test_the_schema_comes_from_the_signature(
    function: Callable[..., Any], properties: Json, required: list[str]
) -> None:
    """Types, defaults and constraints are there, made-up titles and other members are not."""
    schema = FunctionTool(function).parameters

    Draft202012Validator.check_schema(schema)
    assert schema["properties"] == properties
    assert schema["required"] == required
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)


@pytest.mark.parametrize(
    ("function", "description"),
    [
        pytest.param(plain, "Send an email.", id="first paragraph"),
        pytest.param(rich, "Invite, over two lines.", id="joined lines"),
        pytest.param(lambda: None, "", id="none"),
    ],
)
def test_the_description_is_the_docstrings_first_paragraph(
    function: Callable[..., Any], description: str
) -> None:
    """What follows it is for programmers."""
    assert FunctionTool(function, name="t").description == description


def unannotated(to) -> None:  # noqa: ANN001  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
    """Take anything."""


def variadic(*names: str) -> None:
    """Take any number."""


def keywords(**names: str) -> None:
    """Take any name."""


def positional(to: str, /) -> None:
    """Take by position."""


def unknown(to: int) -> None:
    """Name a type that is not there."""


unknown.__annotations__["to"] = "Nowhere"


def opaque(to: threading.Lock) -> None:
    """Take what JSON cannot carry."""


def calls_back(to: Callable[[], None]) -> None:
    """Take what JSON Schema cannot say."""


def generates() -> Iterator[str]:
    """Yield."""
    yield "a"


async def generates_async() -> AsyncIterator[str]:
    """Yield."""
    yield "a"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        pytest.param(
            unannotated,  # pyright: ignore[reportUnknownArgumentType]
            "'to' has no type annotation",
            id="unannotated",
        ),
        pytest.param(variadic, "'names' takes any number", id="*args"),
        pytest.param(keywords, "'names' takes any number", id="**kwargs"),
        pytest.param(positional, "'to' is positional only", id="positional only"),
        pytest.param(unknown, "name 'Nowhere' is not defined", id="unknown type"),
        pytest.param(opaque, "cannot be used", id="not JSON"),
        pytest.param(calls_back, "no JSON Schema", id="no schema"),
        pytest.param(generates, "it yields", id="generator"),
        pytest.param(generates_async, "it yields", id="async generator"),
        pytest.param(Guest, "not a function", id="class"),
        pytest.param(functools.partial(plain, "a"), "not a function", id="partial"),
        pytest.param("plain", "not a function", id="string"),
    ],
)
def test_a_function_no_model_could_call_is_refused_when_it_is_declared(
    function: Any, reason: str
) -> None:
    """The error names the tool and the parameter, in one line."""
    with pytest.raises(InvalidTool, match=reason) as raised:
        FunctionTool(function)

    assert "\n" not in str(raised.value)


def test_only_the_annotations_of_parameters_matter() -> None:
    """A return type that is imported for type checkers only is no reason to refuse."""

    def tool(n: int) -> int:
        return n

    tool.__annotations__["return"] = "Nowhere"

    assert FunctionTool(tool).parameters["required"] == ["n"]
