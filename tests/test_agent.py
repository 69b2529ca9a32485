"""What a user declares, and what the core is told of it."""

from datetime import timedelta
from typing import Any

import pytest

from engine.actions import (
    done,
    interrupt,
    llm_call,
    resolve,
    tool_call,
    tool_error,
    tool_result,
    tool_run,
)
from engine.agent import TRIGGERS, Agent, InvalidAgent, Tool
from engine.core.env import DECISION, FUNCTION_TOOL, MODEL_CALL, WORKER_TOOL
from engine.core.worker import (
    Action,
    CallModel,
    CallTool,
    DecisionRequest,
    DecisionResponse,
    Done,
    GiveError,
    GiveResult,
    Interrupt,
    ResolveInterrupt,
    RetryOverride,
    RunTool,
)
from engine.runtime.functions import FunctionTool

TWICE = RetryOverride(run=1, total=9, attempts=2)


def send_email(to: str, subject: str) -> str:
    """Send an email."""
    return f"sent to {to} about {subject}"


def accept(request: DecisionRequest) -> DecisionResponse:
    """Accept the engine's proposal."""
    return request.proposed


# -------------------------------------------------------------------- tools


def test_a_function_is_a_tool_the_engine_runs() -> None:
    """A plain function becomes a function tool with its signature's schema."""
    agent = Agent("operator", tools=[send_email])

    tool = agent.spec().tools["send_email"]

    assert (tool.handler, tool.description, tool.retry) == (
        "function",
        "Send an email.",
        FUNCTION_TOOL,
    )
    assert tool.parameters["required"] == ["to", "subject"]
    assert agent.functions["send_email"].function is send_email


def test_a_declared_tool_is_the_workers_own() -> None:
    """A `Tool` has the worker as its handler, and no function in the engine."""
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    agent = Agent("operator", tools=[Tool("refund", "Pay back.", schema, retry=TWICE)])

    tool = agent.spec().tools["refund"]

    assert (tool.handler, tool.parameters, tool.retry) == ("worker", schema, WORKER_TOOL.but(TWICE))
    assert tool.left_open is not None
    assert tool.left_open.total == timedelta(seconds=9)
    assert agent.functions == {}


def test_a_function_tool_may_bring_its_own_name_and_policy() -> None:
    """`FunctionTool(function, name=…, retry=…)` is taken as it is."""
    agent = Agent("operator", tools=[FunctionTool(send_email, name="mail", retry=TWICE)])

    assert agent.spec().tools["mail"].retry == FUNCTION_TOOL.but(TWICE)
    assert list(agent.functions) == ["mail"]


@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        pytest.param([send_email, send_email], "one tool of a name", id="function twice"),
        pytest.param([send_email, Tool("send_email")], "one tool of a name", id="both kinds"),
        pytest.param([Tool("send email")], "letters, digits", id="space in the name"),
        pytest.param([Tool("x" * 65)], "letters, digits", id="name too long"),
        pytest.param([FunctionTool(lambda: 1)], "letters, digits", id="lambda"),
        pytest.param([Tool("a", "", {"type": "objekt"})], "not a JSON Schema", id="bad schema"),
        pytest.param([Tool("a", "", {"type": "string"})], "the type 'object'", id="not an object"),
        pytest.param([Tool("a", "", {})], "the type 'object'", id="no type"),
    ],
)
def test_a_tool_nobody_could_call_is_refused_where_it_is_declared(
    tools: list[Any], reason: str
) -> None:
    """A name a provider refuses, a name used twice, a schema that is none: all name the agent."""
    with pytest.raises(InvalidAgent, match=reason) as raised:
        Agent("operator", tools=tools)

    assert raised.value.agent_id == "operator"


# -------------------------------------------------------------------- agent


@pytest.mark.parametrize("agent_id", ["", "a/b", "a\nb", "x" * 257])
def test_an_agents_id_can_stand_in_an_address(agent_id: str) -> None:
    """An id that no URL path segment or log line could hold is refused."""
    with pytest.raises(InvalidAgent):
        Agent(agent_id)


def test_an_agent_tells_the_core_its_model_and_instructions() -> None:
    """`spec()` carries what was configured; without a model its place holds the `llm`'s id."""
    plain = Agent("a").spec()
    whole = Agent(
        "b",
        llm="openai",
        model="m-1",
        system="Be kind.",
        retry={"default": TWICE, "decision": RetryOverride(attempts=7)},
    ).spec()

    assert (plain.id, plain.model, plain.system, plain.tools) == ("a", "demo", None, {})
    assert (whole.model, whole.system) == ("m-1", "Be kind.")
    assert whole.model_retry == MODEL_CALL.but(TWICE)
    assert whole.decision_retry == DECISION.but(TWICE).but(RetryOverride(attempts=7))


def test_a_tools_own_policy_goes_before_its_kinds_and_that_before_the_default() -> None:
    """Engine default, agent default, kind, tool: each says only what it changes."""
    agent = Agent(
        "a",
        tools=[FunctionTool(send_email, retry=RetryOverride(attempts=5)), Tool("refund")],
        retry={"default": RetryOverride(run=1, attempts=2), "function": RetryOverride(total=30)},
    )
    tools = agent.spec().tools
    sent = tools["send_email"].retry
    assert (sent.run, sent.total, sent.attempts) == (
        timedelta(seconds=1),
        timedelta(seconds=30),
        5,
    )
    assert (tools["refund"].retry.run, tools["refund"].retry.attempts) == (timedelta(seconds=1), 2)
    assert tools["refund"].left_open is None


@pytest.mark.parametrize(
    ("retry", "reason"),
    [
        ({"modell": TWICE}, "not for 'modell'"),
        ({"llm": RetryOverride(attempts=0)}, "at least one"),
        ({"llm": RetryOverride(run=-1)}, "more than 0"),
        ({"llm": RetryOverride(max=1e12)}, "0 to"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(
    retry: dict[Any, RetryOverride], reason: str
) -> None:
    """Where the agent is declared."""
    with pytest.raises(InvalidAgent, match=reason):
        Agent("a", retry=retry)


def test_a_client_runs_what_it_sees_so_nobody_can_approve_it() -> None:
    """`approve` on a client tool is a mistake in the declaration."""
    with pytest.raises(InvalidAgent, match="nobody can approve"):
        Agent("a", tools=[Tool("page", handler="client", approve=True)])


def test_an_agent_is_named_for_people_by_its_id_unless_it_has_a_name() -> None:
    """`name` and `description` are for people."""
    assert Agent("operator").name == "operator"
    assert Agent("operator", name="Ada", description="Helps.").description == "Helps."


def test_an_agents_repr_names_its_tools() -> None:
    """A printed agent shows what it is."""
    assert repr(Agent("operator", tools=[send_email])) == "Agent('operator', tools=['send_email'])"


# ------------------------------------------------------------------- worker


def test_an_agent_without_a_worker_is_asked_about_nothing() -> None:
    """Its triggers are none: the engine takes its own proposals."""
    assert Agent("operator").spec().wants == frozenset()


def test_a_worker_is_asked_about_everything_unless_it_says_which() -> None:
    """`@agent.decide` without `on` wants all triggers, and returns the function unchanged."""
    agent = Agent("operator")

    assert agent.decide(accept) is accept
    assert agent.worker is accept
    assert agent.spec().wants is None


def test_a_worker_given_to_the_constructor_is_asked_about_everything() -> None:
    """`worker=` is the same as `decide` without `on`."""
    assert Agent("operator", worker=accept).spec().wants is None


@pytest.mark.parametrize(
    ("on", "wants"),
    [
        pytest.param(("tool.execute",), {"tool.execute"}, id="one"),
        pytest.param(["llm.finished", "tool.execute"], {"llm.finished", "tool.execute"}, id="two"),
        pytest.param("tool.execute", {"tool.execute"}, id="a bare string"),
    ],
)
def test_a_worker_may_take_only_some_triggers(on: Any, wants: set[str]) -> None:
    """`on` names them; a forgotten comma is not four letters of a tuple."""
    agent = Agent("operator")

    @agent.decide(on=on)
    async def ask_first(request: DecisionRequest) -> DecisionResponse:
        return request.proposed

    assert agent.worker is ask_first
    assert agent.spec().wants == frozenset(wants)


@pytest.mark.parametrize(
    ("on", "reason"),
    [
        pytest.param(("tool.exceute",), "did you mean 'tool.execute'", id="misspelt"),
        pytest.param(("interrupt",), "did you mean 'interrupt.resumed'", id="half"),
        pytest.param((), "name a trigger", id="none"),
    ],
)
def test_an_unknown_trigger_is_refused_with_the_nearest_known_one(on: Any, reason: str) -> None:
    """A trigger that never fires would be a worker that is silently never asked."""
    agent = Agent("operator")

    with pytest.raises(InvalidAgent, match=reason):
        agent.decide(on=on)

    assert agent.worker is None


@pytest.mark.parametrize("on", [None, ("tool.execute",)], ids=["bare", "with on"])
def test_one_function_decides(on: tuple[str, ...] | None) -> None:
    """A second `decide` is refused, and the first stays."""
    agent = Agent("operator", worker=accept)
    decide = agent.decide if on is None else agent.decide(on=on)

    with pytest.raises(InvalidAgent, match="worker already"):
        decide(accept)

    assert agent.spec().wants is None


def test_a_worker_is_something_to_call() -> None:
    """Passing the triggers where the function belongs is refused at once."""
    wrong: Any = ("tool.execute",)

    with pytest.raises(InvalidAgent, match="is a function"):
        Agent("operator").decide(wrong)


def test_the_known_triggers_are_those_of_the_protocol() -> None:
    """The set is read from the trigger types, so it cannot lag behind them."""
    assert {"session.start", "client.messages", "tool.execute", "interrupt.resumed"} <= TRIGGERS


# ------------------------------------------------------------------ actions


@pytest.mark.parametrize(
    ("action", "value"),
    [
        pytest.param(interrupt("confirm"), Interrupt(reason="confirm"), id="interrupt"),
        pytest.param(
            interrupt("b", payload={"n": 1}, interrupt_id="i", answer_by="machine"),
            Interrupt(reason="b", payload={"n": 1}, interrupt_id="i", answer_by="machine"),
            id="interrupt, whole",
        ),
        pytest.param(
            resolve("i", {"approved": True}),
            ResolveInterrupt(interrupt_id="i", payload={"approved": True}),
            id="interrupt.resolve",
        ),
        pytest.param(tool_run(), RunTool(), id="tool.run"),
        pytest.param(tool_run(id="c"), RunTool(id="c"), id="tool.run of a call"),
        pytest.param(tool_result("sent"), GiveResult(result="sent"), id="tool.result"),
        pytest.param(
            tool_error("declined", id="c"), GiveError(error="declined", id="c"), id="tool.error"
        ),
        pytest.param(tool_call("t"), CallTool(name="t", arguments="{}"), id="tool.call"),
        pytest.param(
            tool_call("t", {"to": "Zoë"}, id="c"),
            CallTool(name="t", arguments='{"to": "Zoë"}', id="c"),
            id="tool.call with an object",
        ),
        pytest.param(
            tool_call("t", '{"to":1}'),
            CallTool(name="t", arguments='{"to":1}'),
            id="tool.call with text",
        ),
        pytest.param(llm_call(), CallModel(), id="llm.call"),
        pytest.param(
            llm_call(model="m", system="s"), CallModel(model="m", system="s"), id="llm.call, whole"
        ),
        pytest.param(done({"n": 1}), Done(data={"n": 1}), id="done"),
    ],
)
def test_each_constructor_returns_its_action(action: Action, value: Action) -> None:
    """What is left out keeps the protocol's default."""
    assert action == value


def test_arguments_that_are_not_json_are_refused() -> None:
    """NaN would be text that no JSON parser reads."""
    with pytest.raises(ValueError, match="JSON"):
        tool_call("t", {"n": float("nan")})
