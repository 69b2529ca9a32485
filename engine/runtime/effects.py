"""Effects: run what the state says is pending; results come back as commands.

After each commit the running work of a session is compared with what its state
asks for: what is missing starts, what is no longer asked for is cancelled for real.

Source: `architecture.md` section 2; `protocol.md` section 2.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Protocol

from engine.core import commands as cmd
from engine.core.calls import TOOL_FAILED
from engine.core.errors import ModelError, Refused, StorageUnavailable, ToolError
from engine.core.handle import Receipt
from engine.core.messages import ClientContext, transcript
from engine.core.pending import Work, pending
from engine.core.ports import Clock, ModelDelta, ModelRequest
from engine.core.state import Call, State
from engine.core.toolinput import read_input
from engine.core.worker import DecisionRequest, Error
from engine.runtime.agents import RunnableAgent
from engine.runtime.crashpoints import reach
from engine.runtime.entry import Entry, Running
from engine.runtime.live import LiveText
from engine.runtime.workers import ask

logger = logging.getLogger(__name__)

REPORT_AGAIN = timedelta(seconds=1)
"""How long a result waits before it is offered again to a database that failed."""


class Writer(Protocol):
    """The one write path, and the questions it builds for workers."""

    async def write(self, session_id: str, command: cmd.Command) -> Receipt:
        """Run a command."""
        ...

    async def question(self, entry: Entry, decision_id: str) -> DecisionRequest | None:
        """Return what a worker is asked, if the decision still stands."""
        ...


class Effects:
    """The outside work of one engine."""

    def __init__(
        self,
        sessions: Writer,
        *,
        clock: Clock,
        new_id: Callable[[str], str],
        group: asyncio.TaskGroup,
    ) -> None:
        self._sessions = sessions
        self._clock = clock
        self._new_id = new_id
        self._group = group
        self.stopping = False

    def sync(self, entry: Entry, agent: RunnableAgent) -> None:
        """Make the running work of a session be what its state asks for."""
        wanted = set(pending(entry.loaded()))
        for work in [work for work in entry.work if work not in wanted]:
            entry.work.pop(work).cancel()
            entry.feed.live.pop((work.id, work.attempt), None)
        if self.stopping:
            return
        for work in wanted:
            if work not in entry.work:
                if work.kind == "model":
                    self._open_live(entry, work)
                running = entry.work[work] = Running()
                running.task = self._group.create_task(self._run(entry, agent, work, running))

    def _open_live(self, entry: Entry, work: Work) -> None:
        """Open the live text at once, so that a reader of the request finds it."""
        call = entry.loaded().call(work.id)
        live = LiveText(
            work.id,
            work.attempt,
            call.message_id if call is not None else "",
            new_id=self._new_id,
            changed=entry.feed.live_changed,
        )
        entry.feed.live[work.id, work.attempt] = live

    async def _run(self, entry: Entry, agent: RunnableAgent, work: Work, running: Running) -> None:
        """Do one piece of work and report what came of it, whatever that is."""
        try:
            if work.not_before is not None:
                await self._clock.sleep_until(work.not_before)
            reach("effect.started")
            report = await self._do(entry, agent, work)
            reach("effect.finished")
            running.reporting = True
            await self._report(entry, work, report)
        finally:
            if entry.work.get(work) is running:
                del entry.work[work]
                entry.feed.live.pop((work.id, work.attempt), None)

    async def _report(self, entry: Entry, work: Work, report: cmd.Command | None) -> None:
        """Tell the session, again and again while its database fails.

        Not while the engine stops: the work is still in the log as in flight, and the next
        start continues it.
        """
        while report is not None and not self.stopping:
            try:
                await self._sessions.write(entry.session_id, report)
            except StorageUnavailable as error:
                logger.warning("session %s: a result waits: %s", entry.session_id, error)
                await self._clock.sleep_until(self._clock.now() + REPORT_AGAIN)
            except Refused as refusal:
                # Somebody ended this work first; its result is not wanted any more.
                logger.info("session %s: a result was refused: %s", entry.session_id, refusal)
                return
            except Exception as error:
                # A bug of ours. The work must end all the same: as a failure, told once.
                logger.exception("session %s: a result could not be taken", entry.session_id)
                report = None if _is_failure(report) else _failure(work, error)
            else:
                return

    async def _do(self, entry: Entry, agent: RunnableAgent, work: Work) -> cmd.Command | None:
        """Return the command that reports the work's end; an error of ours is reported too."""
        try:
            match work.kind:
                case "model":
                    return await self._call_model(entry, agent, work)
                case "tool":
                    return await self._run_tool(entry, agent, work)
                case "decision":
                    return await self._ask_worker(entry, agent, work)
        except Exception as error:
            logger.exception("session %s: %s failed", entry.session_id, work)
            return _failure(work, error)

    # -------------------------------------------------------------- models

    async def _call_model(
        self, entry: Entry, agent: RunnableAgent, work: Work
    ) -> cmd.Command | None:
        state = entry.state
        call = state.call(work.id) if state is not None else None
        live = entry.feed.live.get((work.id, work.attempt))
        if state is None or call is None or live is None:
            return None
        try:
            stream = agent.model.stream(model_request(state, agent, call))
            async with _closed(stream):
                async for delta in stream:
                    live.add(delta)
        except ModelError as error:
            failure = Error(code=error.code, message=error.message, retryable=error.retryable)
            return cmd.FailCall(call_id=work.id, attempt=work.attempt, error=failure)
        live.close()
        return cmd.FinishModelCall(
            call_id=work.id,
            attempt=work.attempt,
            message=live.message(),
            reasoning=live.reasoning(),
            usage=live.usage,
            truncated=live.truncated,
        )

    # --------------------------------------------------------------- tools

    async def _run_tool(self, entry: Entry, agent: RunnableAgent, work: Work) -> cmd.Command | None:
        call = entry.state.call(work.id) if entry.state is not None else None
        if call is None:
            return None
        checked = read_input(call.arguments, None, lambda _schema, _value: None)
        if checked.status == "malformed":
            failure = Error(code="tool_error", message=checked.error or "malformed arguments")
            return cmd.FailCall(call_id=work.id, attempt=work.attempt, error=failure)
        try:
            reach("tool.before")
            result = await agent.functions[call.name].run(checked.value)
            reach("tool.after")
        except ToolError as error:
            failure = Error(code="tool_error", message=str(error), retryable=error.retryable)
            return cmd.FailCall(call_id=work.id, attempt=work.attempt, error=failure)
        return cmd.FinishToolCall(call_id=work.id, attempt=work.attempt, result=result)

    # ------------------------------------------------------------- workers

    async def _ask_worker(
        self, entry: Entry, agent: RunnableAgent, work: Work
    ) -> cmd.Command | None:
        request = await self._sessions.question(entry, work.id)
        if request is None or agent.worker is None:
            return None
        answer = await ask(agent.worker, request)
        if isinstance(answer, Error):
            return cmd.FailDecision(decision_id=work.id, attempt=work.attempt, error=answer)
        return cmd.AnswerDecision(decision_id=work.id, attempt=work.attempt, response=answer)


@asynccontextmanager
async def _closed(stream: AsyncIterator[ModelDelta]) -> AsyncGenerator[None]:
    """Close a model's stream in any case, and with it its connection, if it can be closed."""
    try:
        yield
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


def _failure(work: Work, error: Exception) -> cmd.Command:
    """Return the command that ends a piece of work because of an error of ours."""
    message = f"{type(error).__name__}: {error}"
    match work.kind:
        case "decision":
            failure = Error(code="worker_error", message=message)
            return cmd.FailDecision(decision_id=work.id, attempt=work.attempt, error=failure)
        case "model":
            failure = Error(code="provider_error", message=message)
        case "tool":
            # The model reads this one.
            failure = Error(code="tool_error", message=TOOL_FAILED)
    return cmd.FailCall(call_id=work.id, attempt=work.attempt, error=failure)


def _is_failure(report: cmd.Command) -> bool:
    return isinstance(report, cmd.FailDecision | cmd.FailCall)


def model_request(state: State, agent: RunnableAgent, call: Call) -> ModelRequest:
    """Build what a model is sent for a call: the path it answers, and the tools in force."""
    turn = state.turn(call.turn_id)
    client = call.client or (turn.client if turn is not None else ClientContext())
    path = (node.message for node in state.tree.path(call.anchor))
    own = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in agent.spec.tools.values()
    ]
    theirs = [tool for tool in client.tools if tool.get("name") not in agent.spec.tools]
    return ModelRequest(
        session_id=state.control.session_id,
        call_id=call.id,
        attempt=call.attempt,
        model=call.model or agent.spec.model,
        system=call.system or agent.spec.system,
        messages=[*client.instructions, *transcript(path)],
        tools=[*own, *theirs],
        context=client.context,
    )
