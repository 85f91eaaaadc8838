"""Where each chain of attestations ends."""

from threading import RLock

from qwed.store.archive import Archive
from qwed.store.known import ReadOne
from qwed.store.protocol import Link, Settlement
from qwed.words import ErrorCode

REMEMBERED_CHAINS = 10_000

End = tuple[int, str | None, int]
"""How many attestations a chain has, the last of them, and which write carries that."""
SELECT_CHAIN = "SELECT links, last FROM chains WHERE organisation_id = ? AND chain_id = ?"


class Chains:
    """The ends of chains, as last submitted; what is not in mind is as it stands on disk."""

    def __init__(self, one: ReadOne) -> None:
        self._one = one
        self._ends: dict[tuple[str, str], End] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def end(self, organisation_id: str, chain_id: str) -> tuple[int, str | None]:
        """How many attestations a chain has, and the last of them."""
        known = self._ends.get((organisation_id, chain_id))
        if known is not None:
            return known[:2]
        row = self._one(SELECT_CHAIN, (organisation_id, chain_id))
        return (0, None) if row is None else (row[0], row[1])

    def refuses(self, settlement: Settlement) -> ErrorCode | None:
        """Another attestation was put into the chain meanwhile: then this one is the next."""
        link = settlement.link
        if link is None or self.end(settlement.agent.organisation_id, link.chain_id) == (link.links, link.previous):
            return None
        return ErrorCode.CONFLICT

    def put(self, organisation_id: str, link: Link, submitted: int, durable: int) -> None:
        """Keep the end of a chain in mind at least until the table shows it."""
        if len(self._ends) >= REMEMBERED_CHAINS:
            self._ends = {place: end for place, end in self._ends.items() if end[-1] > durable}
        self._ends[organisation_id, link.chain_id] = (link.links + 1, link.attestation_id, submitted)

    def drop(self, organisation_id: str, chain_id: str) -> None:
        """What was submitted of this one does not stand."""
        self._ends.pop((organisation_id, chain_id), None)

    def forget(self) -> None:
        """Believe the tables again."""
        self._ends.clear()


class ChainTable(Archive):
    """The part of a store that links attestations."""

    _lock: RLock
    _chains: Chains

    def chain(self, organisation_id: str, chain_id: str) -> tuple[int, str | None]:
        """How many attestations a chain has, and the last of them."""
        with self._lock:
            return self._chains.end(organisation_id, chain_id)
