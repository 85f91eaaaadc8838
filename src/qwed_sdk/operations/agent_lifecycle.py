"""Operations that change an agent: edit, retire, trust, suspension, token, kill switch (spec 8)."""

from collections.abc import Mapping
from typing import Any

from qwed.model.endpoints import Endpoint
from qwed_sdk.http_request import Operation, call
from qwed_sdk.models import Agent, ApiRecord


def edit_agent(agent_id: str, changes: Mapping[str, Any], if_match: str | None = None) -> Operation[Agent]:
    """Edit an agent by a JSON merge patch (RFC 7396).

    Args:
        agent_id: Id or name of the agent.
        changes: New values of `name`, `description`, `permissions`, `budget`, `labels` and `max_conversation_steps`.
            What is absent stays, None removes it, and a list is replaced as a whole.
        if_match: The `etag` of the agent as you read it; then the edit is refused if it has changed since.

    Returns:
        The changed agent.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id or name.
        QWEDAuthError: The key is a member's, or an approver's and the change does not only narrow.
        QWEDConflictError: The agent has changed (`details` says what), or another agent has the name.
        QWEDRequestError: A field is unknown or cannot be used.
    """
    how: dict[str, Any] = {"body": changes, "keep_nulls": True, "headers": _if_match(if_match)}
    return (yield from call(Agent, Endpoint.EDIT_AGENT, agent_id, must_have="agent_id", **how))


def retire_agent(agent_id: str, if_match: str | None = None) -> Operation[Agent]:
    """Retire an agent for good: its token is dead, its open approvals are closed, and its record stays.

    Args:
        agent_id: Id or name of the agent.
        if_match: The `etag` of the agent as you read it; then the request is refused if it has changed since.

    Returns:
        The retired agent.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id or name.
        QWEDAuthError: The key's role is not `owner`.
        QWEDConflictError: The agent has changed.
    """
    return (yield from call(Agent, Endpoint.RETIRE_AGENT, agent_id, must_have="agent_id", headers=_if_match(if_match)))


def _if_match(etag: str | None) -> dict[str, str]:
    return {} if etag is None else {"If-Match": etag}


def request_trust_change(
    agent_id: str, to_level: int, justification: str | None = None, agent_token: str | None = None
) -> Operation[ApiRecord]:
    """Request one trust level more, which a person approves.

    Args:
        agent_id: Id or name of the agent.
        to_level: Requested level.
        justification: Why, for the person who approves.
        agent_token: Token of the agent; without it the client's own credential is sent.

    Returns:
        The request with its `approval_id` and `evidence`.

    Raises:
        QWEDConflictError: The evidence is not sufficient (see `details`), or a request is already open.
    """
    body = {"to_level": to_level, "justification": justification}
    return (yield from call(ApiRecord, Endpoint.CHANGE_TRUST, agent_id, body=body, agent_token=agent_token))


def reduce_trust(agent_id: str, to_level: int, justification: str | None = None) -> Operation[ApiRecord]:
    """Lower the trust level of an agent at once.

    Args:
        agent_id: Id or name of the agent.
        to_level: New level.
        justification: Why, for the log.

    Returns:
        The agent's id and new level.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id.
        QWEDAuthError: The key's role is not `owner` or `approver`.
    """
    body = {"request": "trust_reduction", "to_level": to_level, "justification": justification}
    return (yield from call(ApiRecord, Endpoint.CHANGE_TRUST, agent_id, body=body))


def restore_trust(agent_id: str, to_level: int, reason: str) -> Operation[ApiRecord]:
    """Give back trust that an agent lost automatically, at once.

    Args:
        agent_id: Id or name of the agent.
        to_level: New level, at most that of the registration.
        reason: Why, for the log.

    Returns:
        The agent's id and new level.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id or name.
        QWEDAuthError: The key's role is not `owner`, or `approver` up to level 2.
        QWEDRequestError: The level is not above the present one, or above that of the registration.
    """
    body = {"request": "trust_restoration", "to_level": to_level, "reason": reason}
    return (yield from call(ApiRecord, Endpoint.CHANGE_TRUST, agent_id, body=body))


def suspend_agent(agent_id: str, reason: str) -> Operation[Agent]:
    """Suspend an agent: everything it requests is denied.

    Args:
        agent_id: Id or name of the agent.
        reason: Why, for the log.

    Returns:
        The suspended agent.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id.
    """
    return (yield from call(Agent, Endpoint.SUSPEND, agent_id, body={"reason": reason}, must_have="agent_id"))


def reactivate_agent(agent_id: str, reason: str) -> Operation[Agent]:
    """Reactivate a suspended agent.

    Args:
        agent_id: Id or name of the agent.
        reason: Why, for the log.

    Returns:
        The active agent.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id.
        QWEDAuthError: The key's role is not `owner` or `approver`.
    """
    return (yield from call(Agent, Endpoint.REACTIVATE, agent_id, body={"reason": reason}, must_have="agent_id"))


def file_complaint(agent_id: str, reason: str) -> Operation[Agent]:
    """File a complaint about an agent, which suspends it.

    Args:
        agent_id: Id or name of the agent.
        reason: Why, for the log.

    Returns:
        The suspended agent.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id.
    """
    return (yield from call(Agent, Endpoint.FILE_COMPLAINT, agent_id, body={"reason": reason}, must_have="agent_id"))


def rotate_token(agent_id: str) -> Operation[Agent]:
    """Replace the token of an agent.

    Args:
        agent_id: Id or name of the agent.

    Returns:
        The agent with its new `agent_token`; the old token is refused from now on.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id.
        QWEDAuthError: The key's role is not `owner` or `approver`.
    """
    return (yield from call(Agent, Endpoint.ROTATE_TOKEN, agent_id, must_have="agent_token"))


def suspend_all(reason: str) -> Operation[ApiRecord]:
    """Suspend every agent of the organisation: the kill switch.

    Args:
        reason: Why, for the log.

    Returns:
        The organisation's id, and `halted`.
    """
    return (yield from call(ApiRecord, Endpoint.SUSPEND_ALL, body={"reason": reason}))


def reactivate_all(reason: str) -> Operation[ApiRecord]:
    """Release the kill switch; agents that were suspended one by one stay suspended.

    Args:
        reason: Why, for the log.

    Returns:
        The organisation's id, and `halted`.

    Raises:
        QWEDAuthError: The key's role is not `owner` or `approver`.
    """
    return (yield from call(ApiRecord, Endpoint.REACTIVATE_ALL, body={"reason": reason}))
