"""QWEDAgentClient: the client of one agent, which keeps its conversation and its steps."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypeVar, overload

from qwed_sdk.binding import TIMEOUT, Driver, own_awaited, own_blocking
from qwed_sdk.calls import own
from qwed_sdk.calls.own import Bound
from qwed_sdk.client import QWEDAsyncClient, QWEDClient
from qwed_sdk.conversation import Conversations
from qwed_sdk.errors import QWEDArgumentError
from qwed_sdk.transport import credential
from qwed_sdk.verified import verified_by
from qwed_sdk.wire import Call, at

C = TypeVar("C", bound=Driver)
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class OwnClient(Generic[C]):
    """What both have: whom they ask, who they are, and where in which conversation."""

    _asks: type[C]
    """The kind of client it asks with."""

    def __init__(
        self,
        agent_id: str | None = None,
        agent_token: str | None = None,
        *,
        client: C | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT,
        conversation_id: str | None = None,
    ) -> None:
        if client is not None and not isinstance(client, self._asks):
            raise TypeError(
                f"a {type(client).__name__} cannot be asked here: a QWEDAgentClient takes a QWEDClient, "
                "a QWEDAsyncAgentClient a QWEDAsyncClient"
            )
        self.client = client or self._asks(api_key, base_url, timeout)
        there = os.environ.get("QWED_AGENT_ID", "").strip()
        named = agent_id or there
        if not named:
            raise QWEDArgumentError("which agent? give `agent_id`, or set QWED_AGENT_ID (and QWED_AGENT_TOKEN)")
        # Looked at now and not when it asks: what is no id answers no question.
        at(named)
        # A token in the environment is that of the agent in the environment.
        if agent_token is None and named == (there or named):
            agent_token = os.environ.get("QWED_AGENT_TOKEN")
        self.bound = Bound(named, credential(agent_token, "agent token"), Conversations(conversation_id))

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a client has a secret and open connections: make one in each process instead of pickling it")

    @property
    def agent_id(self) -> str:
        """Which agent this is."""
        return self.bound.agent_id

    @property
    def agent_token(self) -> str | None:
        """What proves it; None where the organisation's key speaks for it."""
        return self.bound.agent_token

    @property
    def conversation_id(self) -> str:
        """The present conversation."""
        return self.bound.conversations.present.conversation_id

    def new_conversation(self, conversation_id: str | None = None) -> str:
        """Begin another conversation, with step 1; its id."""
        return self.bound.conversations.begin(conversation_id).conversation_id

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
        """Decorate a function: each call is verified first, its outcome logged; ActionDenied where it may not run.

        `action={"type": "execute_sql", "query": "sql"}` makes it an action whose query is the argument `sql`;
        otherwise it is a call of the tool `tool`, by default the function's name.
        """
        decorate = verified_by(self, tool=tool, action=action, options=options, wait=wait)
        return decorate if function is None else decorate(function)


class QWEDAgentClient(OwnClient[QWEDClient]):
    """The client of one agent; `client` is shared with others where it is given."""

    _asks = QWEDClient

    @classmethod
    def register(
        cls,
        name: str,
        principal_id: str,
        *,
        client: QWEDClient | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT,
        **fields: Any,
    ) -> Self:
        """Spec 3: a new agent and its client; the fields are those of `QWEDClient.register_agent`."""
        client = client or QWEDClient(api_key, base_url, timeout)
        agent = client.register_agent(name, principal_id=principal_id, **fields)
        return cls(agent.agent_id, agent.agent_token, client=client)

    def run(self, call: Call[T]) -> T:
        """What comes of a call."""
        return self.client.run(call)

    verify_action = own_blocking(own.verify_action)
    verify_tool_call = own_blocking(own.verify_tool_call)
    get_action = own_blocking(own.get_action)
    wait_for_decision = own_blocking(own.wait_for_decision)
    log_execution = own_blocking(own.log_execution)
    get_agent = own_blocking(own.get_agent)
    get_budget = own_blocking(own.get_budget)
    get_activity = own_blocking(own.get_activity)
    request_trust_change = own_blocking(own.request_trust_change)


class QWEDAsyncAgentClient(OwnClient[QWEDAsyncClient]):
    """The same, each verb an `async def`."""

    _asks = QWEDAsyncClient

    @classmethod
    async def register(
        cls,
        name: str,
        principal_id: str,
        *,
        client: QWEDAsyncClient | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - the client's, for every later call
        **fields: Any,
    ) -> Self:
        """Spec 3: a new agent and its client; the fields are those of `QWEDClient.register_agent`."""
        client = client or QWEDAsyncClient(api_key, base_url, timeout)
        agent = await client.register_agent(name, principal_id=principal_id, **fields)
        return cls(agent.agent_id, agent.agent_token, client=client)

    async def run(self, call: Call[T]) -> T:
        """What comes of a call."""
        return await self.client.run(call)

    verify_action = own_awaited(own.verify_action)
    verify_tool_call = own_awaited(own.verify_tool_call)
    get_action = own_awaited(own.get_action)
    wait_for_decision = own_awaited(own.wait_for_decision)
    log_execution = own_awaited(own.log_execution)
    get_agent = own_awaited(own.get_agent)
    get_budget = own_awaited(own.get_budget)
    get_activity = own_awaited(own.get_activity)
    request_trust_change = own_awaited(own.request_trust_change)
