"""Gate methods for the audit log, attestations and the signing key."""

from qwed.gate.base import GateBase
from qwed.gate.gate_result import Reply, unwrap
from qwed.kernel.audit import attestation_lookup
from qwed.kernel.operations import audit_operations as audit


class AuditMethods(GateBase):
    """Log of the first organisation and its attestations, in process (INTERFACES 4)."""

    def audit_head(self) -> Reply:
        """Return the newest signed head."""
        return self._call(audit.audit_head)

    def audit_entries(self, from_index: int = 0, limit: int = 100) -> Reply:
        """Return leaves from an index on, at most 1000; `next_index` is the start of the next page."""
        return self._call(audit.audit_entries, from_index=from_index, limit=limit)

    def audit_inclusion(
        self, index: int | None = None, *, activity_id: str | None = None, size: int | None = None
    ) -> Reply:
        """Return a proof that a leaf is in the log of this size; `size` defaults to the newest head."""
        return self._call(audit.audit_inclusion, index=index, activity_id=activity_id, size=size)

    def audit_consistency(self, from_size: int, to_size: int | None = None) -> Reply:
        """Return a proof that the log of the first size is a prefix of the log of the second."""
        return self._call(audit.audit_consistency, None, **{"from": from_size, "to": to_size})

    def verify_attestation(self, jwt: str) -> Reply:
        """Return whether a token is a valid attestation: `valid`, its `claims`, and the `error` if not."""
        return self._call(audit.verify_attestation, jwt=jwt)

    def get_attestation(self, attestation_id: str) -> Reply:
        """Return an attestation of this organisation, issued again from the log."""
        attestation = unwrap(
            attestation_lookup.find_own_attestation(attestation_id, self._owner.organisation_id, self.services)
        )
        return Reply(unwrap(attestation_lookup.attestation_view(attestation, self.services)))

    def revoke_attestation(self, attestation_id: str, reason: str) -> Reply:
        """Revoke an attestation."""
        return self._call(audit.revoke_attestation, {"attestation_id": attestation_id}, reason=reason)

    def rotate_signing_key(self, reason: str) -> Reply:
        """Rotate the signing key; old keys stay in the JWKS."""
        return self._call(audit.rotate_signing_key, reason=reason)
