"""What stands between an agent's framework and its tools; every integration asks here."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypedDict, TypeVar, Unpack

from qwed_sdk.agent import QWEDAgentClient
from qwed_sdk.calls import checks
from qwed_sdk.calls.checks import Permit, Refusal, Rules
from qwed_sdk.client import QWEDClient

T = TypeVar("T")


class Ruled(TypedDict, total=False):
    """How calls of tools are asked about."""

    actions: Mapping[str, Mapping[str, str]] | None
    options: Mapping[str, Any] | None
    wait: float


class Asks(Ruled, total=False):
    """And who asks: the keywords of a Checkpoint, which every integration takes too."""

    agent_id: str | None
    agent_token: str | None
    client: QWEDClient | QWEDAgentClient | None


class Checkpoint:
    """Asks before a tool runs, and logs what became of it. A refusal is a value; only a Permit permits."""

    def __init__(self, agent: QWEDAgentClient | None = None, **asks: Unpack[Asks]) -> None:
        """`actions` says which action a call of a tool is, `wait` for how many seconds a person is waited for."""
        unknown = sorted(asks.keys() - Asks.__annotations__.keys())
        if unknown:
            raise TypeError(f"unknown keyword `{unknown[0]}`: known are {', '.join(Asks.__annotations__)}")
        client = agent if agent is not None else asks.get("client")
        self.agent = _agent(asks.get("agent_id"), asks.get("agent_token"), client)
        self.rules = Rules(asks.get("actions") or {}, asks.get("options"), asks.get("wait", 0.0))

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


def checkpoint_of(given: Checkpoint | None, **asks: Unpack[Asks]) -> Checkpoint:
    """The checkpoint that was given, or one with these keywords; both would contradict each other."""
    if given is not None and asks:
        raise TypeError(f"`{min(asks)}` is given beside a checkpoint: give it to the Checkpoint")
    return Checkpoint(**asks) if given is None else given


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
