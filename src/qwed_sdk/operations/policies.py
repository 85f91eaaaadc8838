"""Operations on the policies of the organisation."""

from collections.abc import Mapping
from typing import Any

from qwed.model.endpoints import Endpoint
from qwed_sdk.http_request import Operation, call
from qwed_sdk.models import ApiRecord
from qwed_sdk.operations.pagination import fetch_entries


def get_policies(version: int | None = None) -> Operation[ApiRecord]:
    """Return the policy set in force, or one of its versions.

    Args:
        version: Version to return; without it that in force.

    Returns:
        Its `version`, its `digest`, and its `policies`, each with its name and text.

    Raises:
        QWEDNotFoundError: There is no such version.
    """
    query = None if version is None else {"version": version}
    return (yield from call(ApiRecord, Endpoint.GET_POLICIES, query=query))


def apply_policies(documents: Mapping[str, str], version: int | None = None) -> Operation[ApiRecord]:
    """Put a whole policy set in force, in place of the present one.

    Args:
        documents: Texts of the policies by file name; problems are reported under it.
        version: Version that must be in force, such as the one that you have read; without it any.

    Returns:
        The new `version`, and the policies that were added, changed and removed. The same set once more changes
        nothing.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDRequestError: A document is refused; `details["problems"]` says where.
        QWEDConflictError: Another version is in force; `details["version"]` says which.
    """
    headers = _if_match(version)
    return (yield from call(ApiRecord, Endpoint.PUT_POLICIES, body=_documents(documents), headers=headers))


def check_policies(documents: Mapping[str, str]) -> Operation[ApiRecord]:
    """Return the problems of policy documents, without putting them in force.

    Args:
        documents: Texts of the policies by file name.

    Returns:
        `valid`, and the `problems`, each with file, line, column and message.
    """
    return (yield from call(ApiRecord, Endpoint.CHECK_POLICIES, body=_documents(documents)))


def explain_action(
    agent_id: str, action: Mapping[str, Any], options: Mapping[str, Any] | None = None
) -> Operation[ApiRecord]:
    """Return what would be decided about an action, and why. Nothing is stored, charged or logged.

    Args:
        agent_id: Id of the agent.
        action: The action, as `verify_action` takes it.
        options: Options of the request.

    Returns:
        The `decision`, the `policy` that decides, the `facts` of the action, and the `rules` that looked at it.

    Raises:
        QWEDNotFoundError: The organisation has no agent with this id.
        QWEDRequestError: The action cannot be read.
    """
    body = {"agent_id": agent_id, "action": dict(action), "options": None if options is None else dict(options)}
    return (yield from call(ApiRecord, Endpoint.EXPLAIN_POLICIES, body=body))


def get_policy(policy_id: str) -> Operation[ApiRecord]:
    """Return one policy of the set in force.

    Args:
        policy_id: Name of the policy.

    Returns:
        Its name and text, and the `version` of the set.

    Raises:
        QWEDNotFoundError: No policy in force has this name.
    """
    return (yield from call(ApiRecord, Endpoint.GET_POLICY, policy_id))


def put_policy(policy_id: str, text: str, version: int | None = None) -> Operation[ApiRecord]:
    """Add a policy to the set in force, or replace it.

    Args:
        policy_id: Name of the policy, as its text states it.
        text: Text of the policy.
        version: Version of the set that must be in force; without it any.

    Returns:
        The new `version`, and the policies that were added and changed.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDRequestError: The text is refused.
        QWEDConflictError: Another version is in force.
    """
    headers = _if_match(version)
    return (yield from call(ApiRecord, Endpoint.PUT_POLICY, policy_id, body={"text": text}, headers=headers))


def delete_policy(policy_id: str, version: int | None = None) -> Operation[ApiRecord]:
    """Remove a policy from the set in force.

    Args:
        policy_id: Name of the policy.
        version: Version of the set that must be in force; without it any.

    Returns:
        The new `version`, and the policy that was removed.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDNotFoundError: No policy in force has this name.
        QWEDConflictError: Another version is in force.
    """
    return (yield from call(ApiRecord, Endpoint.DELETE_POLICY, policy_id, headers=_if_match(version)))


def roll_back_policies(to_version: int, version: int | None = None) -> Operation[ApiRecord]:
    """Put an earlier version of the policy set in force again, as a new version.

    Args:
        to_version: Version whose policies are put in force again.
        version: Version that must be in force; without it any.

    Returns:
        The new `version`, and the policies that were added, changed and removed.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
        QWEDNotFoundError: There is no such version.
        QWEDRequestError: The earlier version would be refused today.
        QWEDConflictError: Another version is in force.
    """
    body = {"version": to_version}
    return (yield from call(ApiRecord, Endpoint.ROLL_BACK_POLICIES, body=body, headers=_if_match(version)))


def list_policy_versions(policy_id: str | None = None, limit: int = 100) -> Operation[list[ApiRecord]]:
    """Return the versions of the policy set, newest first.

    Args:
        policy_id: Name of a policy; only versions that added, changed or removed it.
        limit: Largest number of versions.

    Returns:
        The versions, each with who made it, when, and the policies that it changed.
    """
    if policy_id is None:
        return (yield from fetch_entries(ApiRecord, Endpoint.LIST_POLICY_SETS, "versions", limit=limit))
    return (yield from fetch_entries(ApiRecord, Endpoint.LIST_POLICY_VERSIONS, "versions", policy_id, limit=limit))


def _documents(documents: Mapping[str, str]) -> dict[str, Any]:
    return {"documents": [{"name": name, "text": text} for name, text in documents.items()]}


def _if_match(version: int | None) -> dict[str, str]:
    return {"if-match": "*" if version is None else f'"{version}"'}
