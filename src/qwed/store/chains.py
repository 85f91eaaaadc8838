"""Where each chain of attestations ends."""

from threading import RLock

from qwed.store.archive import Archive
from qwed.store.protocol import Link, Settlement
from qwed.words import ErrorCode

REMEMBERED_CHAINS = 10_000

End = tuple[int, str | None, int]
"""How many attestations a chain has, the last of them, and which write carries that."""


class ChainTable(Archive):
    """The part of a store that links attestations."""

    _lock: RLock
    _chains: dict[tuple[str, str], End]
    """As last submitted; what is not here is as it stands on disk."""

    def chain(self, organisation_id: str, chain_id: str) -> tuple[int, str | None]:
        """How many attestations a chain has, and the last of them."""
        with self._lock:
            known = self._chains.get((organisation_id, chain_id))
            if known is not None:
                return known[:2]
            statement = "SELECT links, last FROM chains WHERE organisation_id = ? AND chain_id = ?"
            row = self._one(statement, (organisation_id, chain_id))
            return (0, None) if row is None else (row[0], row[1])

    def _refuse_link(self, settlement: Settlement) -> ErrorCode | None:
        """Another attestation was put into the chain meanwhile: then this one is the next."""
        link = settlement.link
        if link is None or self.chain(settlement.agent.organisation_id, link.chain_id) == (link.links, link.previous):
            return None
        return ErrorCode.CONFLICT

    def _put_link(self, organisation_id: str, link: Link, submitted: int, durable: int) -> None:
        """Keep the end of a chain in mind at least until the table shows it."""
        if len(self._chains) >= REMEMBERED_CHAINS:
            self._chains = {place: end for place, end in self._chains.items() if end[-1] > durable}
        self._chains[organisation_id, link.chain_id] = (link.links + 1, link.attestation_id, submitted)
