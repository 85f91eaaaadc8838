"""INTERFACES 4: the log as it is shown and proven. Whoever asks need trust nothing but the keys that sign the heads."""

from collections.abc import Sequence

from qwed.kernel.answer import Problem, problem
from qwed.kernel.paging import refuse_limit
from qwed.kernel.proving.proof import audit_path, hashes_of
from qwed.kernel.services import Services
from qwed.kernel.views.agents import View
from qwed.ledger import merkle
from qwed.ledger.sequencer import Head, head_from
from qwed.ledger.verifier import EMPTY_ROOT, leaf_hash
from qwed.store.protocol import LogEntry
from qwed.words import ErrorCode


class LogEntryView(View, frozen=True, kw_only=True):
    """One leaf: its place, what is hashed, and the hash."""

    index: int
    leaf_hash: str
    leaf: str


class EntriesPage(View, frozen=True, kw_only=True):
    """Leaves in order. `next_index` is where the next page begins; at the end of the log, where it will grow."""

    entries: list[LogEntryView]
    next_index: int


class InclusionProof(View, frozen=True, kw_only=True):
    """The audit path of a leaf in the log of this size; `head` is null where no head of that size was signed."""

    index: int
    size: int
    leaf_hash: str
    path: list[str]
    head: Head | None


class ConsistencyProof(View, frozen=True, kw_only=True, rename={"first": "from", "second": "to"}):
    """The path which proves that the log of the first size is the beginning of that of the second."""

    first: int
    second: int
    path: list[str]


def newest_head(organisation_id: str, services: Services) -> Head:
    """How the log stands, signed; an empty one is signed when it is asked for."""
    signature = services.store.latest_head(organisation_id)
    return services.sequencer.sign(organisation_id, 0, EMPTY_ROOT) if signature is None else head_from(signature)


def log_entries(organisation_id: str, from_index: int, limit: int, services: Services) -> EntriesPage | Problem:
    """Leaves from an index on, as many as were asked for and fit into one answer."""
    wrong = refuse_limit(limit)
    if wrong is not None:
        return wrong
    size = services.store.log_size(organisation_id)
    if not 0 <= from_index <= size:
        return _bad(f"`from_index` must be from 0 to {size}, where the log ends")
    kept = services.store.entries(organisation_id, from_index, limit)
    if _has_gaps(kept, from_index) or (not kept and from_index < size):
        return _damaged()
    shown = [LogEntryView(index=each.log_index, leaf_hash=_hash(each), leaf=each.leaf) for each in kept]
    return EntriesPage(entries=shown, next_index=from_index + len(shown))


def prove_inclusion(
    organisation_id: str, wanted: int | str, size: int | None, services: Services
) -> InclusionProof | Problem:
    """That a leaf, by its index or its activity, stands in the log of this size; of the newest head, where none is."""
    index = services.store.log_index_of(organisation_id, wanted) if isinstance(wanted, str) else wanted
    if index is None:
        return problem(ErrorCode.NOT_FOUND, "no such activity in the log of this organisation")
    newest = newest_head(organisation_id, services)
    size = newest.size if size is None else size
    if not 0 <= size <= newest.size:
        return _too_large("size", newest.size)
    if not 0 <= index < size:
        return _bad(f"a log of {size} entries has none at index {index}")
    try:
        hashed = _hash_at(organisation_id, index, services)
        path = audit_path(organisation_id, index, size, services)
    except ValueError:
        return _damaged()
    head = newest if size == newest.size else _head_at(organisation_id, size, services)
    return InclusionProof(index=index, size=size, leaf_hash=hashed, path=path, head=head)


def prove_consistency(
    organisation_id: str, first: int, second: int | None, services: Services
) -> ConsistencyProof | Problem:
    """That the log of the first size is the beginning of that of the second; of the newest head, where none is."""
    newest = services.store.log_size(organisation_id)
    second = newest if second is None else second
    if not 0 <= second <= newest:
        return _too_large("to", newest)
    if not 0 <= first <= second:
        return _bad(f"`from` must be from 0 to {second}, the size it is compared with")
    try:
        path = hashes_of(merkle.consistency(first, second), organisation_id, services)
    except ValueError:
        return _damaged()
    return ConsistencyProof(first=first, second=second, path=path)


def _head_at(organisation_id: str, size: int, services: Services) -> Head | None:
    signature = services.store.head_at(organisation_id, size)
    return None if signature is None else head_from(signature)


def _hash_at(organisation_id: str, index: int, services: Services) -> str:
    """The hash of the leaf that is kept there; ValueError where it is not the one that the tree was made of."""
    (entry,) = services.store.entries(organisation_id, index, 1)
    (integrated,) = services.store.nodes(organisation_id, [(0, index)])
    if entry.log_index != index or _hash(entry) != integrated.hex():
        raise ValueError("the leaf was changed after it was integrated")
    return integrated.hex()


def _hash(entry: LogEntry) -> str:
    return leaf_hash(entry.leaf.encode()).hex()


def _has_gaps(kept: Sequence[LogEntry], from_index: int) -> bool:
    return any(each.log_index != place for place, each in enumerate(kept, from_index))


def _too_large(name: str, newest: int) -> Problem:
    return _bad(f"`{name}` must be from 0 to {newest}, the size of the log")


def _bad(message: str) -> Problem:
    return problem(ErrorCode.BAD_OPTION, message)


def _damaged() -> Problem:
    """What is stored is not what was signed, or not all of it is there."""
    return problem(ErrorCode.TAMPERING_FOUND, "what is stored of the log is not what was signed")
