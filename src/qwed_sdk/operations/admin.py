"""Operations on approvals, keys, tools and the webhook."""

from collections.abc import Sequence
from typing import Any

from qwed.model.endpoints import Endpoint
from qwed_sdk.http_request import Operation, call
from qwed_sdk.models import Action, ApiRecord, Approval
from qwed_sdk.operations.pagination import entries_of, fetch_entries


def list_approvals(
    state: str | None = None, agent_id: str | None = None, limit: int = 100
) -> Operation[list[Approval]]:
    """Return approvals, newest first.

    Args:
        state: Only those that are `pending`, `approved`, `rejected` or `expired`.
        agent_id: Only those of the agent with this id or name.
        limit: Largest number of entries.

    Returns:
        The approvals.

    Raises:
        QWEDRequestError: The state does not exist.
    """
    filters = {"state": state, "agent_id": agent_id}
    return (yield from fetch_entries(Approval, Endpoint.LIST_APPROVALS, "approvals", limit=limit, filters=filters))


def get_approval(approval_id: str) -> Operation[Approval]:
    """Return an approval.

    Args:
        approval_id: Id of the approval, `apr_...`.

    Returns:
        The approval.

    Raises:
        QWEDNotFoundError: The organisation has no approval with this id.
    """
    return (yield from call(Approval, Endpoint.GET_APPROVAL, approval_id, must_have="approval_id"))


def approve(approval_id: str, reason: str, approver: str | None = None) -> Operation[Approval]:
    """Approve an action or a trust change that waits for a person.

    Args:
        approval_id: Id of the approval, `apr_...`.
        reason: Why, for the log.
        approver: Name of the person, if the key is shared.

    Returns:
        The approval with its `resolution`.

    Raises:
        QWEDConflictError: It is already decided or expired.
        QWEDAuthError: The key's role is not sufficient, or it made the request itself.
    """
    body = {"reason": reason, "approver": approver}
    return (yield from call(Approval, Endpoint.APPROVE, approval_id, body=body, must_have="approval_id"))


def reject(approval_id: str, reason: str, approver: str | None = None) -> Operation[Approval]:
    """Reject an action or a trust change that waits for a person, and release what it reserved.

    Args:
        approval_id: Id of the approval, `apr_...`.
        reason: Why, for the log.
        approver: Name of the person, if the key is shared.

    Returns:
        The approval with its `resolution`.

    Raises:
        QWEDConflictError: It is already decided or expired.
        QWEDAuthError: The key's role is not sufficient, or it made the request itself.
    """
    body = {"reason": reason, "approver": approver}
    return (yield from call(Approval, Endpoint.REJECT, approval_id, body=body, must_have="approval_id"))


def create_organisation(name: str) -> Operation[ApiRecord]:
    """Create another organisation.

    Args:
        name: Name of the organisation.

    Returns:
        Its id, and the `owner_key`, which is shown this once.

    Raises:
        QWEDAuthError: The key is not an owner's of the first organisation.
    """
    return (yield from call(ApiRecord, Endpoint.ADD_ORGANISATION, body={"name": name}))


def create_key(name: str, role: str = "member", groups: Sequence[str] = ()) -> Operation[ApiRecord]:
    """Create an API key of the organisation.

    Args:
        name: Name of the key, for people.
        role: `owner`, `approver`, `member` or `metrics`.
        groups: Groups in whose name the key approves, such as `finance`; for owner and approver keys.

    Returns:
        The key's description, and the `key` itself, which is shown this once.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
    """
    return (yield from call(ApiRecord, Endpoint.ADD_KEY, body={"name": name, "role": role, "groups": list(groups)}))


def change_key_groups(key_id: str, groups: Sequence[str]) -> Operation[ApiRecord]:
    """Set the groups in whose name a key approves.

    Args:
        key_id: Id of the key, `key_...`.
        groups: All groups of the key from now on.

    Returns:
        The changed key.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDNotFoundError: The organisation has no key with this id.
        QWEDConflictError: The key is revoked, or its role approves nothing.
    """
    return (yield from call(ApiRecord, Endpoint.CHANGE_KEY, key_id, body={"groups": list(groups)}))


def list_keys() -> Operation[list[ApiRecord]]:
    """Return the API keys of the organisation, without their secrets.

    Returns:
        The keys.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
    """
    return entries_of((yield from call(ApiRecord, Endpoint.LIST_KEYS)), "keys", ApiRecord)


def get_own_key() -> Operation[ApiRecord]:
    """Return the API key that the client uses.

    Returns:
        Its id, name, role and `organisation_id`.
    """
    return (yield from call(ApiRecord, Endpoint.GET_OWN_KEY))


def revoke_key(key_id: str) -> Operation[ApiRecord]:
    """Revoke an API key; it is refused from the next request on.

    Args:
        key_id: Id of the key, `key_...`.

    Returns:
        The revoked key.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDNotFoundError: The organisation has no key with this id.
        QWEDConflictError: It is the last owner key.
    """
    return (yield from call(ApiRecord, Endpoint.REVOKE_KEY, key_id))


def list_changes(limit: int = 100) -> Operation[list[Action]]:
    """Return the changes in the organisation, newest first.

    Args:
        limit: Largest number of entries.

    Returns:
        The changes, each with the key that made it.
    """
    return (yield from fetch_entries(Action, Endpoint.LIST_CHANGES, "changes", limit=limit))


def list_tools() -> Operation[list[ApiRecord]]:
    """Return the tool registry of the organisation.

    Returns:
        The tools.
    """
    return entries_of((yield from call(ApiRecord, Endpoint.LIST_TOOLS)), "tools", ApiRecord)


def put_tool(name: str, risk_level: str, **fields: Any) -> Operation[ApiRecord]:
    """Register a tool for the organisation, or replace its registration.

    Args:
        name: Name of the tool.
        risk_level: `low`, `medium`, `high` or `critical`.
        fields: Further fields, such as `effect="SPEND"`, `requires_approval=True` or `dialect="postgres"`, the database
            that executes the statements of the tool.

    Returns:
        The registered tool.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDConflictError: A tool is registered whose name differs only by case.
        QWEDRequestError: A field is unknown or cannot be used.
    """
    return (yield from call(ApiRecord, Endpoint.PUT_TOOL, name, body={"risk_level": risk_level, **fields}))


def delete_tool(name: str) -> Operation[ApiRecord]:
    """Delete the organisation's registration of a tool; a built-in tool of that name applies again.

    Args:
        name: Name of the tool.

    Returns:
        `removed`, which is true.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDNotFoundError: The organisation has not registered the tool.
    """
    return (yield from call(ApiRecord, Endpoint.DELETE_TOOL, name))


def set_webhook(url: str, events: Sequence[str] | None = None) -> Operation[ApiRecord]:
    """Set the webhook of the organisation.

    Args:
        url: Address that receives the events.
        events: Events to send; without it all.

    Returns:
        The webhook, and the `secret` that signs its messages, which is shown this once.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDRequestError: The address or an event cannot be used.
    """
    body = {"url": url, "events": None if events is None else list(events)}
    return (yield from call(ApiRecord, Endpoint.PUT_WEBHOOK, body=body))


def get_webhook() -> Operation[ApiRecord]:
    """Return the webhook of the organisation, and the state of its deliveries.

    Returns:
        The webhook, without its secret.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDNotFoundError: No webhook is set.
    """
    return (yield from call(ApiRecord, Endpoint.GET_WEBHOOK))


def delete_webhook() -> Operation[ApiRecord]:
    """Remove the webhook of the organisation, and the messages that wait for it.

    Returns:
        The removed webhook.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDNotFoundError: No webhook is set.
    """
    return (yield from call(ApiRecord, Endpoint.DELETE_WEBHOOK))
