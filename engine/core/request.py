"""The request a worker receives, built from the state.

Source: `protocol.md` section 5.
"""

from engine.core import values
from engine.core.draft import Draft
from engine.core.env import Env
from engine.core.messages import in_call_order
from engine.core.propose import asked, propose
from engine.core.state import Call, Decision, State
from engine.core.status import call_status
from engine.core.worker import (
    Branching,
    CallInFlight,
    DecisionRequest,
    Identity,
    MessageTree,
    OpenQuestion,
)


def decision_request(state: State, env: Env, decision: Decision) -> DecisionRequest:
    """Return what the worker is told about a decision that is out."""
    control = state.control
    path = [node.message for node in state.tree.path(control.head)]
    return DecisionRequest(
        session_id=control.session_id,
        agent_id=control.agent_id,
        turn_id=decision.turn_id,
        decision_id=decision.id,
        attempt=decision.attempt,
        identity=Identity(id=control.owner),
        trigger=asked(decision),
        proposed=propose(Draft(state, env), decision.turn_id, decision.trigger, decision.id),
        state=control.state,
        agent=values.config(env.agent, control),
        messages=in_call_order(path),
        calls=[_in_flight(call) for call in control.calls],
        interrupts=[
            OpenQuestion(
                interrupt_id=interrupt.id,
                reason=interrupt.reason,
                payload=interrupt.payload,
                tool_call_id=interrupt.tool_call_id,
                anchor=interrupt.anchor,
            )
            for interrupt in control.interrupts
        ],
        deadline=decision.deadline,
        message_tree=_message_tree(state) if env.agent.send_tree else None,
    )


def _in_flight(call: Call) -> CallInFlight:
    return CallInFlight(
        id=call.id,
        kind=call.kind,
        status=call_status(call),
        attempt=call.attempt,
        name=call.name or None,
        arguments=call.arguments or None,
        anchor=call.anchor,
        deadline=call.deadline,
    )


def _message_tree(state: State) -> MessageTree:
    """Return every branch; the tree must be loaded whole."""
    return MessageTree(
        messages=[
            Branching(message=node.message, parent_id=node.parent_id) for node in state.tree.nodes()
        ],
        head_id=state.control.head,
    )
