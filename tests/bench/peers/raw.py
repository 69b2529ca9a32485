"""The ceiling: plain ASGI, nothing validated, one prepared-by-hand event a send."""

from typing import Any

import orjson
from common import DELTAS, arguments, serve

HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer every request with one run."""
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    asked = orjson.loads(body)
    ids = {"threadId": asked["threadId"], "runId": asked["runId"]}
    message_id = f"msg-{asked['runId']}"

    async def say(event: dict[str, Any], *, more: bool = True) -> None:
        frame = b"data: " + orjson.dumps(event) + b"\n\n"
        await send({"type": "http.response.body", "body": frame, "more_body": more})

    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await say({"type": "RUN_STARTED", **ids})
    await say({"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": "assistant"})
    for delta in DELTAS:
        await say({"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": delta})
    await say({"type": "TEXT_MESSAGE_END", "messageId": message_id})
    await say({"type": "RUN_FINISHED", **ids}, more=False)


serve(app, arguments().port)
