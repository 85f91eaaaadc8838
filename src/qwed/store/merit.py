"""Spec 8.2: what speaks for an agent at its present level. A new level, up or down, begins a new record."""

from typing import NamedTuple

from qwed.store.conduct import Mark


class Merit(NamedTuple):
    """Counted as it happens, as it stands on disk."""

    since: float = 0.0
    """When the level last changed; an agent that kept its first one has had it since it was registered."""
    actions: int = 0
    denied: int = 0
    """By us, or by the person who was asked."""
    attestations: int = 0

    def after(self, mark: Mark, attested: bool) -> "Merit":
        """The record once this decision counts."""
        if not mark.counts:
            return self
        return Merit(self.since, self.actions + 1, self.denied + mark.denies, self.attestations + attested)

    def settled(self, state: str) -> "Merit":
        """The record once a person, or time, has settled an action that was counted when it was asked."""
        if state == "approved":
            return self._replace(attestations=self.attestations + 1)
        if state != "rejected":
            return self
        # What was asked at another level may be rejected at this one: never more denials than actions.
        return self._replace(denied=min(self.denied + 1, self.actions))


NO_MERIT = Merit()
