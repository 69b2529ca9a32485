"""Whether the process lives."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response


async def live(_request: Request) -> Response:
    """Answer as long as the process serves requests."""
    return JSONResponse({"status": "ok"})
