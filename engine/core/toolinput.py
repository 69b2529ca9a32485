"""A tool call's arguments, as the model wrote them, judged against the tool's schema."""

import json
from collections.abc import Callable

from engine.core.env import Env
from engine.core.messages import Json
from engine.core.worker import ToolInput


def read_input(
    arguments: str, schema: Json, conforms: Callable[[Json, Json], str | None]
) -> ToolInput:
    """Parse and check raw arguments. An empty text means no arguments.

    Source: `protocol.md` section 5, `tool.execute`.
    """
    try:
        value = json.loads(arguments or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return ToolInput(status="malformed", error=f"the arguments are not JSON: {error}")
    if problem := conforms(schema, value):
        return ToolInput(status="invalid", value=value, error=problem)
    return ToolInput(status="valid", value=value)


def input_of(env: Env, name: str, arguments: str) -> ToolInput:
    """Judge a call's arguments against the schema of the agent's tool of that name."""
    spec = env.agent.tools.get(name)
    return read_input(arguments, spec.parameters if spec is not None else None, env.conforms)


def _refuse(constant: str) -> Json:
    message = f"{constant} is not JSON"
    raise ValueError(message)
