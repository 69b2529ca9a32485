"""The codec: what is written is what is read, and a worker's faults are named."""

import json
import math
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from engine.core import events as log
from engine.core.errors import InvalidResponse
from engine.core.events import Body, Event
from engine.core.messages import AssistantMessage, ClientContext, ToolCall, UserMessage
from engine.core.state import Call, Control, Turn
from engine.core.worker import (
    Action,
    CallModel,
    DecisionResponse,
    Done,
    GiveResult,
    Interrupt,
    SessionStart,
)
from engine.store import codec
from tests.store.values import BODIES, JSON, values

MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)


def stored(body: Body) -> Any:
    """Return a body's payload as JSON."""
    return json.loads(codec.encode_body(body))


# ---------------------------------------------------------------- the log


@pytest.mark.parametrize("kind", BODIES, ids=codec.type_of)
def test_a_body_comes_back(kind: type[Body]) -> None:
    """Every body of every type is equal after writing and reading."""

    @given(BODIES[kind])
    def comes_back(body: Body) -> None:
        read = codec.decode_body(body.type, codec.encode_body(body))
        assert read == body
        # `1`, `1.0` and `True` are equal in Python and are three things in JSON.
        assert repr(stored(read)) == repr(stored(body))

    comes_back()


@given(values(Control))
def test_a_snapshot_comes_back(control: Control) -> None:
    """Every `Control` is equal after writing and reading."""
    assert codec.decode_control(codec.encode_control(control)) == control


@pytest.mark.parametrize(
    "value",
    [
        {"x": None},
        [None],
        {"x": {"y": [None, {}]}},
        "\u0000",
        "👩‍👩‍👧‍👦",
        0,
        False,
        "",
        2**70,
        -0.5,
        {},
    ],
    ids=ascii,
)
def test_a_value_inside_a_payload_stays(value: Any) -> None:
    """Nulls inside a JSON value stay, and so do zero, false, empty and every character."""
    for body in (
        log.TurnCompleted(data=value),
        log.StateUpdated(state=value),
        log.SessionInterrupted(interrupt_id="i", origin="worker", reason="r", payload=value),
        log.MessageNew(message=UserMessage(id="m", content=[value], metadata={"k": value})),
    ):
        assert codec.decode_body(body.type, codec.encode_body(body)) == body


@pytest.mark.parametrize(
    "body",
    [
        log.HeadMoved(message_id=None),
        log.StateUpdated(state=None),
        log.SharedStateUpdated(state=None),
        log.AgentUpdated(agent=None),
        log.ToolCallCompleted(call_id="c", attempt=1, result=None),
        log.ToolCallRequested(
            call_id="c", name="n", arguments="{}", handler="function", anchor=None
        ),
    ],
    ids=lambda body: body.type,
)
def test_a_null_that_must_be_said_is_said(body: Body) -> None:
    """A field without a default is written even when it is null."""
    assert None in stored(body).values()
    assert codec.decode_body(body.type, codec.encode_body(body)) == body


def test_a_payload_is_short() -> None:
    """The type and what is `None` are not in the payload."""
    message = AssistantMessage(id="m2", content="Hi", tool_calls=(ToolCall(id="c1", name="n"),))
    assert stored(log.MessageNew(message=message, parent_id="m1")) == snapshot(
        {
            "message": {
                "id": "m2",
                "content": "Hi",
                "tool_calls": [{"id": "c1", "name": "n", "arguments": "{}"}],
                "role": "assistant",
            },
            "parent_id": "m1",
        }
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_null(number: float) -> None:
    """NaN and infinities never make invalid JSON."""
    body = log.TurnCompleted(data={"n": [number]}, cost=number)
    assert json.loads(codec.encode_body(body), parse_constant=pytest.fail)["data"] == {"n": [None]}
    control = Control(session_id="s1", state=number)
    assert codec.decode_control(codec.encode_control(control)).state is None


def test_unknown_fields_are_passed_over() -> None:
    """A payload with a field of a later version is read without it."""
    assert codec.decode_body("head.moved", '{"message_id":"m1","why":"?"}') == log.HeadMoved(
        message_id="m1"
    )


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("turn.flown", "{}"), ("head.moved", "{"), ("head.moved", "{}"), ("message.new", "[]")],
)
def test_what_nobody_wrote_is_an_error(kind: str, payload: str) -> None:
    """An unknown type, broken JSON and a missing field are `ValueError`s."""
    with pytest.raises(ValueError):  # noqa: PT011 - the texts are pydantic's
        codec.decode_body(kind, payload)
    with pytest.raises(ValueError):  # noqa: PT011
        codec.decode_control(payload)


def nested(levels: int, text: str = "x") -> Any:
    """Return a value inside so many lists and objects."""
    value: Any = text
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def test_nothing_is_written_that_is_too_deep_to_read() -> None:
    """The deepest payload that is written can be read, in an event and in a snapshot."""
    deepest = nested(codec.MAX_DEPTH - 3)
    body = log.TurnStarted(client=ClientContext(state=deepest, tools=(deepest,)))
    assert codec.decode_body(body.type, codec.encode_body(body)) == body
    control = Control(
        session_id="s1", turns=(Turn(id="t", client=ClientContext(tools=(nested(125),))),)
    )
    assert codec.decode_control(codec.encode_control(control)) == control
    with pytest.raises(ValueError, match="nested deeper"):
        codec.encode_body(log.StateUpdated(state=nested(codec.MAX_DEPTH)))
    # Brackets in a text, and many side by side, are not depth.
    codec.encode_body(log.StateUpdated(state=["[" * 500 + '"\\{', [[]] * 500]))


# -------------------------------------------------------------- the wire


def test_an_event_on_the_wire() -> None:
    """`{session_id, seq, occurred_at, turn_id?, type, payload}`, the moment in UTC."""
    local = MOMENT.astimezone(timezone(timedelta(hours=-3)))
    event = Event("s1", 7, local, "turn-1", log.TurnCompleted(data={"x": None}))
    assert codec.to_json(event) == snapshot(
        {
            "session_id": "s1",
            "seq": 7,
            "occurred_at": "2026-01-31T12:00:00Z",
            "turn_id": "turn-1",
            "type": "turn.completed",
            "payload": {"data": {"x": None}, "usage": []},
        }
    )
    assert "turn_id" not in codec.to_json(Event("s1", 7, local, None, log.TurnCompleted()))
    assert codec.rfc3339(MOMENT + timedelta(microseconds=1)) == "2026-01-31T12:00:00.000001Z"


@given(st.one_of(*BODIES.values()))
def test_every_event_has_a_wire_form(body: Body) -> None:
    """The wire form of every event is JSON whose payload does not name the type again."""
    wire = codec.to_json(Event("s1", 1, MOMENT, "turn-1", body))
    assert json.loads(json.dumps(wire, allow_nan=False)) == wire
    assert wire["type"] == body.type
    assert "type" not in wire["payload"]


SUBJECTS: list[tuple[Body, str | None]] = [
    (log.SessionInterrupted(interrupt_id="i1", origin="worker", reason="r"), "i1"),
    (log.SessionInterruptResumed(interrupt_id="i1", status="resolved"), "i1"),
    (log.CallVoided(call_id="c1", reason="r"), "c1"),
    (
        log.LlmCallRequested(
            call_id="c1", message_id="m1", anchor=None, attempt=1, deadline=MOMENT, expires=MOMENT
        ),
        "c1",
    ),
    (log.DecisionWaiting(decision_id="d1", trigger=SessionStart()), "d1"),
    (log.MessageNew(message=UserMessage(id="m1", content="")), "m1"),
    (log.HeadMoved(message_id="m1"), "m1"),
    (log.HeadMoved(message_id=None), "turn-1"),
    (log.TurnStarted(), "turn-1"),
    (log.StateUpdated(state=1, anchor="m1"), "m1"),
    (log.SharedStateUpdated(state=1), codec.ABOVE_ALL),
]


@pytest.mark.parametrize(
    ("body", "subject"), [pytest.param(*pair, id=f"{pair[0].type} {pair[1]}") for pair in SUBJECTS]
)
def test_subjects(body: Body, subject: str | None) -> None:
    """An event is about its interrupt, call or decision, else its message, else its turn."""
    assert codec.subject(Event("s1", 1, MOMENT, "turn-1", body)) == subject


@pytest.mark.parametrize("kind", get_args(Body), ids=codec.type_of)
def test_every_id_is_a_subject(kind: type[Body]) -> None:
    """Whatever has an interrupt's, call's or decision's id is found by it."""
    names = [field.name for field in fields(kind)]
    own = [name for name in ("interrupt_id", "call_id", "decision_id") if name in names]

    @given(BODIES[kind])
    def is_found(body: Body) -> None:
        if own:
            assert codec.subject(Event("s", 1, MOMENT, None, body)) == getattr(body, own[0])

    is_found()


# ---------------------------------------------------- a worker's response


@given(values(DecisionResponse))
def test_every_response_can_be_given_as_json(response: DecisionResponse) -> None:
    """A response is the same as an object of the core, as dicts, and as parsed JSON."""
    assert codec.parse_response(response) == response
    assert codec.parse_response(asdict(response)) == response
    assert codec.parse_response(json.loads(json.dumps(asdict(response)))) == response


@given(values(Action))
def test_an_action_stands_for_a_response(action: Action) -> None:
    """One action, or a list of them, is a response with these actions."""
    response = DecisionResponse(actions=(action,))
    for given_as in (action, [action], (action,), asdict(action), [asdict(action)]):
        assert codec.parse_response(given_as) == response


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        pytest.param({}, DecisionResponse(), id="nothing"),
        pytest.param([], DecisionResponse(), id="no actions"),
        pytest.param(
            {"type": "tool.result", "result": "sent"},
            DecisionResponse(actions=(GiveResult(result="sent"),)),
            id="a bare text as result",
        ),
        pytest.param(
            {"type": "tool.result", "result": {"content": [], "isError": True}},
            DecisionResponse(actions=(GiveResult(result={"content": [], "isError": True}),)),
            id="the MCP shape as result",
        ),
        pytest.param(
            [{"type": "llm.call", "model": None}, Done()],
            DecisionResponse(actions=(CallModel(), Done())),
            id="dicts and objects",
        ),
        pytest.param(
            {"state": {"seen": ("a",), "when": MOMENT, "n": math.nan}, "shared_state": {}},
            DecisionResponse(
                state={"seen": ["a"], "when": "2026-01-31T12:00:00Z", "n": None}, shared_state={}
            ),
            id="what Python has beyond JSON",
        ),
        pytest.param(
            {"state": ["\ud83d\ude00", "\ud800"]},
            DecisionResponse(state=["😀", "\ufffd"]),
            id="halves of surrogate pairs",
        ),
    ],
)
def test_responses(answer: Any, response: DecisionResponse) -> None:
    """What a worker may return."""
    assert codec.parse_response(answer) == response


@pytest.mark.parametrize(
    ("answer", "field", "reason"),
    [
        (None, "response", "return {} to write nothing"),
        ("done", "response", "not str"),
        (3, "response", "not int"),
        (Done, "response", "not a class"),
        ({"action": []}, "action", "not a known key"),
        ({"actions": {}}, "actions", "valid array"),
        ({"actions": ["done"]}, "actions[0]", "object"),
        ({"actions": [{}]}, "actions[0]", "needs `type`"),
        ([{"type": "done"}, {"type": "dance"}], "actions[1]", "'dance' is not one of 'llm.call'"),
        ([{"type": ["done"]}], "actions[0]", "is not one of"),
        ({"type": "interrupt"}, "actions[0].reason", "required"),
        ({"type": "done", "dat": 1}, "actions[0].dat", "not a known key"),
        ({"type": "tool.result", "result": 3}, "actions[0].result", "text, or an object"),
        ({"type": "tool.result", "result": {}}, "actions[0].result", "text, or an object"),
        (
            {"type": "tool.result", "result": {"content": ["x"]}},
            "actions[0].result",
            "text, or an object",
        ),
        ({"type": "tool.error", "error": "e", "attempt": "1"}, "actions[0].attempt", "integer"),
        (
            {"type": "interrupt", "reason": "r", "answer_by": "me"},
            "actions[0].answer_by",
            "'client' or 'machine'",
        ),
        (
            {"type": "llm.call", "client": {"instructions": [{"id": "m"}]}},
            "actions[0].client.instructions[0].content",
            "required",
        ),
        ({"messages": [{"id": "m", "content": ""}]}, "messages[0]", "needs `role`"),
        (
            {"messages": [{"id": "m", "role": "user", "content": 3}]},
            "messages[0].content",
            "string",
        ),
        (
            {"messages": [{"id": "m", "role": "user", "content": "", "toolCalls": []}]},
            "messages[0].toolCalls",
            "not a known key",
        ),
        ({"state": object()}, "response", "not JSON"),
        ({"state": b"\xff"}, "response", "not JSON"),
        ({"state": nested(codec.MAX_RESPONSE_DEPTH)}, "response", "nested deeper"),
    ],
)
def test_faults_are_named(answer: Any, field: str, reason: str) -> None:
    """A response that breaks a shape raises with the path of the fault, and why."""
    with pytest.raises(InvalidResponse) as fault:
        codec.parse_response(answer)
    assert fault.value.field == field
    assert reason in fault.value.reason


def test_a_circle_is_not_json() -> None:
    """A value that contains itself is refused, not followed for ever."""
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(InvalidResponse, match="not JSON"):
        codec.parse_response({"state": circle})


@given(JSON)
def test_values_are_copied(value: Any) -> None:
    """What a worker keeps and changes later is not what was recorded."""
    answer = Interrupt(reason="r", payload={"kept": value})
    parsed = codec.parse_response(answer)
    answer.payload["kept"] = "changed"
    (action,) = parsed.actions
    assert isinstance(action, Interrupt)
    assert repr(action.payload) == repr({"kept": value})


def test_a_call_without_an_anchor_survives_a_snapshot() -> None:
    """A snapshot's required nulls are written."""
    control = Control(session_id="s1", calls=(Call(id="c", kind="llm", turn_id="t", anchor=None),))
    assert codec.decode_control(codec.encode_control(control)) == control
