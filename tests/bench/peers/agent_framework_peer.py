"""Agent Framework: its FastAPI endpoint over an agent with a fake chat client.

The client has the same layers as those that are shipped.
"""

import logging
import uuid
from collections.abc import AsyncIterator
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Message,
)
from agent_framework._middleware import ChatMiddlewareLayer
from agent_framework._tools import FunctionInvocationLayer
from agent_framework.observability import ChatTelemetryLayer
from agent_framework_ag_ui import add_agent_framework_fastapi_endpoint
from common import DELTAS, arguments, serve
from fastapi import FastAPI


class _Model(BaseChatClient):
    def _inner_get_response(
        self, *, messages: Any, stream: bool, options: Any, **_more: Any
    ) -> Any:
        if stream:
            return self._build_response_stream(_updates())
        return _whole()


class Model(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, _Model):
    """The fake model in the layers of a real one."""


async def _whole() -> ChatResponse:
    message = Message(role="assistant", contents=["".join(DELTAS)])
    return ChatResponse(messages=[message], response_id="response")


async def _updates() -> AsyncIterator[ChatResponseUpdate]:
    response_id, message_id = f"resp-{uuid.uuid4().hex}", f"msg-{uuid.uuid4().hex}"
    for delta in DELTAS:
        yield ChatResponseUpdate(
            contents=[Content.from_text(delta)],
            role="assistant",
            response_id=response_id,
            message_id=message_id,
        )


for name in ("agent_framework", "agent_framework_ag_ui"):
    logging.getLogger(name).setLevel(logging.WARNING)
app = FastAPI()
add_agent_framework_fastapi_endpoint(
    app,
    Agent(client=Model(), name="fake", instructions="You are a helpful assistant."),
    "/",
    single_user=True,
)
serve(app, arguments().port)
