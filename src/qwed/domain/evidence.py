"""Evidence for a higher trust level (spec 8.2). A new level, up or down, starts new evidence."""

import msgspec
from msgspec.structs import replace

from qwed.domain.behaviour import BehaviourFlag


class TrustEvidence(msgspec.Struct, frozen=True, gc=False):
    """Counts since the last change of the trust level, as stored."""

    level_since: float = 0.0
    """Time of the last change of the level; 0 for an agent that still has its first one."""
    actions: int = 0
    denied: int = 0
    """Denials by the server or by a person."""
    attestations: int = 0

    def after(self, flag: BehaviourFlag, attested: bool) -> "TrustEvidence":
        """Return the evidence after this decision."""
        if not flag.is_action:
            return self
        return TrustEvidence(
            self.level_since, self.actions + 1, self.denied + flag.is_denial, self.attestations + attested
        )

    def after_resolution(self, state: str) -> "TrustEvidence":
        """Return the evidence once a pending action, counted when it was requested, is resolved."""
        if state == "approved":
            return replace(self, attestations=self.attestations + 1)
        if state != "rejected":
            return self
        # An action requested at another level may be rejected at this one: never more denials than actions.
        return replace(self, denied=min(self.denied + 1, self.actions))


NO_EVIDENCE = TrustEvidence()
