"""What routes show of a session.

A client sees the conversation and what is open in it. It never sees the worker's memory, the
agent's config, or a provider's words; a machine does.

Source: `protocol.md` section 13.
"""

from agui_server.channels.prompts import choices
from engine.agent import Agent
from engine.core.messages import Json, in_call_order, members
from engine.core.state import Call, Decision, OpenInterrupt, State
from engine.core.status import active_turn, call_status, status
from engine.core.values import config
from engine.engine import Conversation
from engine.store.codec import message_json, rfc3339, trigger_json
from engine.store.protocol import SessionRow


def listed(row: SessionRow) -> dict[str, Json]:
    """Return a session as a list shows it."""
    return {
        "session_id": row.session_id,
        "thread_id": row.thread_id,
        "agent_id": row.agent_id,
        "title": row.title,
        "status": row.status,
        "updated_at": rfc3339(row.updated_at),
        "created_at": rfc3339(row.created_at),
    }


def machine_listed(row: SessionRow) -> dict[str, Json]:
    """Return a session as a machine's list shows it."""
    return {**listed(row), "owner": row.owner}


def client_view(conversation: Conversation) -> dict[str, Json]:
    """Return a session as its client sees it.

    `messages` is the active path, each result behind the message that asked; the tree has
    every branch, parents first.
    """
    row, state = conversation.row, conversation.state
    control, turn = state.control, active_turn(state)
    path = [node.message for node in state.tree.path(control.head)]
    return {
        "session_id": control.session_id,
        "thread_id": control.thread_id,
        "agent_id": control.agent_id,
        "title": row.title,
        "status": row.status,
        **({"turn_id": turn.id} if turn is not None else {}),
        "turns": [{"turn_id": t.id, "status": status(state, t)} for t in control.turns],
        "queue": [queued.id for queued in control.queue],
        "interrupts": [interrupt_view(interrupt) for interrupt in control.interrupts],
        "shared_state": control.shared_state,
        "messages": [message_json(message) for message in in_call_order(path)],
        "message_tree": _tree(state),
    }


def _tree(state: State) -> Json:
    return {
        "head_id": state.control.head,
        "messages": [
            {"message": message_json(node.message), "parent_id": node.parent_id}
            for node in state.tree.nodes()
        ],
    }


def interrupt_view(interrupt: OpenInterrupt) -> dict[str, Json]:
    """Return an open question. `options` are what it can be answered with by an index."""
    offered = choices(interrupt.payload)
    return {
        "interrupt_id": interrupt.id,
        "reason": interrupt.reason,
        "payload": interrupt.payload,
        "answer_by": interrupt.answer_by,
        **_optional(
            anchor=interrupt.anchor,
            tool_call_id=interrupt.tool_call_id,
            turn_id=interrupt.turn_id,
            expires_at=rfc3339(interrupt.expires) if interrupt.expires is not None else None,
            options=[choice.to_json() for choice in offered] or None,
        ),
    }


def machine_view(conversation: Conversation, agent: Agent | None = None) -> dict[str, Json]:
    """Return a session as a machine sees it. Of an unknown agent only what decisions changed."""
    control = conversation.state.control
    in_force = members(control.agent) if agent is None else config(agent.spec(), control)
    return {
        **client_view(conversation),
        "owner": control.owner,
        "state": control.state,
        "agent": in_force,
        "calls": [_call(call) for call in control.calls],
        "decisions": [_decision(decision) for decision in control.decisions],
    }


def _call(call: Call) -> dict[str, Json]:
    return {
        "id": call.id,
        "kind": call.kind,
        "status": call_status(call),
        "attempt": call.attempt,
        "turn_id": call.turn_id,
        **_optional(
            name=call.name or None,
            arguments=call.arguments or None,
            anchor=call.anchor,
            deadline=rfc3339(call.deadline) if call.deadline is not None else None,
        ),
    }


def _decision(decision: Decision) -> dict[str, Json]:
    """Return a decision that is out (`attempt` above 0) or waits in line."""
    return {
        "decision_id": decision.id,
        "attempt": decision.attempt,
        "trigger": trigger_json(decision.trigger),
        **_optional(
            turn_id=decision.turn_id,
            deadline=rfc3339(decision.deadline) if decision.deadline is not None else None,
        ),
    }


def _optional(**fields: Json) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}
