"""Moves of a worker: what it may answer, well or badly, to the decision that is out."""

from engine.core import commands as cmd
from engine.core.draft import Draft
from engine.core.messages import AssistantMessage, Json, ToolCall
from engine.core.pending import pending
from engine.core.propose import propose
from engine.core.request import decision_request
from engine.core.state import Decision
from engine.core.values import config
from engine.core.worker import (
    Action,
    CallModel,
    CallTool,
    ClientAction,
    DecisionRequest,
    DecisionResponse,
    Done,
    GiveError,
    GiveResult,
    Interrupt,
    InterruptResumed,
    LlmFinished,
    ResolveInterrupt,
    RetryOverride,
    RunTool,
    ToolExecute,
)
from tests.properties.moves import ASKED, PAYLOADS, choose, model_answers, question
from tests.properties.world import World

OVERRIDES = (
    RetryOverride(run=5, attempts=2),
    RetryOverride(total=30, base=1, max=0),
    RetryOverride(attempts=1),
    RetryOverride(run=600, total=10),
)
"""How long an action's work may take, and how often, instead of what the agent says."""

CONFIGS: tuple[Json, ...] = (
    {"model": "another"},
    {"model": "a third", "system": "be brief"},
    {"system": None},
    {},
)
"""What a worker may write into its agent's config; `{}` goes back to what was declared."""

RESPONSES = (
    "proposed",
    "proposed",
    "proposed",
    "proposed",
    "nothing",
    "state",
    "config",
    "said",
    "interrupt",
    "interrupts",
    "beside",
    "result",
    "error",
    "retryable",
    "run",
    "tool",
    "model",
    "done",
    "resolve",
    "rubbish",
)
"""Kinds of answers; the more often one stands here, the more often it is given."""

RUBBISH: tuple[tuple[Action, ...], ...] = (
    (GiveResult(result="x", id="call-unknown"),),
    (Interrupt(reason=""),),
    (Interrupt(reason="ask"), CallModel()),
    (Interrupt(reason="ask"), Done()),
    (Done(), CallModel()),
    (RunTool(id="call-unknown"),),
    (GiveError(error="x"), GiveError(error="twice")),
    (CallModel(retry=RetryOverride(attempts=0)),),
    (CallTool(name="once", retry=RetryOverride(run=-1)),),
    (Interrupt(reason="ask", payload={"expiresAt": "tomorrow"}),),
)
"""Responses that break a rule."""


def worker_answers(
    world: World, kind: str, pick: int, decision_id: str | None = None
) -> cmd.AnswerDecision | None:
    """Return a worker's response to a decision that is out: to one of them, or to any."""
    out = [d for d in world.decisions_out() if decision_id in {None, d.id}]
    decision = choose(out, pick // 11)
    if decision is None:
        return None
    response = _response(world, decision, kind, pick)
    return cmd.AnswerDecision(decision_id=decision.id, attempt=decision.attempt, response=response)


def request(world: World, decision: Decision) -> DecisionRequest:
    """Return what the worker is asked, and hold it against what is recorded."""
    asked = decision_request(world.state, world.env(), decision)
    offered = propose(
        Draft(world.state, world.env()), decision.turn_id, decision.trigger, decision.id
    )
    assert asked.proposed.actions == offered.actions
    assert asked.state == world.state.control.state
    assert asked.agent == config(world.spec, world.state.control)
    assert {call.id for call in asked.calls} == {call.id for call in world.state.control.calls}
    tree = asked.message_tree
    assert (tree is not None) == world.spec.send_tree
    if tree is not None:
        assert [each.message.id for each in tree.messages] == world.message_ids()
        assert tree.head_id == world.head
    return asked


def work_goes_on(world: World, pick: int) -> cmd.Command | None:
    """Return the good end of one thing that is under way. A model asks for some tools."""
    work = choose(pending(world.state), pick)
    if work is None:
        return None
    match work.kind:
        case "decision":
            return worker_answers(world, _wish(world, work.id, pick), pick, work.id)
        case "model":
            return model_answers(world, pick, [[], [pick // 3], [pick // 3, pick // 5]][pick % 3])
        case "tool":
            return cmd.FinishToolCall(call_id=work.id, attempt=work.attempt, result={"n": pick})


def _wish(world: World, decision_id: str, pick: int) -> str:
    """Return what a worker does that goes on: mostly what is proposed, and more beside it."""
    decision = world.state.decision(decision_id)
    match decision.trigger if decision is not None else None:
        case ClientAction() if pick % 4:
            return "model"
        case ToolExecute() if pick % 2:
            return choose(("retryable", "nothing", "retryable", "interrupt"), pick // 2) or ""
        case InterruptResumed() if pick % 2:
            return "nothing"
        case LlmFinished() if pick % 5 == 0:
            return "said"
        case _:
            often = ("proposed", "state", "proposed", "config", "proposed", "beside")
            return choose(often, pick) or ""


def _response(world: World, decision: Decision, kind: str, pick: int) -> DecisionResponse:
    asked = request(world, decision)
    call = choose([call for call in world.state.control.calls if call.kind != "llm"], pick)
    call_id = call.id if call is not None and pick % 4 else None
    match kind:
        case "proposed":
            return asked.proposed
        case "nothing":
            return DecisionResponse()
        case "state":
            return DecisionResponse(
                messages=asked.proposed.messages,
                state=choose(({}, {"n": pick}, 0, None), pick // 6),
                shared_state=choose(({"s": pick}, {}, [], None), pick // 24),
                actions=asked.proposed.actions,
            )
        case "config":
            written = CONFIGS[pick // 6 % len(CONFIGS)]
            return DecisionResponse(
                messages=asked.proposed.messages, agent=written, actions=asked.proposed.actions
            )
        case "said":
            never = ToolCall(id=world.new_id("call"), name="once")
            said = AssistantMessage(
                id=world.new_id("msg"),
                content="by the worker",
                tool_calls=(never,) if pick % 2 else (),
            )
            return DecisionResponse(messages=(said,), actions=(CallModel(),) if pick % 3 else ())
        case "rubbish" if pick % (len(RUBBISH) + 1) == len(RUBBISH):
            return DecisionResponse(agent={"model": 3})
        case _:
            return DecisionResponse(actions=_actions(world, kind, pick, call_id))


def _actions(world: World, kind: str, pick: int, call_id: str | None) -> tuple[Action, ...]:
    unused = choose([None, *world.interrupt_ids()], pick)
    match kind:
        case "interrupt":
            return (Interrupt(reason="ask", payload=question(world, pick), interrupt_id=unused),)
        case "interrupts":
            named = [call.id for call in world.calls("function", "worker")]
            return tuple(
                Interrupt(reason="ask", payload={"toolCallId": call_id}) for call_id in named
            ) or (Interrupt(reason="ask"),)
        case "beside":
            asks = Interrupt(reason="ask", payload=question(world, pick // 2))
            call = _call(pick // 6, among=5)
            return (call, asks) if pick % 4 < 2 else (asks, call)
        case "result":
            return (GiveResult(result="made by the worker", id=call_id),)
        case "error":
            return (GiveError(error="refused by the worker", id=call_id),)
        case "retryable":
            return (GiveError(error="try again", retryable=True),)
        case "run":
            return (RunTool(id=call_id),)
        case "tool":
            return (_call(pick),)
        case "model":
            retry = choose([None, *OVERRIDES], pick)
            return (CallModel(model="named" if pick % 3 == 0 else None, retry=retry),)
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


def _call(pick: int, among: int = len(ASKED)) -> CallTool:
    """Return a call of the worker's own: at once, or when the branch is free again."""
    name, arguments = ASKED[pick % among]
    retry = choose([None, None, *OVERRIDES], pick // 5)
    return CallTool(name=name, arguments=arguments, waits=pick // 5 % 4 == 0, retry=retry)
