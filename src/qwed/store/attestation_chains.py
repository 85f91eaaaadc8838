"""Ends of attestation chains."""

from threading import RLock

from qwed.model import ErrorCode
from qwed.store.entity_cache import ReadOne
from qwed.store.protocol import ChainLink, CommitRequest
from qwed.store.queries import StoreQueries

MAX_CACHED_CHAINS = 10_000

ChainEnd = tuple[int, str | None, int]
"""Length of a chain, its last attestation, and the number of the write that carries it."""
SELECT_CHAIN = "SELECT length, last_attestation_id FROM attestation_chains WHERE organisation_id = ? AND chain_id = ?"


class ChainEnds:
    """Ends of chains as last submitted; others are read from the table."""

    def __init__(self, one: ReadOne) -> None:
        self._one = one
        self._ends: dict[tuple[str, str], ChainEnd] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def end(self, organisation_id: str, chain_id: str) -> tuple[int, str | None]:
        """Return the length of a chain and its last attestation."""
        end = self._ends.get((organisation_id, chain_id))
        if end is not None:
            return end[:2]
        row = self._one(SELECT_CHAIN, (organisation_id, chain_id))
        return (0, None) if row is None else (row[0], row[1])

    def refuses(self, request: CommitRequest) -> ErrorCode | None:
        """Return CONFLICT if another attestation was appended to the chain meanwhile."""
        link = request.link
        if link is None or self.end(request.agent.organisation_id, link.chain_id) == (link.links, link.previous):
            return None
        return ErrorCode.CONFLICT

    def put(self, organisation_id: str, link: ChainLink, submitted: int, durable: int) -> None:
        """Cache the end of a chain at least until the table has it."""
        if len(self._ends) >= MAX_CACHED_CHAINS:
            self._ends = {key: end for key, end in self._ends.items() if end[-1] > durable}
        self._ends[organisation_id, link.chain_id] = (link.links + 1, link.attestation_id, submitted)

    def drop(self, organisation_id: str, chain_id: str) -> None:
        """Drop the cached end of a chain whose write failed."""
        self._ends.pop((organisation_id, chain_id), None)

    def clear(self) -> None:
        """Drop everything; the table is read again."""
        self._ends.clear()


class ChainTable(StoreQueries):
    """Store methods for attestation chains."""

    _lock: RLock
    _chains: ChainEnds

    def chain(self, organisation_id: str, chain_id: str) -> tuple[int, str | None]:
        """Return the length of a chain and its last attestation."""
        with self._lock:
            return self._chains.end(organisation_id, chain_id)
