"""`POST …/run`: from a request's bytes to the end of its stream.

Follow one request: `run` reads it, `opening.open_run` gives it to the engine, and
`_frames` shows what comes of it.
"""

import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from agui_server.agui.inbound import check_content_type, parse_run
from agui_server.agui.opening import Attach, Follow, Opening, open_run
from agui_server.agui.sse import Farewell, stream
from agui_server.agui.translate import Run, Translation
from agui_server.agui.wire import BadRequest
from agui_server.settings import Settings
from engine import Engine, Thread
from engine.core.errors import StorageUnavailable
from engine.core.events import TurnCompleted
from engine.core.interrupts import pausing
from engine.core.messages import Message
from engine.core.state import Control, State
from engine.core.worker import ClientMessages
from engine.runtime.reader import Reader

logger = logging.getLogger(__name__)


async def run(request: Request) -> Response:
    """Start a run, or attach to one."""
    engine: Engine = request.app.state.engine
    settings: Settings = request.app.state.settings
    check_content_type(request.headers.get("content-type"))
    read = parse_run(await body(request, settings.max_body))
    thread = Thread(
        tenant=settings.tenant,
        owner=settings.owner,
        agent_id=request.path_params["agent_id"],
        thread_id=read.thread_id,
    )
    opening = await open_run(engine, thread, read)
    farewell = Farewell()
    return stream(_frames(engine, opening, farewell), farewell)


async def body(request: Request, limit: int) -> bytes:
    """Read a body, but never more than the limit.

    Raises:
        BadRequest: 413 `too_large`.
    """
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            detail = f"A body may have {limit} bytes."
            raise BadRequest(413, "too_large", detail)
        chunks.append(chunk)
    return b"".join(chunks)


async def _frames(engine: Engine, opening: Opening, farewell: Farewell) -> AsyncIterator[bytes]:
    """Send a run. Whatever happens, it ends with a terminal event."""
    translation: Translation | None = None
    try:
        match opening.plan:
            case Follow() as plan:
                translation, reader = _follow(engine, plan)
                first = list(translation.started(opening.notices))
            case Attach() as plan:
                translation, reader, first = await _attach(engine, plan, opening)
        yield b"".join(first)
        if translation.ended:
            return
        farewell.then(reader.stop)
        async for batch in reader.batches():
            frames = list(translation.take(batch))
            if translation.restates:
                frames.append(await _snapshot(engine, translation))
            frames.extend(translation.finish())
            if frames:
                yield b"".join(frames)
            if translation.ended:
                return
        yield b"".join(_failed(translation, opening, "server_restarting"))
    except StorageUnavailable:
        for frame in _failed(translation, opening, "storage_unavailable"):
            yield frame
    except Exception:
        logger.exception("run %s failed", opening.plan.run.run_id)
        for frame in _failed(translation, opening, "internal_error"):
            yield frame


def _failed(translation: Translation | None, opening: Opening, code: str) -> Iterator[bytes]:
    sentence = {
        "storage_unavailable": "The database cannot be used right now. Try again later.",
        "server_restarting": "The server restarts. The conversation goes on after it.",
        "internal_error": "The server failed. The conversation is kept; send the message again.",
    }[code]
    if translation is None:
        translation = Translation(
            opening.plan.run, control=Control(session_id=""), settled_at=0, pausing=()
        )
    yield from translation.fail(code, sentence)


def _follow(engine: Engine, plan: Follow) -> tuple[Translation, Reader]:
    receipt = plan.receipt
    translation = Translation(
        plan.run,
        control=receipt.before,
        settled_at=receipt.after.seq,
        pausing=receipt.pausing,
    )
    return translation, engine.reader(plan.run.session_id, receipt.before.seq)


async def _attach(
    engine: Engine, plan: Attach, opening: Opening
) -> tuple[Translation, Reader, list[bytes]]:
    """Restate the conversation, re-open the message in progress, then go on live."""
    run = replace(plan.run, attached=True)
    state = await engine.state(run.session_id)
    reader = engine.reader(run.session_id, state.control.seq if state is not None else 0)
    if state is None:
        translation = Translation(run, control=Control(session_id=""), settled_at=0, pausing=())
        return (
            translation,
            reader,
            [
                *translation.started(opening.notices),
                translation.snapshot(plan.unrecorded),
                *translation.finish_as(TurnCompleted()),
            ],
        )
    control = state.control
    translation = Translation(
        run,
        control=control,
        settled_at=control.seq,
        pausing=[i.id for i in pausing(state)],
    )
    thoughts: list[Message] = []
    for call in control.calls:
        if call.kind == "llm" and call.turn_id == run.turn_id:
            thoughts.extend(reader.join(call.id, call.attempt, call.turn_id))
    frames = list(translation.started(opening.notices))
    if plan.restate:
        shown = [*_path(state), *thoughts, *_accepted(state), *plan.unrecorded]
        frames.append(translation.snapshot(shown))
    if control.shared_state is not None:
        frames.append(translation.state(control.shared_state))
    if state.turn(run.turn_id) is None or translation.is_paused:
        frames.extend(translation.finish_as(await _ended(engine, run)))
    else:
        frames.extend(translation.finish())
    return translation, reader, frames


async def _ended(engine: Engine, run: Run) -> TurnCompleted:
    """Return how a run's turn ended; a run without a turn ended well."""
    if run.turn_id is None:
        return TurnCompleted()
    event = await engine.store.last_event(
        run.session_id, type="turn.completed", subject=run.turn_id
    )
    return event.body if event and isinstance(event.body, TurnCompleted) else TurnCompleted()


async def _snapshot(engine: Engine, translation: Translation) -> bytes:
    state = await engine.state(translation.run.session_id)
    if state is None:
        return b""
    path = [node.message for node in state.tree.path(translation.head)]
    return translation.snapshot(path)


def _path(state: State) -> list[Message]:
    return [node.message for node in state.tree.path(state.control.head)]


def _accepted(state: State) -> list[Message]:
    """Return input of the active branch that is accepted and not recorded yet."""
    waiting = [
        decision.trigger.messages
        for decision in state.control.decisions
        if isinstance(decision.trigger, ClientMessages) and not state.is_parked(decision.turn_id)
    ]
    queued = [q.messages for q in state.control.queue if not state.is_parked(q.behind)]
    return [message for messages in (*waiting, *queued) for message in messages]
