"""Scenarios about people: asked, answering, leaving, coming back, waiting in a queue."""

from engine.core import commands as cmd
from engine.core.worker import CallTool, Interrupt
from tests.core.given import Session, agent, tool, user, view
from tests.histories.played import (
    PICK,
    accept,
    approving,
    asked,
    gating,
    patient,
    pause,
    pick,
    picked,
    picking,
    press,
    scenario,
    send,
    sending,
)

YES = {"approved": True}
NO = {"approved": False, "reason": "not today"}

# ---------------------------------------------------------------- answers


@scenario
def approve_and_run() -> Session:
    """A person approves; the email is sent, and the model says so."""
    session = asked()
    session.wait(days=9)
    session.resume(YES, responder={"channel": "ag-ui", "user": "ada"})
    session.finish("c1", "sent to ada")
    session.reply("It is sent.")
    return session


@scenario
def declined() -> Session:
    """A person declines; the model reads why, and the turn goes on."""
    session = asked()
    session.resume(NO)
    session.reply("I left it.")
    return session


@scenario
def given_up() -> Session:
    """The question is given up: the call ends, and the model goes on."""
    session = asked()
    session.resume(cancelled=True)
    session.reply("Never mind.")
    return session


@scenario
def expired_while_down() -> Session:
    """Nobody answers in time, and the server was down when the time was over."""
    session = Session(gating())
    session.say("u1")
    session.reply(None, send())
    session.answer(Interrupt(reason="confirm", payload={"expiresAt": "2026-01-02T00:00:00Z"}))
    session.wait(days=30)
    session.do(cmd.Recover())
    session.reply("Nobody answered.")
    return session


@scenario
def two_questions() -> Session:
    """Two emails need a person; the first answer waits until the second is there."""
    session = Session(approving())
    session.say("u1")
    session.reply(None, send("c1"), send("c2", "bob"))
    first, second = (i.id for i in session.state.control.interrupts)
    session.resume(NO, interrupt_id=first)
    session.resume(YES, interrupt_id=second)
    session.finish("c2", "sent to bob")
    session.reply("One of two.")
    return session


@scenario
def a_model_is_interrupted() -> Session:
    """Somebody pauses while the model speaks: its words are dropped, another call follows."""
    session = Session()
    session.say("u1")
    pause(session)
    session.resume("go on")
    session.reply("Hello.")
    return session


@scenario
def no_clock_while_a_person_thinks() -> Session:
    """A worker left its call open; a question holds the call, and then its time starts anew."""
    session = Session(gating(to=patient()))
    session.say("u1")
    session.reply(None, send())
    session.answer()
    pause(session, payload={"toolCallId": "c1"})
    session.wait(days=3)
    session.do(cmd.PassTime())
    session.resume(YES)
    session.do(cmd.SettleCall(call_id="c1", result="sent", caller="machine"))
    session.reply("It is sent.")
    return session


@scenario
def cancelled_while_asked() -> Session:
    """A cancel ends the question, its call and the turn."""
    session = asked()
    session.do(cmd.CancelSession())
    return session


# ------------------------------------------------------- outside any turn


def _asked_outside() -> Session:
    spec = agent(
        tool("pick_date", handler="client"),
        wants=frozenset({"client.action", "interrupt.resumed"}),
    )
    session = Session(spec)
    press(session)
    session.answer(Interrupt(reason="confirm"), CallTool(name="pick_date", id="c2"))
    return session


@scenario
def asked_outside_a_turn() -> Session:
    """No turn runs; a worker asks and starts a call, and the turn begins paused."""
    session = _asked_outside()
    session.resume("yes")
    press(session)
    session.answer()
    session.answer()
    session.do(cmd.SettleCall(call_id="c2", result="Friday"))
    session.reply("Friday it is.")
    return session


@scenario
def cancelled_outside_a_turn() -> Session:
    """The same, and a cancel: the question is not the turn's, so the turn ends paused."""
    session = _asked_outside()
    session.do(cmd.CancelSession())
    return session


# --------------------------------------------------------------- branches


@scenario
def leave_and_come_back() -> Session:
    """The branch that waits is left by an edit, and found again as it was."""
    session = asked()
    old = session.path
    session.do(view(user("u2", "Rather write a poem."), client=PICK))
    session.reply("Roses are red.")
    session.do(view(*old, client=PICK))
    session.resume(YES)
    session.finish("c1", "sent to ada")
    session.reply("It is sent.")
    return session


@scenario
def ask_leave_come_back_answer() -> Session:
    """The story of `docs/concepts.md`: a worker asks first, the branch is left and found again."""
    session = Session(gating())
    first = user("m1", "Email Ada about lunch.")
    session.do(view(first, turn_id="email"))
    session.reply(None, send())
    session.answer(Interrupt(reason="confirm", payload={"message": "Send the email?"}))
    asked_there = session.path
    session.wait(minutes=5)
    session.do(view(user("m2", "Write a poem instead."), turn_id="poem"))
    session.reply("Roses are red.")
    session.wait(days=2)
    session.do(view(*asked_there))
    session.resume({"approved": True})
    session.finish("c1", "sent to ada")
    session.reply("It is sent.")
    return session


@scenario
def abandoned() -> Session:
    """The question is answered on a branch nobody uses: nothing runs, the turn is over."""
    session = asked()
    session.do(view(user("u2", "Rather write a poem."), client=PICK))
    session.reply("Roses are red.")
    session.resume(YES)
    return session


@scenario
def leave_a_page_tool_and_come_back() -> Session:
    """A turn that waits for the page only is left and found again."""
    session = picking()
    old = session.path
    session.do(view(user("u2", "Rather write a poem."), client=PICK))
    session.reply("Roses are red.")
    session.do(view(*old, client=PICK))
    session.do(view(*old, picked(), client=PICK))
    session.reply("Friday it is.")
    return session


@scenario
def come_back_to_work() -> Session:
    """While the branch is left its tool ends and its question is answered: work is waiting."""
    session = picking(sending(), send())
    pause(session)
    old = session.path
    session.do(view(user("u2", "Rather write a poem."), client=PICK))
    session.finish("c1", "sent to ada")
    session.reply("Roses are red.")
    session.resume("go on")
    session.do(view(*old, client=PICK))
    session.do(view(*session.path, picked(), client=PICK))
    session.reply("Friday, and it is sent.")
    return session


@scenario
def left_while_a_worker_is_asked() -> Session:
    """A decision that is out when its branch is left is asked again when it is back."""
    session = asked(gating())
    pause(session)
    old = session.path
    session.do(view(user("u2", "Rather write a poem."), client=PICK))
    session.reply("Roses are red.")
    session.do(view(*old, client=PICK))
    session.resume("go on")
    session.answer()
    session.do(cmd.CancelSession())
    return session


@scenario
def left_with_an_answer() -> Session:
    """What pauses every branch is given up by the edit that leaves: the old turn is over."""
    session = Session()
    session.say("u1")
    pause(session, "everything", caller="system")
    [interrupt] = session.state.control.interrupts
    answer = cmd.Answer(interrupt_id=interrupt.id, cancelled=True)
    session.do(view(user("u2"), answers=(answer,)))
    session.reply("Hello.")
    return session


@scenario
def values_of_a_branch() -> Session:
    """What a worker remembers belongs to the branch; moving there brings it back."""
    session = Session(agent(wants=frozenset({"client.messages", "llm.finished"})))
    session.say("u1")
    config = {"model": "m", "system": "Be short."}
    accept(session, state={"n": 1}, shared_state={"step": 1}, agent=config)
    session.reply("One.")
    accept(session, state={"n": 2})
    session.do(view(user("u2")))
    accept(session)
    session.reply("Two.")
    accept(session)
    session.do(view(user("u1")))
    return session


# -------------------------------------------------------------- the queue


def _queued() -> Session:
    session = Session()
    session.say("u1")
    session.do(cmd.AppendMessages(messages=(user("u2", "And then?"),), queue=True, turn_id="next"))
    session.do(cmd.AppendMessages(messages=(user("u3", "And last?"),), client=PICK, queue=True))
    return session


@scenario
def queue_and_run() -> Session:
    """Input waits behind the running turn; each turn starts when the one before is over."""
    session = _queued()
    for said in ("One.", "Two.", "Three."):
        session.reply(said)
    return session


@scenario
def queue_then_cancel() -> Session:
    """A cancel drops what waits."""
    session = _queued()
    session.do(cmd.CancelSession())
    return session


# -------------------------------------------------------- the page's tools


@scenario
def the_page_answers() -> Session:
    """The page's tool ends through a view, and the model goes on."""
    session = picking()
    session.do(view(*session.path, picked(), client=PICK))
    session.reply("Friday it is.")
    return session


@scenario
def the_page_is_passed_over() -> Session:
    """The person writes instead of picking: the call is given up, the words join the turn."""
    session = picking()
    session.say("u2", client=PICK)
    session.reply("Very well.")
    return session


@scenario
def asked_while_the_page_picks() -> Session:
    """A question beside the page's tool, answered first."""
    session = picking()
    pause(session)
    session.resume("go on")
    session.do(view(*session.path, picked(), client=PICK))
    session.reply("Friday it is.")
    return session


@scenario
def the_page_and_a_tool() -> Session:
    """One reply wants the page and a tool of the server; the tool is done first."""
    session = Session(sending())
    session.say("u1", client=PICK)
    session.reply(None, pick(), send())
    session.finish("c1", "sent to ada")
    session.do(view(*session.path, picked(), client=PICK))
    session.reply("Friday, and it is sent.")
    return session
