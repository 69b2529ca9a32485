"""Moves: commands a page, a person, a model or a tool could send in a given state.

Each takes the world and small numbers that Hypothesis chose, and returns a command,
or `None` when there is nothing to do it to. Other moves: `moves_inputs.py`,
`moves_workers.py`.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from engine.core import commands as cmd
from engine.core.approvals import is_approval
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
from engine.core.worker import Error
from tests.properties.agents import CLIENT_TOOL
from tests.properties.world import World

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

LEAVES: tuple[Json, ...] = (
    {"approved": True},
    {"approved": False},
    {"approved": True, "reason": "go on"},
    {"approved": False, "reason": "too dear"},
    True,
    {"approved": "yes"},
    {"approved": 1},
    {"reason": "no word of it"},
)
"""What a person may answer to an approval; the last ones look like leave and are none."""

ASKED = (
    ("once", '{"n": 1}'),
    ("again", '{"n": 2}'),
    ("approved", '{"n": 4}'),
    ("owned", '{"n": 3}'),
    ("tried", '{"n": 5}'),
    ("page", "{}"),
    ("approved_owned", '{"n": 6}'),
    ("shown", '{"n": 7}'),
    ("tried", '{"n": 8}'),
    ("approved", '{"n": 9}'),
    ("again", '{"n": 10}'),
    ("once", '{"n": 11}'),
    ("once", '{"n": "not a number"}'),
    ("again", '{"n": '),
    ("nobody", "{}"),
)
"""Tool calls of a model: declared, the client's, with bad arguments, undeclared."""


def choose(items: Sequence[_T], pick: int) -> _T | None:
    """Return one of some items, by any number."""
    return items[pick % len(items)] if items else None


def question(world: World, pick: int) -> Json:
    """Return what a person is asked: plainly, with a choice, about a call, for a short time."""
    choice = [{"label": "Yes", "value": True}, {"label": "No", "value": "no"}]
    soon = (world.now + timedelta(seconds=30)).isoformat()
    call = choose(world.state.control.calls, pick // 7)
    about: dict[str, Json] = {} if call is None else {"toolCallId": call.id}
    asked: tuple[Json, ...] = (
        None,
        about,
        {"message": "Sure?"},
        {"metadata": {"options": choice}},
        {"message": "Soon?", "expiresAt": soon, **about},
        {"responseSchema": {"type": "object", "required": ["approved"]}},
        {"expiresAt": soon},
    )
    return asked[pick % len(asked)]


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
    `new` says how many messages it adds, `solve` whether it answers its client calls (and
    now and then those of others).
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
            for call in world.calls("client", *(("function", "worker") if end % 5 == 0 else ()))
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


def answer_everything(world: World, pick: int, new: int) -> cmd.ClientView:
    """Return a view that answers every open question, and may add a message."""
    given = tuple(
        cmd.Answer(
            interrupt_id=interrupt.id,
            payload=pick % 2 == 0 or PAYLOADS[pick % len(PAYLOADS)],
            cancelled=pick % 4 == 0,
        )
        for interrupt in world.state.control.interrupts
    )
    shown = view(world, end=1, new=new, picks=[], solve=False, lenient=True, regenerate=True)
    return cmd.ClientView(messages=shown.messages, answers=given, lenient=True)


def give_leave(world: World, pick: int, *, machine: bool) -> cmd.ResumeInterrupt | None:
    """Return an answer to an approval: yes, no, or what only looks like one of them."""
    asked = [i for i in world.state.control.interrupts if is_approval(i.payload)]
    approval = choose(asked, pick // len(LEAVES))
    if approval is None:
        return None
    answer = cmd.Answer(interrupt_id=approval.id, payload=LEAVES[pick % len(LEAVES)])
    return cmd.ResumeInterrupt(answer=answer, caller="machine" if machine else "client")


def resume(world: World, pick: int, *, machine: bool) -> cmd.ResumeInterrupt:
    """Return an answer through the API."""
    return cmd.ResumeInterrupt(
        answer=answers(world, [pick])[0], caller="machine" if machine else "client"
    )


def ask_about_a_call(world: World, pick: int) -> cmd.RaiseInterrupt | None:
    """Return a question about a call that is open, in most cases for a short time."""
    call = choose(world.calls("function", "worker"), pick)
    if call is None:
        return None
    soon = (world.now + timedelta(seconds=30)).isoformat()
    payload: Json = {"toolCallId": call.id, "expiresAt": soon if pick % 3 else None}
    return cmd.RaiseInterrupt(reason="stop", payload=payload)


CALLERS: tuple[cmd.Caller, ...] = ("client", "machine", "client", "machine", "system")
"""Who may pause a branch. The system pauses every branch there is."""


def ask_a_person(world: World, pick: int) -> cmd.RaiseInterrupt:
    """Return a question from outside; its id may have been used before, or it has no reason."""
    return cmd.RaiseInterrupt(
        reason="stop" if pick % 23 else "",
        interrupt_id=choose([None, *world.interrupt_ids()], pick),
        payload=question(world, pick),
        answer_by="machine" if pick % 4 == 0 else "client",
        caller=CALLERS[pick % len(CALLERS)],
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
    call = choose([call for call in world.calls("llm", "function") if call.attempt], pick)
    if call is None:
        return None
    error = Error(code="rate_limited", message="no", retryable=pick % 2 == 0)
    return cmd.FailCall(call_id=call.id, attempt=call.attempt, error=error)
