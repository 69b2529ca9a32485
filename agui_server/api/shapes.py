"""The shapes of bodies and queries. Strict, closed, and in snake_case.

A message has the shape of the event log (`{id, role, content, tool_calls, …}`): what a route
shows can be sent back. Its `content` is text, or AG-UI's parts.

Source: `protocol.md` section 13.
"""

from typing import Annotated, Any, Literal, Self, TypeAlias, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from engine.core.ids import is_id
from engine.core.messages import Json, Message, members
from engine.runtime.identifiers import new_id

Object: TypeAlias = dict[str, Json]


def _checked_id(value: str) -> str:
    if not is_id(value):
        raise PydanticCustomError("id", "must be 1 to 256 characters, none of them a control")
    return value


def _checked_session_id(value: str) -> str:
    if "/" in _checked_id(value):
        raise PydanticCustomError("session_id", "must not contain '/': it is a part of addresses")
    return value


def _with_message(body: Any, member: str) -> Any:
    """Give the message of a `client.message` an id and the role of a person, if it has none."""
    sent = members(members(body).get(member))
    message: Any = sent.get("message")
    if sent.get("type") != "client.message" or not isinstance(message, dict):
        return body
    whole = {"id": new_id("msg"), "role": "user", **cast("Object", message)}
    return {**members(body), member: {**sent, "message": whole}}


Id = Annotated[str, AfterValidator(_checked_id)]
SessionId = Annotated[str, AfterValidator(_checked_session_id)]
Name = Annotated[str, Field(min_length=1, max_length=256)]
SentMessage = Annotated[Message, Field(discriminator="role")]

_UP_TO = 2**53
"""The largest integer that every JSON reader has exactly."""


class Shape(BaseModel):
    """A closed object."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @classmethod
    def completed(cls, body: Any) -> Any:
        """Return a body with what it may leave out, before it is judged."""
        return body


# ------------------------------------------------------------- ClientInput


class ClientTool(Shape):
    """A tool of the client's own."""

    name: Name
    description: str
    parameters: Json = None
    metadata: Object | None = None


class ContextEntry(Shape):
    """Something the agent should know."""

    description: str
    value: str


class SentContext(Shape):
    """What a client sends beside its messages; it holds for the whole turn."""

    tools: list[ClientTool] = []
    context: list[ContextEntry] = []
    state: Json = None
    forwarded_props: Json = None


class GivenAnswer(Shape):
    """An answer to an interrupt, in a view. `cancelled` gives the question up."""

    interrupt_id: Id
    status: Literal["resolved", "cancelled"] = "resolved"
    payload: Json = None


class SendMessage(Shape):
    """One message at the head. Its `id` is minted when absent, its `role` is `user` then."""

    type: Literal["client.message"]
    message: SentMessage
    client: SentContext = SentContext()


class AppendMessages(Shape):
    """Messages at the head; those already recorded are dropped."""

    type: Literal["client.append"]
    messages: Annotated[list[SentMessage], Field(min_length=1)]
    client: SentContext = SentContext()


class ShowView(Shape):
    """The whole conversation as the client shows it, and answers to open interrupts."""

    type: Literal["client.messages"]
    messages: list[SentMessage]
    answers: list[GivenAnswer] = []
    client: SentContext = SentContext()


class CallAction(Shape):
    """A named action."""

    type: Literal["client.action"]
    name: Name
    args: Json = None


class Resume(Shape):
    """An answer to one interrupt. An absent payload is `null`."""

    type: Literal["interrupt.resume"]
    interrupt_id: Id
    payload: Json = None


class GiveResult(Shape):
    """A tool call ends well."""

    type: Literal["tool.result"]
    id: Id
    result: Json


class GiveError(Shape):
    """A tool call ends with an error, which the model reads."""

    type: Literal["tool.error"]
    id: Id
    error: str


ClientInput: TypeAlias = (
    SendMessage | AppendMessages | ShowView | CallAction | Resume | GiveResult | GiveError
)
SentInput = Annotated[ClientInput, Field(discriminator="type")]


# ------------------------------------------------------------------ bodies


class InputBody(Shape):
    """`POST /api/client/sessions/input`."""

    agent_id: Id | None = None
    thread_id: Id | None = None
    session_id: Id | None = None
    turn_id: Id | None = None
    queue: bool = False
    input: SentInput

    @classmethod
    def completed(cls, body: Any) -> Any:
        """Return the body with a whole message."""
        return _with_message(body, "input")


class Identity(Shape):
    """Whose session it is."""

    id: Id


class SubmitBody(Shape):
    """`POST /api/machine/sessions/submit`."""

    agent_id: Id
    identity: Identity
    session_id: SessionId | None = None
    thread_id: Id | None = None
    turn_id: Id | None = None
    queue: bool = False
    payload: SentInput

    @classmethod
    def completed(cls, body: Any) -> Any:
        """Return the body with a whole message."""
        return _with_message(body, "payload")


class InterruptBody(Shape):
    """`POST …/interrupt`. An id that was used before is replaced."""

    reason: Annotated[str, Field(min_length=1)]
    payload: Json = None
    answer_by: Literal["client", "machine"] = "client"
    interrupt_id: Id | None = None


class AnswerBody(Shape):
    """`POST …/answer`: the index of an offered option, or a payload. `null` is a payload.

    A backend that is a channel of its own says who answered: `responder`.
    """

    option: Annotated[int, Field(ge=0, le=_UP_TO)] | None = None
    payload: Json = None
    responder: Object | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.option is None) == ("payload" not in self.model_fields_set):
            raise PydanticCustomError("one_of", "give either `option` or `payload`")
        return self


class SettleBody(Shape):
    """`POST …/calls/settle`: either a result (`null` is one) or an error."""

    call_id: Id
    result: Json = None
    error: str | None = None
    attempt: Annotated[int, Field(ge=0, le=_UP_TO)] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.error is None) == ("result" not in self.model_fields_set):
            raise PydanticCustomError("one_of", "give either `result` or `error`")
        return self


# ----------------------------------------------------------------- queries


Status: TypeAlias = Literal["idle", "running", "waiting", "interrupted"]


class ListQuery(Shape):
    """A page of one's own sessions."""

    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: str | None = None
    agent_id: str | None = None
    status: Status | None = None


class MachineListQuery(ListQuery):
    """A page of everybody's sessions, or of one owner's."""

    owner: str | None = None


class EventsQuery(Shape):
    """A page of a session's stored events."""

    after_seq: Annotated[int, Field(ge=0, le=_UP_TO)] = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    turn_id: str | None = None
