"""Random commands to a session: those of pages, machines, models, tools and workers.

Each kind of command has a function of its own, which makes one that fits the scene, more or
less; `imagine` chooses the kind.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from engine.core import commands as cmd
from engine.core.messages import (
    AssistantMessage,
    ClientContext,
    Json,
    Message,
    ReasoningMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    in_call_order,
)
from engine.core.worker import CallModel, DecisionResponse, Done, Error, Interrupt
from tests.cold.scenes import Scene

CLIENT = ClientContext(tools=({"name": "pick", "description": ""},))
NAMES = ("send", "own", "ask", "pick", "nobody")
"""Tools of the engine, of the worker, with approval, of the page, and one that is not there."""

UNKNOWN = ToolCall(id="never-asked", name="send")
A_TURN = ("T1", "T2", "T3")


def imagine(scene: Scene) -> cmd.Command:
    """Return the next command."""
    models, tools = len(scene.calls(of_models=True)), len(scene.calls(of_models=False))
    workers, questions = len(scene.questions), len(scene.state.control.interrupts)
    weights: dict[Callable[[Scene], cmd.Command], float] = {
        show_view: 6,
        append: 2,
        finish_model_call: 6 * models,
        finish_tool_call: 2 * tools,
        settle_call: 2 * tools,
        fail_call: models + tools,
        answer_decision: 8 * workers,
        fail_decision: workers,
        raise_interrupt: 1,
        resume_interrupt: 2 * questions,
        cancel: 0.25,
        take_action: 1,
        pass_time: 1,
    }
    [kind] = scene.chance.choices(list(weights), list(weights.values()))
    return kind(scene)


# ------------------------------------------------------------------ pages and machines


def show_view(scene: Scene) -> cmd.ClientView:
    """A page shows a conversation: one that was there, changed, and with something new."""
    path = _as_a_page_may_know_it(scene, _some_path(scene))
    for waiting in scene.state.control.queue:
        if scene.happens(0.3):
            path += waiting.messages
    for call in scene.calls(of_models=False):
        if call.kind == "client" and scene.happens(0.4):
            result_id = scene.new_id("result")
            path.append(ToolMessage(id=result_id, tool_call_id=call.id, content="blue"))
    path += [_new_message(scene) for _ in range(scene.chance.choice((0, 0, 1, 1, 2)))]
    if scene.happens(0.15):
        path.insert(0, SystemMessage(id=scene.new_id("system"), content="be kind"))
    answered = [_an_interrupt(scene) for _ in range(scene.chance.choice((0, 0, 1, 1, 2)))]
    return cmd.ClientView(
        messages=tuple(path),
        answers=tuple(_answer(scene, each) for each in dict.fromkeys(answered)),
        client=CLIENT if scene.happens(0.7) else ClientContext(),
        lenient=scene.happens(0.6),
        turn_id=scene.chance.choice(A_TURN) if scene.happens(0.25) else None,
    )


def _some_path(scene: Scene) -> list[Message]:
    """Return the path to the head, or to any other place of the conversation."""
    control = scene.state.control
    end = control.head
    if scene.happens(0.7):
        tips = [turn.tip for turn in control.turns]
        recorded = [node.message.id for node in scene.nodes()]
        end = scene.chance.choice([control.head, None, *tips, *recorded])
    return [node.message for node in scene.state.tree.path(end)]


def _as_a_page_may_know_it(scene: Scene, path: list[Message]) -> list[Message]:
    """Leave something out of a path, change its order, or add what stands elsewhere."""
    match scene.chance.randrange(20):
        case 0 | 1 | 2 | 3 | 4:
            return [message for message in path if _is_text(message)]
        case 5 | 6 if path:
            path.pop(scene.chance.randrange(len(path)))
        case 7 | 8:
            return in_call_order(path)
        case 9 if nodes := scene.nodes():
            place = scene.chance.randrange(len(path) + 1)
            path.insert(place, scene.chance.choice(nodes).message)
        case _:
            pass
    return path


def _is_text(message: Message) -> bool:
    if isinstance(message, AssistantMessage):
        return bool(message.content)
    return isinstance(message, UserMessage)


def _new_message(scene: Scene) -> Message:
    """Return a message that is not recorded: mostly a person's, else one that is invented."""
    message_id = scene.new_id("message")
    call = scene.chance.choice([*scene.asked_calls(), UNKNOWN])
    match scene.chance.randrange(10):
        case 0:
            return SystemMessage(id=message_id, content="be brief")
        case 1:
            return ReasoningMessage(id=message_id, content="hm")
        case 2:
            return AssistantMessage(id=message_id, content="I said so", tool_calls=(call,))
        case 3:
            return ToolMessage(id=message_id, tool_call_id=call.id, content="it did this")
        case _:
            return UserMessage(id=message_id, content="hello")


def append(scene: Scene) -> cmd.AppendMessages:
    """Somebody adds messages at the head: new ones, or some that came before."""
    messages: list[Message] = []
    for _ in range(scene.chance.choice((1, 1, 2))):
        nodes = scene.nodes()
        if nodes and scene.happens(0.2):
            messages.append(scene.chance.choice(nodes).message)
        else:
            messages.append(_new_message(scene))
    return cmd.AppendMessages(
        messages=tuple(messages),
        client=CLIENT,
        queue=scene.happens(0.6),
        turn_id=scene.chance.choice(A_TURN) if scene.happens(0.4) else None,
    )


def raise_interrupt(scene: Scene) -> cmd.RaiseInterrupt:
    """Somebody outside pauses the conversation, for some time or until it is answered."""
    payload: Json = None
    if scene.happens(0.2):
        until = scene.now + timedelta(minutes=scene.chance.choice((1, 60)))
        payload = {"expiresAt": until.isoformat().replace("+00:00", "Z")}
    caller: Sequence[cmd.Caller] = ("client",) * 5 + ("machine", "system")
    return cmd.RaiseInterrupt(reason="hold", caller=scene.chance.choice(caller), payload=payload)


def resume_interrupt(scene: Scene) -> cmd.ResumeInterrupt:
    """A machine answers an open question."""
    interrupt = scene.chance.choice(scene.state.control.interrupts)
    return cmd.ResumeInterrupt(answer=_answer(scene, interrupt.id), caller="machine")


def _an_interrupt(scene: Scene) -> str:
    """Return the id of an open question, or of one that may be over or was never there."""
    return scene.chance.choice([*(i.id for i in scene.state.control.interrupts), "old", "mine"])


def _answer(scene: Scene, interrupt_id: str) -> cmd.Answer:
    payload = scene.chance.choice((True, False, {"approved": True}))
    return cmd.Answer(interrupt_id=interrupt_id, payload=payload, cancelled=scene.happens(0.2))


def settle_call(scene: Scene) -> cmd.SettleCall:
    """Somebody outside ends a call, whether it is theirs or not."""
    call = scene.chance.choice(scene.calls(of_models=False))
    caller: Sequence[cmd.Caller] = ("client", "machine")
    return cmd.SettleCall(call_id=call.id, result="done", caller=scene.chance.choice(caller))


def cancel(scene: Scene) -> cmd.CancelSession:
    """Somebody stops everything."""
    return cmd.CancelSession()


def take_action(scene: Scene) -> cmd.TakeAction:
    """A person presses a button."""
    return cmd.TakeAction(name="press")


def pass_time(scene: Scene) -> cmd.PassTime:
    """What is due happens."""
    return cmd.PassTime()


# ------------------------------------------------------------------- models and tools


def finish_model_call(scene: Scene) -> cmd.FinishModelCall:
    """A model replies: with text, thoughts and calls of tools, or none of them."""
    call = scene.chance.choice(scene.calls(of_models=True))
    thoughts = (ReasoningMessage(id=scene.new_id("thought"), content="hm"),)
    return cmd.FinishModelCall(
        call_id=call.id,
        attempt=call.attempt,
        message=AssistantMessage(
            id=call.message_id,
            content=scene.chance.choice((None, "text", "text")),
            tool_calls=tuple(
                _tool_call(scene) for _ in range(scene.chance.choice((0, 0, 1, 1, 2, 3)))
            ),
        ),
        reasoning=thoughts if scene.happens(0.3) else (),
    )


def _tool_call(scene: Scene) -> ToolCall:
    arguments = scene.chance.choice(('{"to": "ada"}', '{"to": 1}'))
    return ToolCall(id=scene.new_id("call"), name=scene.chance.choice(NAMES), arguments=arguments)


def finish_tool_call(scene: Scene) -> cmd.FinishToolCall:
    """A tool returns."""
    call = scene.chance.choice(scene.calls(of_models=False))
    return cmd.FinishToolCall(call_id=call.id, attempt=call.attempt, result="done")


def fail_call(scene: Scene) -> cmd.FailCall:
    """A model or a tool fails; another try may help."""
    call = scene.chance.choice(scene.state.control.calls)
    code = "provider_error" if call.kind == "llm" else "tool_error"
    error = Error(code=code, message="no luck", retryable=scene.happens(0.5))
    return cmd.FailCall(call_id=call.id, attempt=call.attempt, error=error)


# ----------------------------------------------------------------------------- workers


def answer_decision(scene: Scene) -> cmd.AnswerDecision:
    """A worker answers: mostly what the engine proposed, and sometimes with values."""
    question = scene.chance.choice(scene.questions)
    return cmd.AnswerDecision(
        decision_id=question.decision_id,
        attempt=question.attempt,
        response=_with_values(scene, _response(scene, question.proposed)),
    )


def _response(scene: Scene, proposed: DecisionResponse) -> DecisionResponse:
    messages = proposed.messages
    match scene.chance.randrange(20):
        case 0:
            return DecisionResponse()
        case 1:
            return DecisionResponse(messages=messages)
        case 2:
            return DecisionResponse(actions=(Done(),))
        case 3:
            word = UserMessage(id=scene.new_id("word"), content="instead")
            return DecisionResponse(messages=(word,), actions=(CallModel(),))
        case 4 | 5 | 6 | 7:
            named = scene.chance.choice((None, "mine"))
            actions = (Interrupt(reason="question", interrupt_id=named),)
            return DecisionResponse(messages=messages, actions=actions)
        case _:
            return DecisionResponse(messages=messages, actions=proposed.actions)


def _with_values(scene: Scene, response: DecisionResponse) -> DecisionResponse:
    number = next(scene.numbers)
    if scene.happens(0.3):
        response = replace(response, state={"n": number})
    if scene.happens(0.2):
        response = replace(response, shared_state=scene.chance.choice(({}, {"s": number})))
    if scene.happens(0.2):
        response = replace(response, agent={"model": f"m{number}"})
    return response


def fail_decision(scene: Scene) -> cmd.FailDecision:
    """A worker fails; another try may help."""
    question = scene.chance.choice(scene.questions)
    error = Error(code="worker_error", message="no luck", retryable=scene.happens(0.7))
    return cmd.FailDecision(decision_id=question.decision_id, attempt=question.attempt, error=error)
