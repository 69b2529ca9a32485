"""LangGraph: its FastAPI endpoint over a graph of one node that calls a fake chat model.

`--raw 0` leaves out the raw events, which are on unless told otherwise.
"""

from collections.abc import AsyncIterator
from typing import Any

from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from common import DELTAS, arguments, serve
from fastapi import FastAPI
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph


class Model(BaseChatModel):
    """The fake model."""

    @property
    def _llm_type(self) -> str:
        return "fake"

    def _generate(self, *_args: Any, **_more: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content="".join(DELTAS)))])

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **_more: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for delta in DELTAS:
            position = "last" if delta is DELTAS[-1] else None
            message = AIMessageChunk(content=delta, chunk_position=position)
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                await run_manager.on_llm_new_token(delta, chunk=chunk)
            yield chunk


model = Model()


async def chat(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    """Be the graph's one node."""
    return {"messages": [await model.ainvoke(state["messages"], config)]}


chosen = arguments(raw="1")
graph = StateGraph(MessagesState)
graph.add_node("chat", chat)
graph.add_edge(START, "chat")
graph.add_edge("chat", END)
app = FastAPI()
add_langgraph_fastapi_endpoint(
    app,
    LangGraphAgent(
        name="fake",
        graph=graph.compile(checkpointer=InMemorySaver()),
        emit_raw_events=chosen.raw == "1",
    ),
    "/",
)
serve(app, chosen.port)
