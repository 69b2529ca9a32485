"""Approvals: tools that a person lets run, call by call.

The engine proposes them: the reply is recorded, its calls open, and one question for
each call that needs a person. None of the reply's other calls starts before all are
answered; those the frontend runs are open at once, for it has seen them.

Source: `protocol.md` section 10.
"""

import json
from collections.abc import Sequence

from engine.core.env import Env
from engine.core.messages import Json, ToolCall, members
from engine.core.toolinput import input_of
from engine.core.worker import Action, CallTool, Interrupt

APPROVAL = "tool.approval"
"""The `metadata.type` of such a prompt: its answer may be any object with `approved`."""

DECLINED = "a person declined"
"""What a model reads about a call that somebody did not approve."""

_ANSWER: Json = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


def start_calls(env: Env, calls: Sequence[ToolCall]) -> tuple[Action, ...]:
    """Return what starts a reply's calls: at once, or when those that need it are approved."""
    asked = [call for call in calls if _needs(env, call)]
    opened = tuple(
        CallTool(id=call.id, name=call.name, arguments=call.arguments, waits=bool(asked))
        for call in calls
    )
    return (*opened, *(_question(call) for call in asked))


def _needs(env: Env, call: ToolCall) -> bool:
    """Whether a call needs a person. One that cannot run in any case bothers nobody."""
    spec = env.agent.tools.get(call.name)
    if spec is None or not spec.approve:
        return False
    return input_of(env, call.name, call.arguments).status == "valid"


def _question(call: ToolCall) -> Interrupt:
    arguments = members(json.loads(call.arguments or "{}"))
    return Interrupt(
        interrupt_id=f"approve:{call.id}",
        reason="tool_call",
        payload={
            "message": _sentence(call.name, arguments),
            "toolCallId": call.id,
            "responseSchema": _ANSWER,
            "metadata": {
                "type": APPROVAL,
                "tool": call.name,
                "arguments": arguments,
                "options": [
                    {"label": "Run it", "value": {"approved": True}, "style": "primary"},
                    {"label": "Decline", "value": {"approved": False}, "style": "danger"},
                ],
            },
        },
    )


def _sentence(name: str, arguments: dict[str, Json]) -> str:
    written = ", ".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items()
    )
    return f"Run {name} with {written}?" if written else f"Run {name}?"


def is_approval(payload: Json) -> bool:
    """Whether a prompt asks to let a tool run."""
    return members(members(payload).get("metadata")).get("type") == APPROVAL


def approves(answer: Json) -> bool:
    """Whether an answer approves: exactly `true`, or an object whose `approved` is `true`."""
    return answer is True or members(answer).get("approved") is True


def refusal(answer: Json) -> str:
    """Return what the model reads about a call that was declined: and why, if that was said."""
    reason = members(answer).get("reason")
    return f"{DECLINED}: {reason}" if isinstance(reason, str) and reason else DECLINED
