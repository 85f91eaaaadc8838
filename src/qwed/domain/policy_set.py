"""Policy set of an organisation: its documents as the owner wrote them, under one version and one digest.

The set is opaque here: `qwed.policy` compiles and evaluates it.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from qwed.model import sha256_of


class PolicyDocument(NamedTuple):
    """One policy: its id, and its text."""

    policy_id: str
    text: str


class DocumentChanges(NamedTuple):
    """Policies by id that one version of a set has added, changed and removed."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def policy_ids(self) -> tuple[str, ...]:
        """Ids of all policies that are different from the version before, in order."""
        return tuple(sorted({*self.added, *self.changed, *self.removed}))


NO_CHANGES = DocumentChanges()


class PolicySetVersion(NamedTuple):
    """One version of a policy set, without its documents."""

    version: int
    digest: str
    changes: DocumentChanges
    changed_at: float
    changed_by: str


class PolicySet(msgspec.Struct, frozen=True, kw_only=True):
    """All policies of one organisation, in force together."""

    version: int = 0
    """Number of changes that led to it; 0 for an organisation that never had a policy."""
    digest: str
    """SHA-256 over the canonical documents."""
    documents: tuple[PolicyDocument, ...] = ()
    """In the order of their ids."""
    damage: str = ""
    """Why the stored set cannot be read; empty for a readable one. No decision is made under a damaged set."""

    @property
    def is_empty(self) -> bool:
        """True if there is no policy to evaluate."""
        return not self.documents and not self.damage

    def is_same_version(self, other: "PolicySet") -> bool:
        """Return True if this is the same version with the same content."""
        return self is other or (self.version, self.digest) == (other.version, other.digest)

    def text_of(self, policy_id: str) -> str | None:
        """Return the text of a policy, or None."""
        return next((text for name, text in self.documents if name == policy_id), None)

    def with_documents(self, documents: Iterable[PolicyDocument]) -> "PolicySet":
        """Return the next version, with these documents."""
        ordered = tuple(sorted(documents))
        return PolicySet(version=self.version + 1, digest=digest_of(ordered), documents=ordered)

    def changes_to(self, after: "PolicySet") -> DocumentChanges:
        """Return the policies that are different in another version."""
        before, documents = dict(self.documents), dict(after.documents)
        return DocumentChanges(
            tuple(sorted(documents.keys() - before.keys())),
            tuple(sorted(name for name in documents.keys() & before.keys() if documents[name] != before[name])),
            tuple(sorted(before.keys() - documents.keys())),
        )


def digest_of(documents: Iterable[PolicyDocument]) -> str:
    """Return the SHA-256 over the canonical JSON of the documents, in the order of their ids."""
    return sha256_of([[policy_id, text] for policy_id, text in sorted(documents)])


NO_POLICIES = PolicySet(digest=digest_of(()))
"""Set of an organisation that never had a policy."""
