"""QWEDAgentClient: the client of one agent, which counts the steps of its conversations."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypeVar, overload

from qwed_sdk.client import QWEDAsyncClient, QWEDClient
from qwed_sdk.decorator import verified_decorator
from qwed_sdk.errors import QWEDArgumentError
from qwed_sdk.http_request import Operation, path_of
from qwed_sdk.operations import bound_agent
from qwed_sdk.operations.bound_agent import AgentBinding
from qwed_sdk.step_counter import ConversationRegistry
from qwed_sdk.sync_async import DEFAULT_TIMEOUT, Driver, agent_method
from qwed_sdk.transport import parse_credential

C = TypeVar("C", bound=Driver)
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class AgentMethods:
    """Every operation of one agent; each client runs them in its own way."""

    verify_action = agent_method(bound_agent.verify_action)
    verify_tool_call = agent_method(bound_agent.verify_tool_call)
    get_action = agent_method(bound_agent.get_action)
    wait_for_decision = agent_method(bound_agent.wait_for_decision)
    log_execution = agent_method(bound_agent.log_execution)
    get_agent = agent_method(bound_agent.get_agent)
    get_budget = agent_method(bound_agent.get_budget)
    get_activity = agent_method(bound_agent.get_activity)
    request_trust_change = agent_method(bound_agent.request_trust_change)


class BaseAgentClient(Generic[C]):
    """Base of both agent clients: the client they send with, the agent and its conversations."""

    _client_class: type[C]
    """Class of the client that it sends with."""

    def __init__(
        self,
        agent_id: str | None = None,
        agent_token: str | None = None,
        *,
        client: C | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        conversation_id: str | None = None,
    ) -> None:
        """Bind a client to one agent.

        Args:
            agent_id: Id of the agent; without it `QWED_AGENT_ID`.
            agent_token: Token of the agent; without it `QWED_AGENT_TOKEN`, if `QWED_AGENT_ID` names this agent. Without
                a token the organisation's key is sent.
            client: Client to share; without it a new one is created with the next three values.
            api_key: Key of the organisation; without it `QWED_API_KEY`.
            base_url: Address of the server; without it `QWED_BASE_URL`, or port 8000 of this machine.
            timeout: Seconds for one call, including retries.
            conversation_id: Conversation to begin with; without it a new one.

        Raises:
            QWEDArgumentError: No agent is named, or a value cannot be used.
            TypeError: `client` is of the other kind, blocking or async.
        """
        if client is not None and not isinstance(client, self._client_class):
            raise TypeError(
                f"a {type(client).__name__} cannot be used here: a QWEDAgentClient takes a QWEDClient, "
                "a QWEDAsyncAgentClient a QWEDAsyncClient"
            )
        self.client = client or self._client_class(api_key, base_url, timeout)
        environment_id = os.environ.get("QWED_AGENT_ID", "").strip()
        own_id = agent_id or environment_id
        if not own_id:
            raise QWEDArgumentError("no agent is named: pass `agent_id`, or set QWED_AGENT_ID and QWED_AGENT_TOKEN")
        # Raises for an invalid id now, and not with the first request.
        path_of(own_id)
        # The token in the environment belongs to the agent in the environment.
        if agent_token is None and own_id == (environment_id or own_id):
            agent_token = os.environ.get("QWED_AGENT_TOKEN")
        self.binding = AgentBinding(
            own_id, parse_credential(agent_token, "agent token"), ConversationRegistry(conversation_id)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a client has a secret and open connections: make one in each process instead of pickling it")

    @property
    def agent_id(self) -> str:
        """Id of the agent."""
        return self.binding.agent_id

    @property
    def agent_token(self) -> str | None:
        """Token of the agent; None where the organisation's key is sent."""
        return self.binding.agent_token

    @property
    def conversation_id(self) -> str:
        """Id of the current conversation."""
        return self.binding.conversations.current.conversation_id

    def new_conversation(self, conversation_id: str | None = None) -> str:
        """Begin another conversation with step 1.

        Args:
            conversation_id: Id of the conversation; without it a new one.

        Returns:
            The id of the conversation.
        """
        return self.binding.conversations.begin(conversation_id).conversation_id

    @overload
    def verified(self, function: F) -> F: ...

    @overload
    def verified(
        self,
        function: None = None,
        *,
        tool: str | None = None,
        action: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
        wait: float = 0.0,
    ) -> Callable[[F], F]: ...

    def verified(
        self,
        function: F | None = None,
        *,
        tool: str | None = None,
        action: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
        wait: float = 0.0,
    ) -> F | Callable[[F], F]:
        """Decorate a function so that each call is verified before it runs, and its outcome logged.

        Args:
            function: The function; a decorator without arguments passes it.
            tool: Name of the tool that a call is; the function's name by default.
            action: Action that a call is, in place of a tool call: its `type`, and which argument is its `query`,
                `code` or `target`.
            options: `require_attestation`, `risk_threshold`, `chain_id` and `include_facts`.
            wait: Seconds to wait for a person if the decision is PENDING.

        Returns:
            The decorated function, or the decorator.

        Raises:
            TypeError: The function is a generator, or has no parameter of that name; raised when it is decorated.
            ActionDenied: A call may not run, or could not be verified; raised when it is called.
            ActionPending: A person has to decide first; raised when it is called.
        """
        decorate = verified_decorator(self, tool=tool, action=action, options=options, wait=wait)
        return decorate if function is None else decorate(function)


class QWEDAgentClient(AgentMethods, BaseAgentClient[QWEDClient]):
    """Blocking client of one agent, which counts the steps of its conversation."""

    _client_class = QWEDClient

    @classmethod
    def register(
        cls,
        name: str,
        principal_id: str,
        *,
        client: QWEDClient | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        **fields: Any,
    ) -> Self:
        """Register an agent, and return its client.

        Args:
            name: Name of the agent, for people.
            principal_id: Id of the person or service that the agent acts for.
            client: Client to share; without it a new one is created with the next three values.
            api_key: Key of the organisation; without it `QWED_API_KEY`.
            base_url: Address of the server; without it `QWED_BASE_URL`, or port 8000 of this machine.
            timeout: Seconds for one call, including retries.
            fields: Further fields of `QWEDClient.register_agent`, such as `type` and `budget`.

        Returns:
            The client of the new agent.

        Raises:
            QWEDRequestError: A field is missing, unknown or cannot be used.
        """
        client = client or QWEDClient(api_key, base_url, timeout)
        agent = client.register_agent(name, principal_id=principal_id, **fields)
        return cls(agent.agent_id, agent.agent_token, client=client)

    def run(self, operation: Operation[T]) -> T:
        """Run an operation, and return its result."""
        return self.client.run(operation)


class QWEDAsyncAgentClient(AgentMethods, BaseAgentClient[QWEDAsyncClient]):
    """Client of one agent for asyncio and trio, which counts the steps of its conversation."""

    _client_class = QWEDAsyncClient

    @classmethod
    async def register(
        cls,
        name: str,
        principal_id: str,
        *,
        client: QWEDAsyncClient | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,  # noqa: ASYNC109 - the client's, for every later call
        **fields: Any,
    ) -> Self:
        """Register an agent, and return its client.

        Args:
            name: Name of the agent, for people.
            principal_id: Id of the person or service that the agent acts for.
            client: Client to share; without it a new one is created with the next three values.
            api_key: Key of the organisation; without it `QWED_API_KEY`.
            base_url: Address of the server; without it `QWED_BASE_URL`, or port 8000 of this machine.
            timeout: Seconds for one call, including retries.
            fields: Further fields of `QWEDClient.register_agent`, such as `type` and `budget`.

        Returns:
            The client of the new agent.

        Raises:
            QWEDRequestError: A field is missing, unknown or cannot be used.
        """
        client = client or QWEDAsyncClient(api_key, base_url, timeout)
        agent = await client.register_agent(name, principal_id=principal_id, **fields)
        return cls(agent.agent_id, agent.agent_token, client=client)

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation, and return its result."""
        return await self.client.run(operation)
