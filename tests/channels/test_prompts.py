"""What a channel shows for a prompt, and what each choice means."""

from typing import Any

import pytest

from agui_server.channels.prompts import APPROVE_OR_DECLINE, Choice, choices

OPTIONS = [
    {"label": "Yes", "value": "yes", "style": "primary"},
    {"label": "Later", "value": {"in": 3}},
    {"label": "No", "value": False},
]
SCHEMA = {"type": "object", "required": ["approved"]}

CASES: list[tuple[str, Any, list[Choice]]] = [
    (
        "options are shown in their order",
        {"message": "Publish?", "metadata": {"options": OPTIONS}},
        [Choice("Yes", "yes", "primary"), Choice("Later", {"in": 3}), Choice("No", False)],
    ),
    (
        "options need no message, and go before a schema",
        {"responseSchema": SCHEMA, "metadata": {"options": OPTIONS[:1]}},
        [Choice("Yes", "yes", "primary")],
    ),
    (
        "an option without a value is none, and has no index",
        {"metadata": {"options": [{"label": "?"}, 3, None, OPTIONS[2]]}},
        [Choice("No", False)],
    ),
    (
        "null is a value",
        {"metadata": {"options": [{"label": "Nothing", "value": None}]}},
        [Choice("Nothing", None)],
    ),
    (
        "an option without a label is named by its value, or its place",
        {"metadata": {"options": [{"value": "blue"}, {"value": 7, "label": 3, "style": 1}]}},
        [Choice("blue", "blue"), Choice("Option 2", 7)],
    ),
    ("a plain question", {"message": "Send it?"}, list(APPROVE_OR_DECLINE)),
    (
        "a question whose list of options is empty",
        {"message": "Send it?", "metadata": {"options": []}},
        list(APPROVE_OR_DECLINE),
    ),
    (
        "a question whose schema says nothing",
        {"message": "Send it?", "responseSchema": {}},
        list(APPROVE_OR_DECLINE),
    ),
    (
        "a question with a schema is answered by hand",
        {"message": "?", "responseSchema": SCHEMA},
        [],
    ),
    ("no message", {"metadata": {"type": "x"}}, []),
    ("an empty message", {"message": ""}, []),
    ("a message that is no text", {"message": 3}, []),
    ("no payload", None, []),
    ("a payload that is no object", ["message"], []),
]


@pytest.mark.parametrize(("payload", "shown"), [pytest.param(p, s, id=i) for i, p, s in CASES])
def test_a_prompt_has_choices(payload: Any, shown: list[Choice]) -> None:
    """The index of a choice is its place in this list."""
    assert list(choices(payload)) == shown


def test_the_two_buttons_of_a_plain_question() -> None:
    """Approve and Decline resume with plain payloads."""
    assert [choice.to_json() for choice in APPROVE_OR_DECLINE] == [
        {"label": "Approve", "value": {"approved": True}, "style": "primary"},
        {"label": "Decline", "value": {"approved": False}, "style": "danger"},
    ]
    assert Choice("a", 1).to_json() == {"label": "a", "value": 1}
