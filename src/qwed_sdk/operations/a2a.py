"""Operations on messages between agents, and on the lists of who may send to whom (INTERFACES 6)."""

from collections.abc import Mapping
from typing import Any, Protocol

from qwed.model.endpoints import Endpoint
from qwed_sdk.errors import QWEDArgumentError
from qwed_sdk.http_request import Operation, call
from qwed_sdk.models import ApiRecord, Lists, Verdict

AGENT_HEADER = "QWED-Agent-Id"
"""Header that names the sender before the body is read: the server accepts larger bodies from agents it knows."""


class Dumpable(Protocol):
    """An `AgentMessage`, or any other object with `model_dump`."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return the members as JSON values."""


def intercept(message: Mapping[str, Any] | Dumpable, agent_token: str | None = None) -> Operation[Verdict]:
    """Request a verdict about a message between agents.

    Args:
        message: `sender_agent_id`, `receiver_agent_id`, `payload`, and optionally `payload_type` and `metadata`; or an
            `AgentMessage`.
        agent_token: Token of the sender; without it the client's own credential is sent.

    Returns:
        The verdict. As a condition it is true for `forwarded` only.

    Raises:
        QWEDRequestError: The message is not valid, or too large.
        QWEDAuthError: The credential may not send as this sender.
    """
    body = dict(message) if isinstance(message, Mapping) else _dump_message(message)
    headers = _sender_header(body.get("sender_agent_id")) if agent_token is not None else {}
    # Not repeatable: a message that is sent twice is counted twice.
    return (
        yield from call(
            Verdict, Endpoint.INTERCEPT, body=body, agent_token=agent_token, headers=headers, must_have="status"
        )
    )


def _dump_message(message: Dumpable) -> dict[str, Any]:
    if not hasattr(message, "model_dump"):
        raise QWEDArgumentError(f"a message must be a mapping or an AgentMessage, not {type(message).__name__}")
    return message.model_dump(mode="json")


def _sender_header(sender: Any) -> dict[str, str]:
    is_plain = isinstance(sender, str) and sender.isascii() and sender.isprintable() and sender == sender.strip()
    return {AGENT_HEADER: sender} if is_plain and sender else {}


def a2a_health() -> Operation[ApiRecord]:
    """Return whether the server verifies messages, and with which guards.

    Returns:
        `status` and `guards`.
    """
    return (yield from call(ApiRecord, Endpoint.A2A_HEALTH, public=True, must_have="status"))


def a2a_metrics() -> Operation[ApiRecord]:
    """Return the counts of the organisation's messages since the server started.

    Returns:
        The counts.
    """
    return (yield from call(ApiRecord, Endpoint.A2A_METRICS))


def a2a_lists() -> Operation[Lists]:
    """Return the blocked agents, the blocked pairs and the trusted agents.

    Returns:
        The lists.
    """
    return (yield from call(Lists, Endpoint.A2A_LISTS))


def block_agent(agent_id: str) -> Operation[ApiRecord]:
    """Block an agent: it can neither send nor receive messages.

    Args:
        agent_id: Id or name that the agent sends under.

    Returns:
        The entry, and `listed`.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
    """
    return (yield from call(ApiRecord, Endpoint.BLOCK_AGENT, body={"agent_id": agent_id}))


def unblock_agent(agent_id: str) -> Operation[ApiRecord]:
    """Remove an agent from the blocked agents.

    Args:
        agent_id: Id or name that the agent sends under.

    Returns:
        The entry, and `listed`.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
    """
    return (yield from call(ApiRecord, Endpoint.UNBLOCK_AGENT, body={"agent_id": agent_id}))


def block_pair(sender: str, receiver: str) -> Operation[ApiRecord]:
    """Block messages from one agent to another; the opposite direction stays open.

    Args:
        sender: Agent that sends.
        receiver: Agent that receives.

    Returns:
        The entry, and `listed`.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
    """
    return (yield from call(ApiRecord, Endpoint.BLOCK_PAIR, body={"sender": sender, "receiver": receiver}))


def unblock_pair(sender: str, receiver: str) -> Operation[ApiRecord]:
    """Remove a pair from the blocked pairs.

    Args:
        sender: Agent that sends.
        receiver: Agent that receives.

    Returns:
        The entry, and `listed`.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
    """
    return (yield from call(ApiRecord, Endpoint.UNBLOCK_PAIR, body={"sender": sender, "receiver": receiver}))


def trust_agent(agent_id: str) -> Operation[ApiRecord]:
    """Trust an agent: its messages are forwarded without verification once it is authenticated.

    Args:
        agent_id: Id or name that the agent sends under.

    Returns:
        The entry, and `listed`.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
    """
    return (yield from call(ApiRecord, Endpoint.TRUST_AGENT, body={"agent_id": agent_id}))


def revoke_agent(agent_id: str) -> Operation[ApiRecord]:
    """Remove an agent from the trusted agents: its messages are verified again.

    Args:
        agent_id: Id or name that the agent sends under.

    Returns:
        The entry, and `listed`.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
    """
    return (yield from call(ApiRecord, Endpoint.REVOKE_AGENT, body={"agent_id": agent_id}))
