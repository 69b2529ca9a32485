"""Moves: commands a client, a worker, a model or a tool could send in a given state.

Each takes the world and small numbers that Hypothesis chose, and returns a command,
or `None` when there is nothing to do it to.
"""

from collections.abc import Sequence
from typing import TypeVar

from engine.core import commands as cmd
from engine.core.draft import Draft
from engine.core.messages import (
    AssistantMessage,
    ClientContext,
    Json,
    Message,
    ReasoningMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from engine.core.propose import propose
from engine.core.request import decision_request
from engine.core.worker import (
    Action,
    CallModel,
    CallTool,
    DecisionResponse,
    Done,
    Error,
    GiveError,
    GiveResult,
    Interrupt,
    ResolveInterrupt,
    RunTool,
)
from tests.properties.world import CLIENT_TOOL, World

_T = TypeVar("_T")

PAYLOADS: tuple[Json, ...] = (
    True,
    False,
    0,
    "",
    None,
    {"approved": True},
    {"approved": False, "responder": {"user": "forged"}},
    "something else",
)
"""What a person may answer: `false`, `0`, `""` and `null` are answers too."""

QUESTIONS: tuple[Json, ...] = (
    None,
    {"message": "Sure?"},
    {"metadata": {"options": [{"label": "Yes", "value": True}, {"label": "No", "value": "no"}]}},
    {"responseSchema": {"type": "object", "required": ["approved"]}},
)

ASKED = (
    ("once", '{"n": 1}'),
    ("again", '{"n": 2}'),
    ("owned", '{"n": 3}'),
    ("page", "{}"),
    ("once", '{"n": "not a number"}'),
    ("again", '{"n": '),
    ("nobody", "{}"),
)
"""Tool calls of a model: declared, the client's, with bad arguments, undeclared."""


def choose(items: Sequence[_T], pick: int) -> _T | None:
    """Return one of some items, by any number."""
    return items[pick % len(items)] if items else None


# ----------------------------------------------------------------- clients


def answers(world: World, picks: Sequence[int]) -> tuple[cmd.Answer, ...]:
    """Return answers: to open questions, to old ones, to some that never were."""
    given: dict[str, cmd.Answer] = {}
    ids = [i.id for i in world.state.control.interrupts]
    pool = [*ids, *ids, *world.interrupt_ids(), "int-unknown"]
    for pick in picks:
        interrupt_id = pool[pick % len(pool)]
        given[interrupt_id] = cmd.Answer(
            interrupt_id=interrupt_id,
            payload=PAYLOADS[pick % len(PAYLOADS)],
            cancelled=pick % 5 == 0,
            responder={"channel": "test", "user": "u"} if pick % 2 else None,
        )
    return tuple(given.values())


def edit(world: World, keep: int) -> cmd.ClientView:
    """Return a view of the first `keep` messages of the path, and a new one."""
    kept = list(world.path(world.head))[:keep]
    new = UserMessage(id=world.new_id("user"), content="an edit")
    return cmd.ClientView(messages=(*kept, new))


def come_back(world: World, pick: int, *, new: int, answers: bool) -> cmd.ClientView | None:
    """Return a view of a parked turn's branch; it may answer what is asked there, and go on."""
    turn = choose([t for t in world.state.control.turns if t.parked], pick)
    if turn is None:
        return None
    asked = [i for i in world.state.control.interrupts if i.turn_id == turn.id]
    given = [cmd.Answer(interrupt_id=i.id, payload=True, cancelled=pick % 2 == 0) for i in asked]
    added = [UserMessage(id=world.new_id("user"), content="more") for _ in range(new)]
    return cmd.ClientView(
        messages=(*world.path(turn.tip), *added),
        answers=tuple(given) if answers else (),
        lenient=pick % 3 == 0,
    )


def view(
    world: World,
    *,
    end: int,
    new: int,
    picks: Sequence[int],
    solve: bool,
    lenient: bool,
    regenerate: bool,
) -> cmd.ClientView:
    """Return what a page could send.

    `end` chooses where the page's history ends: mostly at the head, else anywhere;
    `new` says how many messages it adds, `solve` whether it answers its client calls.
    """
    ids = world.message_ids()
    messages: list[Message] = list(world.path(world.head))
    if end % 3 == 0 and ids:
        messages = list(world.path(choose(ids, end)))
    if end % 7 == 0:
        messages = [m for m in messages if not isinstance(m, ToolMessage)]
    if solve:
        messages.extend(
            ToolMessage(id=world.new_id("shown"), tool_call_id=call.id, content="from the page")
            for call in world.calls("client")
        )
    messages.extend(
        UserMessage(id=world.new_id("user"), content="hello")
        if pick % 3
        else AssistantMessage(id=world.new_id("shown"), content="said by the page")
        for pick in range(1, new + 1)
    )
    return cmd.ClientView(
        messages=tuple(messages),
        answers=answers(world, picks),
        client=ClientContext(tools=(CLIENT_TOOL,)) if end % 2 == 0 else ClientContext(),
        lenient=lenient,
        regenerate=regenerate,
    )


def resume(world: World, pick: int, *, machine: bool) -> cmd.ResumeInterrupt:
    """Return an answer through the API."""
    return cmd.ResumeInterrupt(
        answer=answers(world, [pick])[0], caller="machine" if machine else "client"
    )


def ask_a_person(world: World, pick: int) -> cmd.RaiseInterrupt:
    """Return a question from outside; its id may have been used before."""
    return cmd.RaiseInterrupt(
        reason="stop",
        interrupt_id=choose([None, *world.interrupt_ids()], pick),
        payload=QUESTIONS[pick % len(QUESTIONS)],
        answer_by="machine" if pick % 4 == 0 else "client",
        caller="machine" if pick % 3 == 0 else "client",
    )


# --------------------------------------------------------- models and tools


def model_answers(world: World, pick: int, asked: Sequence[int]) -> cmd.Command | None:
    """Return a reply of a model call in flight: text, tool calls, or both."""
    call = choose(world.calls("llm"), pick)
    if call is None:
        return None
    return cmd.FinishModelCall(
        call_id=call.id,
        attempt=call.attempt,
        message=AssistantMessage(
            id=call.message_id,
            content="some text" if pick % 2 or not asked else None,
            tool_calls=tuple(
                ToolCall(id=world.new_id("call"), name=name, arguments=arguments)
                for name, arguments in (ASKED[index % len(ASKED)] for index in asked)
            ),
        ),
        reasoning=(ReasoningMessage(id=f"{call.message_id}-reasoning", content="hm"),)
        if pick % 3 == 0
        else (),
        usage=(Usage(model="m", input_tokens=1),),
    )


def tool_returns(world: World, pick: int) -> cmd.Command | None:
    """Return the result of a tool that runs; sometimes of an attempt that is over."""
    call = choose([call for call in world.calls("function") if call.attempt], pick)
    if call is None:
        return None
    attempt = call.attempt - 1 if pick % 5 == 0 else call.attempt
    return cmd.FinishToolCall(call_id=call.id, attempt=attempt, result={"n": pick})


def call_fails(world: World, pick: int) -> cmd.Command | None:
    """Return the failure of a call that runs."""
    call = choose([call for call in world.state.control.calls if call.attempt], pick)
    if call is None:
        return None
    error = Error(code="rate_limited", message="no", retryable=pick % 2 == 0)
    return cmd.FailCall(call_id=call.id, attempt=call.attempt, error=error)


# ----------------------------------------------------------------- workers


def worker_answers(world: World, kind: str, pick: int) -> cmd.Command | None:
    """Return a worker's response to the decision that is out."""
    decision = world.decision_out()
    if decision is None:
        return None
    response = _response(world, kind, pick)
    return cmd.AnswerDecision(decision_id=decision.id, attempt=decision.attempt, response=response)


def proposal(world: World) -> DecisionResponse:
    """Return what the worker is offered, as a worker gets it."""
    decision = world.decision_out()
    assert decision is not None
    request = decision_request(world.state, world.env(), decision)
    assert request.proposed.actions == (
        propose(
            Draft(world.state, world.env()), decision.turn_id, decision.trigger, decision.id
        ).actions
    )
    return request.proposed


def _response(world: World, kind: str, pick: int) -> DecisionResponse:
    calls = [call for call in world.state.control.calls if call.kind != "llm"]
    call = choose(calls, pick)
    call_id = call.id if call is not None else None
    match kind:
        case "proposed":
            return proposal(world)
        case "nothing":
            return DecisionResponse()
        case "state":
            return DecisionResponse(
                state={"n": pick}, shared_state={} if pick % 2 else {"s": pick}, agent=None
            )
        case "said":
            said = AssistantMessage(id=world.new_id("msg"), content="by the worker")
            return DecisionResponse(messages=(said,))
        case _:
            return DecisionResponse(actions=_actions(world, kind, pick, call_id))


def _actions(world: World, kind: str, pick: int, call_id: str | None) -> tuple[Action, ...]:
    question = QUESTIONS[pick % len(QUESTIONS)]
    unused = choose([None, *world.interrupt_ids()], pick)
    match kind:
        case "interrupt":
            return (Interrupt(reason="ask", payload=question, interrupt_id=unused),)
        case "interrupts":
            named = [call.id for call in world.calls("function", "worker")]
            return tuple(
                Interrupt(reason="ask", payload={"toolCallId": call_id}) for call_id in named
            ) or (Interrupt(reason="ask"),)
        case "result":
            return (GiveResult(result="made by the worker", id=call_id),)
        case "error":
            return (GiveError(error="refused by the worker", id=call_id),)
        case "run":
            return (RunTool(id=call_id),)
        case "tool":
            name, arguments = ASKED[pick % len(ASKED)]
            return (CallTool(name=name, arguments=arguments),)
        case "model":
            return (CallModel(),)
        case "done":
            return (Done(data={"n": pick}),)
        case "resolve":
            return (
                ResolveInterrupt(
                    interrupt_id=choose([*world.interrupt_ids(), "int-unknown"], pick) or "",
                    payload=PAYLOADS[pick % len(PAYLOADS)],
                ),
            )
        case _:
            return RUBBISH[pick % len(RUBBISH)]


RUBBISH: tuple[tuple[Action, ...], ...] = (
    (GiveResult(result="x", id="call-unknown"),),
    (Interrupt(reason=""),),
    (Interrupt(reason="ask"), CallModel()),
    (Interrupt(reason="ask"), Done()),
    (Done(), CallModel()),
    (RunTool(id="call-unknown"),),
    (GiveError(error="x"), GiveError(error="twice")),
)
"""Responses that break a rule."""

RESPONSES = (
    "proposed",
    "proposed",
    "proposed",
    "nothing",
    "state",
    "said",
    "interrupt",
    "interrupt",
    "interrupts",
    "result",
    "error",
    "run",
    "tool",
    "model",
    "done",
    "resolve",
    "rubbish",
)
