"""Checkpoint: verification of tool calls before they run, used by every framework integration."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypedDict, TypeVar, Unpack

from qwed_sdk.agent import QWEDAgentClient
from qwed_sdk.client import QWEDClient
from qwed_sdk.operations import tool_check
from qwed_sdk.operations.tool_check import Rules
from qwed_sdk.permits import Permit, Refusal

T = TypeVar("T")


class CheckpointRules(TypedDict, total=False):
    """Keywords of a Checkpoint about actions, options and waiting."""

    actions: Mapping[str, Mapping[str, str]] | None
    options: Mapping[str, Any] | None
    wait: float


class CheckpointOptions(CheckpointRules, total=False):
    """Keywords of a Checkpoint, which every integration accepts too."""

    agent_id: str | None
    agent_token: str | None
    client: QWEDClient | QWEDAgentClient | None


class Checkpoint:
    """Verification of tool calls, for the loop of an agent or for a framework.

    A refusal is a value: only a `Permit` permits the call.
    """

    def __init__(self, agent: QWEDAgentClient | None = None, **options: Unpack[CheckpointOptions]) -> None:
        """Create a checkpoint for one agent.

        Args:
            agent: Client of the agent; without it one is created from the keywords or the environment.
            actions: Actions that calls are, by the name of the tool, such as `{"run": {"type": "execute_sql", "query":
                "sql"}}`.
            options: As for `verify_action`.
            wait: Seconds to wait for a person if the decision is PENDING; 0 by default.
            agent_id: Id of the agent, if `agent` is not given; `QWED_AGENT_ID` by default.
            agent_token: Token of the agent; `QWED_AGENT_TOKEN` by default.
            client: Client to send requests with.

        Raises:
            TypeError: A keyword is unknown, or the client is async.
            ValueError: The client belongs to another agent.
        """
        unknown = sorted(options.keys() - CheckpointOptions.__annotations__.keys())
        if unknown:
            raise TypeError(f"unknown keyword `{unknown[0]}`: use {', '.join(CheckpointOptions.__annotations__)}")
        client = agent if agent is not None else options.get("client")
        self.agent = _agent_client(options.get("agent_id"), options.get("agent_token"), client)
        self.rules = Rules(options.get("actions") or {}, options.get("options"), options.get("wait", 0.0))

    def before(self, tool: str, arguments: Mapping[str, Any], conversation: Hashable = None) -> Permit | Refusal:
        """Request a decision about a tool call before it runs.

        An error is a refusal too: this method does not raise a QWEDError.

        Args:
            tool: Name of the tool.
            arguments: Arguments of the call.
            conversation: Key of a conversation of its own; without it the agent's current conversation.

        Returns:
            A `Permit` with the arguments to run the tool with, or a `Refusal`.
        """
        return self.agent.run(tool_check.before(self.agent.binding, self.rules, tool, arguments, conversation))

    async def before_async(
        self, tool: str, arguments: Mapping[str, Any], conversation: Hashable = None
    ) -> Permit | Refusal:
        """Request a decision without blocking the event loop; otherwise as `before`.

        Args:
            tool: Name of the tool.
            arguments: Arguments of the call.
            conversation: Key of a conversation of its own; without it the agent's current conversation.

        Returns:
            A `Permit` with the arguments to run the tool with, or a `Refusal`.
        """
        return await run_in_thread(self.before, tool, arguments, conversation)

    def after(self, permit: Permit, success: bool, result: Any = None) -> bool:
        """Record the outcome of a permitted call.

        Args:
            permit: The permit that `before` returned.
            success: Whether the call succeeded.
            result: Result of the call; only its hash leaves the process.

        Returns:
            Whether the outcome was recorded; a failure is logged, and not raised.
        """
        return self.agent.run(tool_check.after(self.agent.binding, permit, success, result))

    async def after_async(self, permit: Permit, success: bool, result: Any = None) -> bool:
        """Record the outcome without blocking the event loop; otherwise as `after`.

        Args:
            permit: The permit that `before` returned.
            success: Whether the call succeeded.
            result: Result of the call; only its hash leaves the process.

        Returns:
            Whether the outcome was recorded; a failure is logged, and not raised.
        """
        return await run_in_thread(self.after, permit, success, result)


def checkpoint_or_new(checkpoint: Checkpoint | None, **options: Unpack[CheckpointOptions]) -> Checkpoint:
    """Return the checkpoint, or a new one with these keywords; raise TypeError if both are given."""
    if checkpoint is not None and options:
        raise TypeError(f"`{min(options)}` is given together with a checkpoint: pass it to the Checkpoint")
    return Checkpoint(**options) if checkpoint is None else checkpoint


def _agent_client(
    agent_id: str | None, agent_token: str | None, client: QWEDClient | QWEDAgentClient | None
) -> QWEDAgentClient:
    if client is not None and not isinstance(client, QWEDClient | QWEDAgentClient):
        # An async client would return a coroutine, which a caller that only looks for a Refusal takes for a permit.
        raise TypeError(f"a Checkpoint needs a QWEDAgentClient or a QWEDClient, not a {type(client).__name__}")
    if isinstance(client, QWEDAgentClient):
        if agent_id not in (None, client.agent_id):
            raise ValueError(f"the client belongs to agent `{client.agent_id}`, not to `{agent_id}`")
        return client
    return QWEDAgentClient(agent_id, agent_token, client=client)


async def run_in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run the function in a thread, and await its result."""
    import anyio
    import anyio.to_thread

    # A limiter of its own for each call: calls that wait for a person must not delay the others.
    return await anyio.to_thread.run_sync(function, *args, limiter=anyio.CapacityLimiter(1))
