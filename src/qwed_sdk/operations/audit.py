"""Operations on the log, attestations, erasure, and the health of the server."""

from typing import Any

from qwed.model.endpoints import Endpoint
from qwed_sdk.errors import QWEDProtocolError
from qwed_sdk.http_request import Operation, call, error_of, json_object_of, request_to
from qwed_sdk.models import ApiRecord
from qwed_sdk.operations.pagination import entries_of


def health() -> Operation[ApiRecord]:
    """Return the status and version of the server; needs no credential.

    Returns:
        `status` and `version`.
    """
    return (yield from call(ApiRecord, Endpoint.HEALTH, public=True))


def ready() -> Operation[ApiRecord]:
    """Return whether the server can decide, and the state of its parts; needs no credential.

    Returns:
        `ready`, and `parts`.
    """
    response = yield request_to(Endpoint.READY, public=True)
    members = json_object_of(response)
    if not isinstance(members.get("ready"), bool):
        raise error_of(response)
    return ApiRecord(members)


def get_jwks() -> Operation[ApiRecord]:
    """Return the public keys that verify attestations and heads; needs no credential.

    Returns:
        A JSON Web Key Set.
    """
    return (yield from call(ApiRecord, Endpoint.JWKS, public=True))


def verify_attestation(jwt: str) -> Operation[ApiRecord]:
    """Have the server verify an attestation, including its revocation.

    Args:
        jwt: The attestation.

    Returns:
        `valid`, `claims` and `error`.
    """
    return (yield from call(ApiRecord, Endpoint.VERIFY_ATTESTATION, body={"jwt": jwt}, repeatable=True))


def get_attestation(attestation_id: str) -> Operation[ApiRecord]:
    """Return an attestation, issued again from the log.

    Args:
        attestation_id: The `jti` of the attestation.

    Returns:
        The attestation; `attestation` is None once it is revoked, erased, or the agent is suspended.

    Raises:
        QWEDNotFoundError: The organisation has no attestation with this id.
    """
    return (yield from call(ApiRecord, Endpoint.GET_ATTESTATION, attestation_id))


def revoke_attestation(attestation_id: str, reason: str) -> Operation[ApiRecord]:
    """Revoke an attestation.

    Args:
        attestation_id: The `jti` of the attestation.
        reason: Why, for the log.

    Returns:
        The attestation with `revoked`.

    Raises:
        QWEDAuthError: The key's role is not `owner` or `approver`.
        QWEDNotFoundError: The organisation has no attestation with this id.
        QWEDConflictError: It is already revoked.
    """
    return (yield from call(ApiRecord, Endpoint.REVOKE_ATTESTATION, attestation_id, body={"reason": reason}))


def rotate_signing_key(reason: str) -> Operation[ApiRecord]:
    """Replace the key that signs attestations; older ones stay in the JWKS.

    Args:
        reason: Why, for the log.

    Returns:
        The new key's `kid`, and all public `keys`.

    Raises:
        QWEDAuthError: The key is not an owner's of the first organisation.
        QWEDConflictError: The key is a file of the operator (`QWED_SIGNING_KEY_FILE`).
    """
    return (yield from call(ApiRecord, Endpoint.ROTATE_SIGNING_KEY, body={"reason": reason}))


def audit_head() -> Operation[ApiRecord]:
    """Return the signed head of the organisation's log.

    Returns:
        `log_id`, `size`, `root`, `time` and `signature`. Save it to detect any later change of the log.
    """
    return (yield from call(ApiRecord, Endpoint.AUDIT_HEAD))


def audit_entries(from_index: int = 0, limit: int = 100) -> Operation[list[dict[str, Any]]]:
    """Return entries of the log, in order.

    Args:
        from_index: Index of the first entry.
        limit: Largest number of entries, at most 1,000.

    Returns:
        The entries, each with `index`, `leaf_hash` and `leaf`.

    Raises:
        QWEDRequestError: The index is beyond the end of the log.
    """
    query = {"from_index": from_index, "limit": limit}
    return entries_of((yield from call(dict, Endpoint.AUDIT_ENTRIES, query=query)), "entries", dict)


def audit_inclusion(
    index: int | None = None, size: int | None = None, activity_id: str | None = None
) -> Operation[ApiRecord]:
    """Return the proof that an entry is in the log.

    Args:
        index: Index of the entry.
        size: Size of the log to prove it for; without it that of the newest head.
        activity_id: Id of the activity, in place of `index`.

    Returns:
        `index`, `size`, `leaf_hash`, `path` and `head`.

    Raises:
        QWEDRequestError: The index or the size does not exist.
        QWEDNotFoundError: The log has no activity with this id.
    """
    query = {"index": index, "size": size, "activity_id": activity_id}
    return (yield from call(ApiRecord, Endpoint.AUDIT_INCLUSION, query=query))


def audit_consistency(first: int, second: int) -> Operation[ApiRecord]:
    """Return the proof that the log of one size is the beginning of the log of another.

    Args:
        first: The smaller size.
        second: The larger size.

    Returns:
        `from`, `to` and `path`.

    Raises:
        QWEDRequestError: A size does not exist, or `first` is larger than `second`.
    """
    return (yield from call(ApiRecord, Endpoint.AUDIT_CONSISTENCY, query={"from": first, "to": second}))


def erase(subject: str) -> Operation[ApiRecord]:
    """Erase all content about a subject, irreversibly.

    Args:
        subject: The `principal_id` whose content is erased.

    Returns:
        `erased`: whether there was any.

    Raises:
        QWEDAuthError: The key's role is not `owner`.
    """
    erased = yield from call(ApiRecord, Endpoint.ERASE_SUBJECT, body={"subject": subject})
    if not isinstance(erased.get("erased"), bool):
        raise QWEDProtocolError("the answer has no `erased`: is this a qwed server?")
    return erased
