"""Sessions whose turn is busy with one thing, or waits for somebody."""

from dataclasses import replace

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.messages import AssistantMessage, Message
from engine.core.worker import Interrupt
from tests.core.given import Session, agent, paused, tool, user, view
from tests.protocol.given import PICK, SEND, append, picking, the_turn

# ---------------------------------------------------------------- it runs


def asked() -> Session:
    """The worker is asked about the input."""
    session = Session(agent(wants=frozenset({"client.messages"})))
    session.say("u1")
    return session


def calling() -> Session:
    """The model is called."""
    session = Session()
    session.say("u1")
    return session


def working() -> Session:
    """A tool runs."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND)
    return session


def working_twice() -> Session:
    """Two tools run."""
    session = Session(agent(tool("send")))
    session.say("u1")
    session.reply(None, SEND, replace(SEND, id="c2"))
    return session


def deciding() -> Session:
    """The worker is asked about a call, and another call's question waits."""
    session = Session(agent(tool("send"), wants=frozenset({"tool.execute"})))
    session.say("u1")
    session.reply(None, SEND, replace(SEND, id="c2"))
    return session


def left_open() -> Session:
    """A worker's own call is open, and its worker has left it."""
    session = Session(agent(tool("own", handler="worker"), wants=frozenset({"tool.execute"})))
    session.say("u1")
    session.reply(None, replace(SEND, name="own"))
    session.answer()
    return session


def half() -> Session:
    """A frontend's call is open, and a tool runs."""
    return picking(replace(SEND, id="c2"))


def half_decided() -> Session:
    """A frontend's call is open, and the worker is asked about the end of a tool."""
    session = picking(replace(SEND, id="c2"), wants=frozenset({"tool.finished"}))
    session.finish("c2")
    return session


def queued() -> Session:
    """The model is called, and input waits behind the turn."""
    session = calling()
    session.do(append(user("u2"), queue=True, turn_id="second"))
    return session


# --------------------------------------------------------- somebody is asked


def on_hold() -> Session:
    """A tool runs, and a person is asked something beside it."""
    session = working()
    session.do(cmd.RaiseInterrupt(reason="hold", interrupt_id="i1"))
    return session


def unstarted() -> Session:
    """A worker recorded a reply with a call, and asked a person instead of starting it."""
    session = Session(agent(tool("send"), wants=frozenset({"llm.finished"})))
    session.say("u1")
    session.reply("hm")
    reply = AssistantMessage(id="x", tool_calls=(SEND,))
    session.answer(Interrupt(reason="confirm", interrupt_id="i1"), messages=[reply])
    return session


# ----------------------------------------------------------------- it is left


def leave(session: Session, message_id: str = "edit") -> tuple[str, list[Message]]:
    """Edit the first message; return the turn that is left, and its branch."""
    turn, path = the_turn(session), session.path
    session.do(view(user(message_id), client=PICK))
    return turn.id, path


def left_while_paused() -> Session:
    """The client went elsewhere from a question."""
    session = paused()
    leave(session)
    return session


def left_while_waiting() -> Session:
    """The client went elsewhere from its own call."""
    session = picking()
    leave(session)
    return session


def left_twice() -> Session:
    """One turn is paused and left, another one waits for its frontend."""
    session = left_while_paused()
    session.reply(None, replace(SEND, id="c2", name="pick"))
    return session


def cancel(session: Session) -> list[ev.Body]:
    """Stop everything in a session."""
    return session.do(cmd.CancelSession())
