"""The reader against the protocol's own models: they accept the same inputs."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agui_server.agui.inbound import parse_run
from agui_server.agui.wire import BadRequest

Json = Any

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
metadata = st.dictionaries(text, json_values, max_size=2)


def objects(
    required: dict[str, st.SearchStrategy[Json]], optional: dict[str, st.SearchStrategy[Json]]
) -> st.SearchStrategy[dict[str, Json]]:
    """Return objects with some of the optional members; one of them may be null."""
    return st.fixed_dictionaries(
        required, optional={key: st.none() | value for key, value in optional.items()}
    )


sources = st.one_of(
    objects({"type": st.just("data"), "value": text, "mimeType": text}, {}),
    objects({"type": st.just("url"), "value": text}, {"mimeType": text}),
    objects({"type": st.just("file"), "value": text}, {"mimeType": text, "provider": text}),
)
parts = st.one_of(
    objects({"type": st.just("text"), "text": text}, {"id": text, "metadata": json_values}),
    objects(
        {"type": st.sampled_from(["image", "audio", "video", "document"]), "source": sources},
        {"id": text, "metadata": json_values},
    ),
)
content = text | st.lists(parts, max_size=3)
calls = objects(
    {
        "id": ids,
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": text, "arguments": text}),
    },
    {"encryptedValue": text, "metadata": metadata},
)
_any = {"metadata": metadata, "subagentRunId": text}
_spoken = {**_any, "encryptedValue": text, "name": text}
messages = st.one_of(
    objects({"id": ids, "role": st.just("user"), "content": content}, _spoken),
    objects(
        {"id": ids, "role": st.just("assistant")},
        {**_spoken, "content": text, "toolCalls": st.lists(calls, max_size=2)},
    ),
    objects(
        {"id": ids, "role": st.just("tool"), "toolCallId": ids, "content": content},
        {**_any, "encryptedValue": text, "error": text},
    ),
    objects(
        {"id": ids, "role": st.sampled_from(["system", "developer"]), "content": text}, _spoken
    ),
    objects(
        {"id": ids, "role": st.just("reasoning"), "content": text},
        {**_any, "encryptedValue": text},
    ),
    objects(
        {"id": ids, "role": st.just("activity"), "activityType": text, "content": metadata}, _any
    ),
)
inputs = objects(
    {
        "threadId": ids,
        "runId": ids,
        "messages": st.lists(messages, max_size=4, unique_by=lambda message: message["id"]),
    },
    {
        "protocolVersion": st.sampled_from(["1.0", "1.4", "0.1", "next"]),
        "parentRunId": ids,
        "state": json_values,
        "forwardedProps": json_values,
        "tools": st.lists(
            objects(
                {"name": text, "description": text},
                {"parameters": json_values, "metadata": metadata},
            ),
            max_size=2,
        ),
        "context": st.lists(
            st.fixed_dictionaries({"description": text, "value": text}), max_size=2
        ),
        "resume": st.lists(
            objects(
                {"interruptId": ids, "status": st.sampled_from(["resolved", "cancelled"])},
                {"payload": json_values, "metadata": metadata},
            ),
            max_size=2,
            unique_by=lambda entry: entry["interruptId"],
        ),
    },
)


def places(value: Json) -> Iterator[tuple[dict[str, Json] | list[Json], Any]]:
    """Walk over every member and element of a JSON value, as a container and a key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from places(inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield value, index
            yield from places(inner)


def ours(sent: Json) -> bool:
    """Whether we accept an input."""
    try:
        parse_run(json.dumps(sent).encode()).history()
    except BadRequest:
        return False
    return True


def theirs(sent: Json) -> bool:
    """Whether the protocol's models accept it."""
    try:
        RunAgentInput.model_validate_json(json.dumps(sent))
    except ValidationError:
        return False
    return True


@given(inputs)
def test_every_well_formed_input_is_accepted(sent: dict[str, Json]) -> None:
    """What the models accept we accept, and nothing of it is called unknown."""
    assert theirs(sent)
    request = parse_run(json.dumps(sent).encode())
    history = request.history()
    assert [message.id for message in history.messages] == [m["id"] for m in sent["messages"]]
    assert [message.role for message in history.messages] == [m["role"] for m in sent["messages"]]
    assert {notice.code for notice in request.notices} <= {"protocol_version"}
    assert history.notices == ()


@given(inputs, st.data())
def test_one_wrong_value_is_judged_alike(sent: dict[str, Json], data: st.DataObject) -> None:
    """An input with one value of another type, or one member missing, meets the same end.

    Strings are not put in: another role or kind of part is where we differ on purpose.
    """
    sent = copy.deepcopy(sent)
    container, key = data.draw(st.sampled_from(list(places(sent))))
    wrong = data.draw(st.sampled_from(["remove", None, 5, True, 1.5, [], [1], {}, {"a": 1}]))
    if wrong == "remove":
        del container[key]
    else:
        container[key] = wrong
    assert ours(sent) == theirs(sent)


@given(inputs, st.randoms(use_true_random=False))
def test_the_digest_is_of_the_value_not_of_the_bytes(sent: dict[str, Json], chance: Any) -> None:
    """However an input's keys are ordered and its text escaped, its digest is one."""

    def shuffled(value: Json) -> Json:
        if isinstance(value, dict):
            pairs = list(value.items())
            chance.shuffle(pairs)
            return {key: shuffled(inner) for key, inner in pairs}
        return [shuffled(inner) for inner in value] if isinstance(value, list) else value

    plain = json.dumps(shuffled(sent), ensure_ascii=False, indent=2).encode()
    assert parse_run(plain).digest == parse_run(json.dumps(sent).encode()).digest


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_no_body_raises_anything_else(body: bytes) -> None:
    """Case 39: whatever the bytes are, they are no input, and that is what is said."""
    with pytest.raises(BadRequest) as raised:
        parse_run(body)
    assert raised.value.status in {400, 422}
