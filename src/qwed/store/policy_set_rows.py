"""Rows of the policy sets; a row that was damaged is read as a damaged set, under which nothing is decided."""

from typing import Any

import msgspec

from qwed.domain.change_parts import PolicySetChanged
from qwed.domain.policy_set import (
    NO_CHANGES,
    NO_POLICIES,
    DocumentChanges,
    PolicyDocument,
    PolicySet,
    PolicySetVersion,
    digest_of,
)

Row = tuple[Any, ...]
LATEST = 2**62
"""Number above that of every version."""

_encode = msgspec.json.Encoder().encode
_documents = msgspec.json.Decoder(tuple[PolicyDocument, ...])
_changes = msgspec.json.Decoder(DocumentChanges)


def policy_set_row(part: PolicySetChanged) -> Row:
    """Return the row of the version that a change makes."""
    after = part.after
    documents, changes = _encode(after.documents).decode(), _encode(part.before.changes_to(after)).decode()
    return (part.organisation_id, after.version, after.digest, documents, changes, part.at, part.changed_by)


def to_policy_set(row: Row | None) -> PolicySet:
    """Return the policy set in a row, which is marked where its documents are not what its digest says."""
    if row is None:
        return NO_POLICIES
    version, digest, stored = row
    try:
        documents = _documents.decode(stored)
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        return _damaged(version, digest, f"its documents cannot be read: {error}")
    if digest_of(documents) != digest:
        return _damaged(version, digest, f"its documents do not have the stored digest `{digest}`")
    return PolicySet(version=version, digest=digest, documents=documents)


def _damaged(version: int, digest: str, damage: str) -> PolicySet:
    return PolicySet(version=version, digest=digest, damage=f"version {version} is damaged: {damage}")


def to_version(row: Row) -> PolicySetVersion:
    """Return the version in a row without its documents."""
    version, digest, stored, changed_at, changed_by = row
    try:
        changes = _changes.decode(stored)
    except (msgspec.DecodeError, TypeError, ValueError):
        # Derived from the documents, which have a digest of their own; an old version must stay in the list.
        changes = NO_CHANGES
    return PolicySetVersion(version, digest, changes, changed_at, changed_by)
