"""The request a worker receives, built from the state.

Source: `protocol.md` section 5.
"""

from engine.core.draft import Draft
from engine.core.env import Env
from engine.core.messages import in_call_order
from engine.core.propose import propose
from engine.core.state import Decision, State
from engine.core.worker import CallInFlight, DecisionRequest, Identity, OpenQuestion


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
        trigger=decision.trigger,
        proposed=propose(Draft(state, env), decision.turn_id, decision.trigger, decision.id),
        state=control.state,
        agent=control.agent,
        messages=in_call_order(path),
        calls=[
            CallInFlight(
                id=call.id,
                kind=call.kind,
                attempt=call.attempt,
                name=call.name or None,
                arguments=call.arguments or None,
                anchor=call.anchor,
                deadline=call.deadline,
            )
            for call in control.calls
        ],
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
    )
