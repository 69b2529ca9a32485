"""Scenarios about work: decisions, calls and their attempts, what ends before its time."""

from datetime import timedelta

from engine.core import commands as cmd
from engine.core.messages import ToolCall
from engine.core.worker import (
    CallModel,
    CallTool,
    Done,
    GiveError,
    GiveResult,
    Interrupt,
    RunTool,
)
from tests.core.given import Session, agent, tool, user, view
from tests.histories.played import (
    PICK,
    TWICE,
    accept,
    approving,
    asked,
    gating,
    model_fails,
    patient,
    pause,
    pick,
    picked,
    picking,
    press,
    scenario,
    send,
    sending,
    tool_fails,
    worker_fails,
)

ACTIONS = frozenset({"client.action"})

# -------------------------------------------------------------- decisions


@scenario
def the_worker_decides_everything() -> Session:
    """A worker that wants every trigger: each is a decision, one after another."""
    session = Session(agent(tool("send_email", handler="worker"), wants=None))
    session.say("u1")
    accept(session)
    accept(session)
    session.reply(None, send())
    accept(session)
    session.answer(GiveResult(result="sent"))
    session.answer(Done(data={"sent": 1}))
    return session


@scenario
def the_worker_asks_first() -> Session:
    """A worker asks a person before a tool runs, and lets the engine go on with the answer."""
    session = asked(gating())
    session.answer(Interrupt(reason="confirm", payload={"message": "Send the email?"}))
    session.resume(True)
    session.finish("c1", "sent to ada")
    session.reply("It is sent.")
    return session


@scenario
def the_worker_fails_once() -> Session:
    """An attempt fails and another follows."""
    session = asked(gating())
    worker_fails(session, retryable=True)
    session.answer(GiveError(error="not allowed"))
    session.reply("I may not.")
    return session


@scenario
def the_worker_gives_up() -> Session:
    """The last attempt fails: the turn ends with it, and what waits behind it is dropped."""
    session = Session(agent(tool("send_email"), wants=frozenset({"llm.finished", *ACTIONS})))
    session.say("u1")
    press(session)
    session.reply(None, send())
    session.answer()
    worker_fails(session)
    return session


@scenario
def it_fails_while_paused() -> Session:
    """A decision that fails while the branch is paused is asked again when it is free."""
    session = asked(gating())
    pause(session)
    worker_fails(session)
    session.resume("go on")
    session.answer(GiveError(error="not allowed"))
    session.reply("I may not.")
    return session


def _held() -> Session:
    session = asked(gating())
    pause(session)
    session.answer(RunTool())
    return session


@scenario
def held_and_done() -> Session:
    """A worker answers while the branch is paused: what it starts is done when it is free."""
    session = _held()
    session.resume("go on")
    session.finish("c1", "sent to ada")
    session.reply("It is sent.")
    return session


@scenario
def held_and_cancelled() -> Session:
    """The same, and a cancel: it is never done."""
    session = _held()
    session.do(cmd.CancelSession())
    return session


@scenario
def cancelled_while_a_worker_is_asked() -> Session:
    """A cancel drops the decision that is out, and those in line."""
    session = Session(agent(tool("send_email"), wants=frozenset({"tool.execute", *ACTIONS})))
    session.say("u1")
    session.reply(None, send())
    press(session)
    session.do(cmd.CancelSession())
    return session


@scenario
def an_action_outlives_its_turn() -> Session:
    """A button is pressed while a worker decides; the turn ends, and the action is asked then."""
    session = Session(agent(wants=frozenset({"llm.finished", *ACTIONS})))
    session.say("u1")
    session.reply("Hello.")
    press(session)
    session.answer(Done())
    session.answer()
    return session


# ------------------------------------------------- beside the page's tools


@scenario
def a_button_while_the_page_picks() -> Session:
    """A worker decides on a button and calls a model, while the page's tool is open."""
    session = picking(agent(wants=ACTIONS))
    press(session)
    session.answer(CallModel())
    session.reply("Take your time.")
    session.do(view(*session.path, picked(), client=PICK))
    session.reply("Friday it is.")
    return session


@scenario
def a_button_that_fails() -> Session:
    """The worker gives up on a button: the turn ends, with the page's call."""
    session = picking(agent(wants=ACTIONS))
    press(session)
    worker_fails(session)
    return session


@scenario
def a_model_that_fails_beside_the_page() -> Session:
    """The model fails for good while the page's tool is open: the turn waits for the page."""
    session = picking(agent(wants=ACTIONS))
    press(session)
    session.answer(CallModel())
    model_fails(session)
    session.do(view(*session.path, picked(), client=PICK))
    session.reply("Friday it is.")
    return session


@scenario
def cancelled_beside_the_page() -> Session:
    """A cancel stops a model first, and then gives the page's tool up."""
    session = Session(agent(tool("pick_date", handler="client"), wants=ACTIONS))
    press(session)
    session.answer(CallModel(), CallTool(name="pick_date", id="c2"))
    session.do(cmd.CancelSession())
    return session


@scenario
def an_unknown_tool_beside_the_page() -> Session:
    """One reply wants the page and a tool that nobody has."""
    session = Session()
    session.say("u1", client=PICK)
    session.reply(None, pick(), ToolCall(id="c1", name="nobody"))
    session.do(view(*session.path, picked(), client=PICK))
    session.reply("Friday it is.")
    return session


@scenario
def settled_before_the_worker_answers() -> Session:
    """Somebody settles the worker's call while the worker is asked to run it."""
    session = picking(gating(to=patient()), send())
    session.do(cmd.SettleCall(call_id="c1", result="sent", caller="machine"))
    session.do(view(*session.path, picked(), client=PICK))
    session.reply("Friday, and it is sent.")
    return session


# -------------------------------------------------------- calls, attempts


@scenario
def a_person_is_asked_about_a_tool_at_work() -> Session:
    """The worker's time for its tool does not run meanwhile, and begins anew."""
    session = Session(gating(to=patient()))
    session.say()
    session.reply(None, ToolCall(id="c1", name=patient().name, arguments='{"to": "ada"}'))
    session.do(cmd.RaiseInterrupt(reason="confirm", payload={"toolCallId": "c1"}))
    session.wait(hours=2)
    session.resume(True)
    session.answer(GiveResult(result="done"))
    session.reply("done")
    return session


@scenario
def the_model_fails_once() -> Session:
    """A model call has another attempt, which streams under an id of its own."""
    session = Session()
    session.say("u1")
    model_fails(session, retryable=True)
    session.wait(seconds=2)
    session.reply("Hello.")
    return session


@scenario
def the_model_is_lost_for_good() -> Session:
    """The last attempt of a model call fails, and the turn ends with its error."""
    session = Session()
    session.say("u1")
    model_fails(session)
    return session


@scenario
def killed_while_the_model_speaks() -> Session:
    """The process dies; another sends the model call again."""
    session = Session()
    session.say("u1")
    session.wait(minutes=1)
    session.do(cmd.Recover())
    session.reply("Hello.")
    return session


@scenario
def killed_while_a_tool_runs() -> Session:
    """The process dies; nobody knows whether the email was sent, so the model is told that."""
    session = asked(sending())
    session.do(cmd.Recover())
    session.reply("I cannot say whether it was sent.")
    return session


@scenario
def a_tool_that_may_be_tried_again() -> Session:
    """A tool whose policy allows it is tried twice, and fails twice."""
    session = asked(agent(tool("send_email", retry=TWICE)))
    tool_fails(session, retryable=True)
    session.wait(seconds=5)
    tool_fails(session, retryable=True)
    session.reply("It failed.")
    return session


@scenario
def a_tool_that_takes_too_long() -> Session:
    """The deadline of an attempt passes."""
    session = asked(agent(tool("send_email", retry=TWICE)))
    session.now += timedelta(seconds=61)
    session.do(cmd.PassTime())
    session.finish("c1", "sent to ada")
    session.reply("It is sent.")
    return session


@scenario
def bad_arguments_need_nobody() -> Session:
    """A call that cannot run is refused and bothers no person."""
    session = Session(approving())
    session.say("u1")
    session.reply(None, ToolCall(id="c1", name="send_email", arguments='{"to": 1}'))
    session.reply("That went wrong.")
    return session


@scenario
def settled_later() -> Session:
    """A worker leaves its call open, and a backend settles it after hours."""
    session = asked(gating(to=patient()))
    session.answer()
    session.wait(hours=5)
    session.do(cmd.SettleCall(call_id="c1", result="sent", caller="machine"))
    session.reply("It is sent.")
    return session


# ------------------------------------------------------- not over when recorded


@scenario
def in_the_middle_of_everything() -> Session:
    """A branch that was left, an attempt that waits for its time, a queue, an action in line."""
    spec = agent(tool("send_email"), wants=frozenset({"tool.execute", *ACTIONS}))
    session = asked(spec)
    session.answer(Interrupt(reason="confirm", payload={"message": "Send the email?"}))
    session.do(view(user("u2", "Rather write a poem."), client=PICK))
    press(session)
    press(session)
    session.do(cmd.AppendMessages(messages=(user("u3"),), client=PICK, queue=True))
    model_fails(session, retryable=True)
    return session


@scenario
def in_the_middle_of_a_pause() -> Session:
    """Held work, a running tool, and the page's tool, all behind one question."""
    session = Session(gating())
    session.say("u1", client=PICK)
    session.reply(None, send("c1"), send("c3", "bob"), pick())
    session.answer(RunTool())
    pause(session, payload={"message": "Wait.", "expiresAt": "2026-02-01T00:00:00Z"})
    session.answer(RunTool())
    return session
