"""Values of a branch, as a worker and a page see them. Source: `protocol.md` section 3."""

from typing import Any

from engine import Agent, DecisionRequest, DecisionResponse
from engine.core.worker import ClientMessages
from tests.agui.given import user
from tests.protocol.given import history, served


def writer(seen: dict[str, tuple[Any, Any]], **writes: dict[str, Any]) -> Agent:
    """An agent whose worker writes values for some messages, and notes what it is asked with."""
    agent = Agent("a", model="m")

    @agent.decide(on="client.messages")
    def decide(request: DecisionRequest) -> DecisionResponse:
        assert isinstance(request.trigger, ClientMessages)
        said = [*request.trigger.messages, *request.messages][0].id
        seen[said] = (request.state, request.agent["model"])
        proposed = request.proposed
        return DecisionResponse(
            messages=proposed.messages, actions=proposed.actions, **writes.get(said, {})
        )

    return agent


async def test_3_values_are_not_seen_on_a_branch_that_leaves_above_over_http() -> None:
    """The worker is asked with its own memory of the branch, and the model is that branch's."""
    seen: dict[str, tuple[Any, Any]] = {}
    mine: dict[str, Any] = {"state": {"n": 1}, "agent": {"model": "one"}}
    async with served(writer(seen, u2=mine)) as (server, heard):
        await server.run(user("u1", "/say hi"))
        first = await history(server)
        await server.run(*first, user("u2", "/say two"))
        second = await history(server)
        await server.run(*second, user("u3", "/say three"))
        assert heard.requests[-1].model == "one"
        await server.run(*first, user("edit", "/say instead"))
        assert heard.requests[-1].model == "m"
        await server.run(*second, user("u4", "/say four"))
        assert heard.requests[-1].model == "one"
    assert seen["u3"] == seen["u4"] == ({"n": 1}, "one")
    assert seen["edit"] == seen["u2"] == (None, "m")


async def test_3_values_come_back_with_their_branch_over_http() -> None:
    """A page that changes branches is shown the shared state of where it looks."""
    writes: dict[str, Any] = {
        "u2": {"shared_state": {"n": 1}},
        "edit": {"shared_state": {"n": 2}},
    }
    async with served(writer({}, **writes)) as (server, _):
        await server.run(user("u1", "/say hi"))
        first = await history(server)
        left = await server.run(*first, user("u2", "/say two"))
        second = await history(server)
        right = await server.run(*first, user("edit", "/say instead"))
        back = await server.run(*second)
    last = [stream.all("STATE_SNAPSHOT", "snapshot")[-1] for stream in (left, right, back)]
    assert last == [{"n": 1}, {"n": 2}, {"n": 1}]
