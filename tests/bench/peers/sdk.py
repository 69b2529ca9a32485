"""The quickstart of `ag-ui-protocol`: its models and its encoder on Starlette, no framework."""

from collections.abc import AsyncIterator

from ag_ui.core import (
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from ag_ui.encoder import EventEncoder
from common import DELTAS, arguments, serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


async def run(request: Request) -> StreamingResponse:
    """Validate the input and stream one run."""
    asked = RunAgentInput.model_validate_json(await request.body())
    encoder = EventEncoder()
    message_id = f"msg-{asked.run_id}"

    async def events() -> AsyncIterator[str]:
        yield encoder.encode(RunStartedEvent(thread_id=asked.thread_id, run_id=asked.run_id))
        yield encoder.encode(TextMessageStartEvent(message_id=message_id, role="assistant"))
        for delta in DELTAS:
            yield encoder.encode(TextMessageContentEvent(message_id=message_id, delta=delta))
        yield encoder.encode(TextMessageEndEvent(message_id=message_id))
        yield encoder.encode(RunFinishedEvent(thread_id=asked.thread_id, run_id=asked.run_id))

    return StreamingResponse(events(), media_type=encoder.get_content_type())


serve(Starlette(routes=[Route("/", run, methods=["POST"])]), arguments().port)
