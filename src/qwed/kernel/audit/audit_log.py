"""The audit log with its proofs. A client only needs to trust the keys that sign the heads (INTERFACES 4)."""

from collections.abc import Sequence

from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit.issue import audit_path, hashes_of
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import View
from qwed.ledger import merkle
from qwed.ledger.sequencer import Head, head_from
from qwed.ledger.verifier import EMPTY_ROOT, leaf_hash
from qwed.model import ErrorCode
from qwed.store.protocol import LogEntry


class LogEntryView(View, frozen=True, kw_only=True):
    """One leaf: its index, its text and its hash."""

    index: int
    leaf_hash: str
    leaf: str


class EntriesPage(View, frozen=True, kw_only=True):
    """Leaves in order. `next_index` is the start of the next page; at the end of the log, its next index."""

    entries: list[LogEntryView]
    next_index: int


class InclusionProof(View, frozen=True, kw_only=True):
    """Audit path of a leaf in the log of this size; `head` is null if no head of that size was signed."""

    index: int
    size: int
    leaf_hash: str
    path: list[str]
    head: Head | None


class ConsistencyProof(View, frozen=True, kw_only=True, rename={"first": "from", "second": "to"}):
    """Path that proves that the log of the first size is a prefix of the log of the second size."""

    first: int
    second: int
    path: list[str]


def newest_head(organisation_id: str, services: Services) -> Head:
    """Return the newest signed head; the head of an empty log is signed on request."""
    signature = services.store.latest_head(organisation_id)
    return services.sequencer.sign(organisation_id, 0, EMPTY_ROOT) if signature is None else head_from(signature)


def log_entries(organisation_id: str, from_index: int, limit: int, services: Services) -> EntriesPage | Problem:
    """Return leaves from an index on, up to the limit and the size of one answer."""
    size = services.store.log_size(organisation_id)
    if not 0 <= from_index <= size:
        return _bad(f"`from_index` must be from 0 to {size}, where the log ends")
    entries = services.store.entries(organisation_id, from_index, limit)
    if _has_gaps(entries, from_index) or (not entries and from_index < size):
        return _damaged_log()
    views = [LogEntryView(index=entry.log_index, leaf_hash=_hash(entry), leaf=entry.leaf) for entry in entries]
    return EntriesPage(entries=views, next_index=from_index + len(views))


def prove_inclusion(
    organisation_id: str, target: int | str, size: int | None, services: Services
) -> InclusionProof | Problem:
    """Prove that a leaf, given by index or activity, is in the log of this size; the default size is the newest."""
    index = services.store.log_index_of(organisation_id, target) if isinstance(target, str) else target
    if index is None:
        return problem(ErrorCode.NOT_FOUND, "no such activity in the log of this organisation")
    newest = newest_head(organisation_id, services)
    size = newest.size if size is None else size
    if not 0 <= size <= newest.size:
        return _too_large("size", newest.size)
    if not 0 <= index < size:
        return _bad(f"a log of {size} entries has none at index {index}")
    try:
        hash_of_leaf = _hash_at(organisation_id, index, services)
        path = audit_path(organisation_id, index, size, services)
    except ValueError:
        return _damaged_log()
    head = newest if size == newest.size else _head_at(organisation_id, size, services)
    return InclusionProof(index=index, size=size, leaf_hash=hash_of_leaf, path=path, head=head)


def prove_consistency(
    organisation_id: str, first: int, second: int | None, services: Services
) -> ConsistencyProof | Problem:
    """Prove that the log of the first size is a prefix of that of the second; the default is the newest size."""
    newest = services.store.log_size(organisation_id)
    second = newest if second is None else second
    if not 0 <= second <= newest:
        return _too_large("to", newest)
    if not 0 <= first <= second:
        return _bad(f"`from` must be from 0 to {second}, the size it is compared with")
    try:
        path = hashes_of(merkle.consistency_path(first, second), organisation_id, services)
    except ValueError:
        return _damaged_log()
    return ConsistencyProof(first=first, second=second, path=path)


def _head_at(organisation_id: str, size: int, services: Services) -> Head | None:
    signature = services.store.head_at(organisation_id, size)
    return None if signature is None else head_from(signature)


def _hash_at(organisation_id: str, index: int, services: Services) -> str:
    """Return the hash of the stored leaf; raise ValueError if it is not the one in the tree."""
    (entry,) = services.store.entries(organisation_id, index, 1)
    (integrated,) = services.store.nodes(organisation_id, [(0, index)])
    if entry.log_index != index or _hash(entry) != integrated.hex():
        raise ValueError("the leaf was changed after it was integrated")
    return integrated.hex()


def _hash(entry: LogEntry) -> str:
    return leaf_hash(entry.leaf.encode()).hex()


def _has_gaps(entries: Sequence[LogEntry], from_index: int) -> bool:
    return any(entry.log_index != index for index, entry in enumerate(entries, from_index))


def _too_large(name: str, newest: int) -> Problem:
    return _bad(f"`{name}` must be from 0 to {newest}, the size of the log")


def _bad(message: str) -> Problem:
    return problem(ErrorCode.BAD_OPTION, message)


def _damaged_log() -> Problem:
    """Return the problem for stored data that is incomplete or not what was signed."""
    return problem(ErrorCode.TAMPERING_FOUND, "the stored log is not what was signed")
