"""Operations on agents: registration, decisions, budget, trust, suspension, reports (spec 3 to 8)."""

import math
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from qwed.model.endpoints import Endpoint
from qwed_sdk.errors import QWEDArgumentError, QWEDProtocolError
from qwed_sdk.http_request import Operation, Pause, call, error_of, parse_seconds, request_to
from qwed_sdk.models import Action, Agent, Answer, ApiRecord
from qwed_sdk.operations.pagination import fetch_entries

MAX_POLL_SECONDS = 30
"""Longest time that the server holds one request open."""
POLL_PAUSE_SECONDS = 0.25
"""Pause before the next request, if the server does not hold it open."""
MAX_REPORT_BYTES = 1 << 30
MEDIA_TYPES = {"pdf": "application/pdf", "json": "application/json", "csv": "text/csv"}


def register_agent(
    name: str,
    type: str | None = None,  # noqa: A002 - the protocol calls it so
    principal_id: str | None = None,
    permissions: Mapping[str, Any] | None = None,
    budget: Mapping[str, Any] | None = None,
    trust_level: int | str | None = None,
    description: str | None = None,
    framework: str | None = None,
    model: str | None = None,
) -> Operation[Agent]:
    """Register an agent, and return it with its token.

    Args:
        name: Name of the agent, for people.
        type: `supervised` (trust level 1, the default), `autonomous` (2) or `trusted` (3).
        principal_id: Id of the person or service that the agent acts for; required.
        permissions: Tools, tables, paths and domains that it may use, the `dialect` of its database and the
            `allowed_functions` of that; without it the defaults.
        budget: Limits, such as `{"max_daily_cost_usd": 5}`; a limit that is absent does not apply.
        trust_level: Level from 0 to 3, in place of that of `type`.
        description: What the agent does.
        framework: Framework that it is built with.
        model: Model that it uses.

    Returns:
        The agent. Its `agent_token` is shown this once.

    Raises:
        QWEDRequestError: A field is missing, unknown or cannot be used.
        QWEDAuthError: The key is not an owner's, and trust level 3 was requested.
    """
    body = {
        "name": name,
        "type": type,
        "principal_id": principal_id,
        "permissions": permissions,
        "budget": budget,
        "trust_level": trust_level,
        "description": description,
        "framework": framework,
        "model": model,
    }
    return (yield from call(Agent, Endpoint.REGISTER_AGENT, body=body, must_have="agent_id"))


def get_agent(agent_id: str, agent_token: str | None = None) -> Operation[Agent]:
    """Return an agent.

    Args:
        agent_id: Id of the agent, `agent_...`.
        agent_token: Token of the agent; without it the client's own credential is sent.

    Returns:
        The agent, without its token.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id.
    """
    return (yield from call(Agent, Endpoint.GET_AGENT, agent_id, agent_token=agent_token, must_have="agent_id"))


def list_agents(limit: int = 100) -> Operation[list[Agent]]:
    """Return the agents of the organisation.

    Args:
        limit: Largest number of entries.

    Returns:
        The agents, without their tokens.
    """
    return (yield from fetch_entries(Agent, Endpoint.LIST_AGENTS, "agents", limit=limit))


def verify_action(
    agent_id: str,
    action: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    agent_token: str | None = None,
    idempotency_key: str | None = None,
) -> Operation[Answer]:
    """Request a decision about an action.

    Args:
        agent_id: Id of the agent, `agent_...`.
        action: The action: `type`, and `query`, `code`, `target` or `parameters`, and optionally `cost`.
        context: `conversation_id` and `step_number`, and optionally `pre_action_state_hash` and `state_source`.
        options: `require_attestation`, `risk_threshold`, `chain_id` and `include_facts`.
        agent_token: Token of the agent; without it the client's own credential is sent.
        idempotency_key: Printable ASCII; by default a new one for each call. A repeated request with the same key
            returns the first answer.

    Returns:
        The decision, a refusal included. As a condition it is true for APPROVED only.

    Raises:
        QWEDArgumentError: The idempotency key cannot be used.
        QWEDRequestError: The action contains values that are not JSON.
    """
    body = {"action": action, "context": context, "options": options}
    return (yield from _request_decision(Endpoint.VERIFY, (agent_id,), body, agent_token, idempotency_key))


def verify_tool_call(
    agent_id: str,
    tool_name: str,
    parameters: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    agent_token: str | None = None,
    idempotency_key: str | None = None,
    *,
    justification: str | None = None,
    effects: Sequence[str] | None = None,
) -> Operation[Answer]:
    """Request a decision about a tool call.

    Args:
        agent_id: Id of the agent, `agent_...`.
        tool_name: Name of the tool.
        parameters: Arguments of the call.
        context: `conversation_id` and `step_number`, and optionally `pre_action_state_hash` and `state_source`.
        options: `require_attestation`, `risk_threshold`, `chain_id` and `include_facts`.
        agent_token: Token of the agent; without it the client's own credential is sent.
        idempotency_key: Printable ASCII; by default a new one for each call. A repeated request with the same key
            returns the first answer.
        justification: Why the agent calls the tool, for the person who approves it.
        effects: Effects of the call, such as `SPEND`, in addition to those that are found.

    Returns:
        The decision, a refusal included. As a condition it is true for APPROVED only.

    Raises:
        QWEDArgumentError: The idempotency key cannot be used.
        QWEDRequestError: The parameters contain values that are not JSON.
    """
    body = {
        "parameters": parameters,
        "effects": None if effects is None else list(effects),
        "context": context,
        "options": options,
        "justification": justification,
    }
    ids = (agent_id, tool_name)
    return (yield from _request_decision(Endpoint.VERIFY_TOOL, ids, body, agent_token, idempotency_key))


def _request_decision(
    endpoint: Endpoint, ids: tuple[str, ...], body: Mapping[str, Any], token: str | None, key: str | None
) -> Operation[Answer]:
    # With a key, a request is decided, charged and logged once, however often the connection breaks.
    key = secrets.token_hex(16) if key is None else key
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or not key.strip():
        raise QWEDArgumentError("`idempotency_key` must be printable ASCII")
    how: dict[str, Any] = {"repeatable": True, "agent_token": token, "idempotency_key": key, "must_have": "decision"}
    return (yield from call(Answer, endpoint, *ids, body=body, **how))


def get_action(agent_id: str, action_id: str, agent_token: str | None = None) -> Operation[Action]:
    """Return the current state of an action.

    Args:
        agent_id: Id of the agent, `agent_...`.
        action_id: Id of the action, `act_...`.
        agent_token: Token of the agent; without it the client's own credential is sent.

    Returns:
        The action.

    Raises:
        QWEDNotFoundError: The agent has no action with this id.
    """
    return (yield from _fetch_action(agent_id, action_id, 0, agent_token))


def wait_for_decision(
    agent_id: str, action_id: str, timeout: float = 300.0, agent_token: str | None = None
) -> Operation[Action]:
    """Wait until a person has decided about an action.

    Args:
        agent_id: Id of the agent, `agent_...`.
        action_id: Id of the action, `act_...`.
        timeout: Seconds to wait at most, up to a day.
        agent_token: Token of the agent; without it the client's own credential is sent.

    Returns:
        The action once it is decided, or its state after `timeout` seconds.

    Raises:
        QWEDNotFoundError: The agent has no action with this id.
        QWEDArgumentError: `timeout` is not a number of seconds.
    """
    ends = time.monotonic() + parse_seconds(timeout, "timeout")
    while True:
        started = time.monotonic()
        wait = max(0, min(MAX_POLL_SECONDS, math.ceil(ends - started)))
        action = yield from _fetch_action(agent_id, action_id, wait, agent_token)
        left = ends - time.monotonic()
        if not action.is_pending or left <= 0:
            return action
        if time.monotonic() - started < POLL_PAUSE_SECONDS:
            yield Pause(min(POLL_PAUSE_SECONDS, left))


def _fetch_action(agent_id: str, action_id: str, wait: int, token: str | None) -> Operation[Action]:
    query = {"wait": wait} if wait else None
    how: dict[str, Any] = {"query": query, "patience": float(wait), "agent_token": token, "must_have": "decision"}
    action = yield from call(Action, Endpoint.GET_ACTION, agent_id, action_id, **how)
    if action.action_id != action_id:
        raise QWEDProtocolError(f"the server answered for another action than `{action_id}`")
    return action


def log_execution(
    agent_id: str,
    action_id: str,
    success: bool,
    result: Any = None,
    attestation: str | Mapping[str, Any] | None = None,
    agent_token: str | None = None,
    *,
    result_hash: str | None = None,
) -> Operation[Action]:
    """Record the outcome of a permitted action, once.

    Args:
        agent_id: Id of the agent, `agent_...`.
        action_id: Id of the action, `act_...`.
        success: Whether the action was executed successfully.
        result: Result of the action; only its hash is stored.
        attestation: Attestation or receipt of the decision.
        agent_token: Token of the agent; without it the client's own credential is sent.
        result_hash: Hash of the result, in place of the result: `sha256:` and 64 hex digits.

    Returns:
        The action with its `execution`.

    Raises:
        QWEDNotFoundError: The agent has no action with this id.
        QWEDConflictError: The outcome is already recorded, or the action was not permitted.
    """
    body = {"success": success, "result": result, "result_hash": result_hash, "attestation": attestation}
    ids = (agent_id, action_id)
    return (yield from call(Action, Endpoint.REPORT_EXECUTION, *ids, body=body, agent_token=agent_token))


def get_agent_budget(agent_id: str, agent_token: str | None = None) -> Operation[ApiRecord]:
    """Return the limits of an agent, and what it has spent.

    Args:
        agent_id: Id of the agent, `agent_...`.
        agent_token: Token of the agent; without it the client's own credential is sent.

    Returns:
        Limits and current values of `cost`, `requests` and `tokens`.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id.
    """
    return (yield from call(ApiRecord, Endpoint.GET_BUDGET, agent_id, agent_token=agent_token))


def get_agent_activity(
    agent_id: str,
    limit: int = 100,
    *,
    since: date | str | None = None,
    until: date | str | None = None,
    decision: str | None = None,
    kind: str | None = None,
    agent_token: str | None = None,
) -> Operation[list[Action]]:
    """Return the activity of an agent, newest first.

    Args:
        agent_id: Id of the agent, `agent_...`.
        limit: Largest number of entries.
        since: First day or moment, inclusive.
        until: Last day or moment, exclusive.
        decision: Only activities with this decision.
        kind: `decision` (the default), `change` or `all`.
        agent_token: Token of the agent; without it the client's own credential is sent.

    Returns:
        The activities.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id.
    """
    filters = {"from": since, "to": until, "decision": decision, "kind": kind}
    how: dict[str, Any] = {"limit": limit, "filters": filters, "agent_token": agent_token}
    return (yield from fetch_entries(Action, Endpoint.GET_ACTIVITY, "activities", agent_id, **how))


def request_trust_change(
    agent_id: str, to_level: int, justification: str | None = None, agent_token: str | None = None
) -> Operation[ApiRecord]:
    """Request one trust level more, which a person approves.

    Args:
        agent_id: Id of the agent, `agent_...`.
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
        agent_id: Id of the agent, `agent_...`.
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


def suspend_agent(agent_id: str, reason: str) -> Operation[Agent]:
    """Suspend an agent: everything it requests is denied.

    Args:
        agent_id: Id of the agent, `agent_...`.
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
        agent_id: Id of the agent, `agent_...`.
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
        agent_id: Id of the agent, `agent_...`.
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
        agent_id: Id of the agent, `agent_...`.

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


def compliance_report(
    agent_id: str,
    format: str = "pdf",  # noqa: A002 - the protocol calls it so
    since: date | str | None = None,
    until: date | str | None = None,
) -> Operation[bytes]:
    """Return a compliance report about an agent.

    Args:
        agent_id: Id of the agent, `agent_...`.
        format: `pdf`, `json` or `csv`.
        since: First day; 30 days ago by default.
        until: Last day, exclusive.

    Returns:
        The content of the file.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id.
        QWEDRequestError: The format or the period cannot be used.
    """
    period = {"format": format, "from": since, "to": until}
    response = yield request_to(Endpoint.GET_COMPLIANCE_REPORT, agent_id, query=period, largest=MAX_REPORT_BYTES)
    if response.status != 200:
        raise error_of(response)
    if response.media != MEDIA_TYPES.get(format):
        raise QWEDProtocolError(f"the report has media type `{response.media}`: is this a qwed server?", status=200)
    content: bytes = response.content
    return content
