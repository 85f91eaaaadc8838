"""What stands between an agent's framework and its tools; every integration asks here."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from qwed_sdk.agent import QWEDAgentClient
from qwed_sdk.calls import checks
from qwed_sdk.calls.checks import Permit, Refusal, Rules
from qwed_sdk.client import QWEDClient

T = TypeVar("T")


class Checkpoint:
    """Asks before a tool runs, and logs what became of it. A refusal is a value; only a Permit permits."""

    def __init__(
        self,
        agent: QWEDAgentClient | None = None,
        *,
        agent_id: str | None = None,
        agent_token: str | None = None,
        client: QWEDClient | QWEDAgentClient | None = None,
        actions: Mapping[str, Mapping[str, str]] | None = None,
        options: Mapping[str, Any] | None = None,
        wait: float = 0.0,
    ) -> None:
        self.agent = _agent(agent_id, agent_token, agent if agent is not None else client)
        self.rules = Rules(actions or {}, options, wait)

    def before(self, tool: str, arguments: Mapping[str, Any], conversation: Hashable = None) -> Permit | Refusal:
        """May the tool run? Whatever keeps that from being answered is a refusal."""
        return self.agent.run(checks.before(self.agent.bound, self.rules, tool, arguments, conversation))

    async def before_async(
        self, tool: str, arguments: Mapping[str, Any], conversation: Hashable = None
    ) -> Permit | Refusal:
        """The same beside an event loop."""
        return await beside(self.before, tool, arguments, conversation)

    def after(self, permit: Permit, success: bool, result: Any = None) -> bool:
        """Log what became of it; whether that was kept."""
        return self.agent.run(checks.after(self.agent.bound, permit, success, result))

    async def after_async(self, permit: Permit, success: bool, result: Any = None) -> bool:
        """The same beside an event loop."""
        return await beside(self.after, permit, success, result)


def _agent(
    agent_id: str | None, agent_token: str | None, client: QWEDClient | QWEDAgentClient | None
) -> QWEDAgentClient:
    if client is not None and not isinstance(client, QWEDClient | QWEDAgentClient):
        # What awaits would answer with a coroutine, and whoever looks only for a refusal finds none.
        raise TypeError(f"a Checkpoint asks with a QWEDAgentClient or a QWEDClient, not a {type(client).__name__}")
    if isinstance(client, QWEDAgentClient):
        if agent_id not in (None, client.agent_id):
            raise ValueError(f"the client is of agent `{client.agent_id}`, not of `{agent_id}`")
        return client
    return QWEDAgentClient(agent_id, agent_token, client=client)


async def beside(function: Callable[..., T], *args: Any) -> T:
    """What the function returns, run in a thread beside the event loop."""
    import anyio
    import anyio.to_thread

    # A limit of its own for each: calls that wait for a person must not hold up the others.
    return await anyio.to_thread.run_sync(function, *args, limiter=anyio.CapacityLimiter(1))
