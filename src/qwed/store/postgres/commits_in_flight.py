"""Commits of this process that are queued or being written: what they will change once they are durable."""

from collections.abc import Iterable

from qwed.domain.change_parts import ApprovalResolved
from qwed.domain.snapshot import ChainEnd
from qwed.domain.write_set import Reservation, WriteSet
from qwed.store.reservations import Reservations

ChainKey = tuple[str, str]


class CommitsInFlight:
    """Ends of chains, approvals being resolved, and steps that a read of the counters may already contain.

    The store's lock is held around every call.
    """

    def __init__(self, reservations: Reservations) -> None:
        self._reservations = reservations
        self._chains: dict[ChainKey, ChainEnd] = {}
        self._resolving: set[str] = set()
        self._committing: dict[str, list[tuple[int, Reservation]]] = {}

    def add(self, write_set: WriteSet) -> None:
        """Record a write set that was queued."""
        link = None if write_set.effects is None else write_set.effects.link
        if link is not None:
            end = ChainEnd(link.links + 1, link.attestation_id)
            self._chains[write_set.organisation_id, link.chain_id] = end
        self._resolving.update(_resolved_approvals(write_set))

    def remove(self, write_set: WriteSet) -> None:
        """Forget a write set that is durable or refused."""
        effects = write_set.effects
        if effects is not None and effects.link is not None:
            key = (write_set.organisation_id, effects.link.chain_id)
            end = self._chains.get(key)
            # A refused one takes those behind it along: they are conflicts as well.
            if end is not None and end.links <= effects.link.links + 1:
                del self._chains[key]
        self._resolving.difference_update(_resolved_approvals(write_set))

    def chain_end(self, organisation_id: str, chain_id: str) -> ChainEnd | None:
        """Return the end that queued commits give a chain, or None."""
        return self._chains.get((organisation_id, chain_id))

    def is_resolving(self, approval_id: str) -> bool:
        """Return True if a change that resolves the approval is queued."""
        return approval_id in self._resolving

    def mark_committing(self, agent_id: str, version: int, reservation: Reservation) -> None:
        """Record that a step is being committed with this version of the counters: a read of them contains it."""
        self._committing.setdefault(agent_id, []).append((version, reservation))

    def release_committed(self, agent_id: str, version: int) -> None:
        """Release the steps that counters of this version contain, so that their cost does not count twice."""
        for committing, reservation in self._committing.get(agent_id, ()):
            if committing <= version:
                self._reservations.release_step(reservation)

    def clear_committing(self) -> None:
        """Forget the steps that were being committed."""
        self._committing.clear()


def _resolved_approvals(write_set: WriteSet) -> Iterable[str]:
    return (part.approval_id for part in write_set.parts if isinstance(part, ApprovalResolved))
