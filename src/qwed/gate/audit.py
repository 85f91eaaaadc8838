"""Gate methods for the audit log, attestations and the signing key."""

from qwed.gate.base import GateBase
from qwed.gate.gate_result import GateError, Reply, unwrap
from qwed.kernel.audit import attestation_lookup, audit_log
from qwed.kernel.audit.attestation_check import check_attestation, read_jwt
from qwed.kernel.audit.signing_keys import rotate_key, signing_keys_view
from qwed.kernel.body_parsing import read_fields
from qwed.model import ErrorCode


class AuditMethods(GateBase):
    """Log of the first organisation and its attestations, in process (INTERFACES 4)."""

    def audit_head(self) -> Reply:
        """Return the newest signed head."""
        return Reply(audit_log.newest_head(self._owner.organisation_id, self.services))

    def audit_entries(self, from_index: int = 0, limit: int = 100) -> Reply:
        """Return leaves from an index on, at most 1000; `next_index` is the start of the next page."""
        return Reply(unwrap(audit_log.log_entries(self._owner.organisation_id, from_index, limit, self.services)))

    def audit_inclusion(
        self, index: int | None = None, *, activity_id: str | None = None, size: int | None = None
    ) -> Reply:
        """Return a proof that a leaf is in the log of this size; `size` defaults to the newest head."""
        leaf = index if activity_id is None else activity_id
        if leaf is None or None not in (index, activity_id):
            raise GateError(ErrorCode.BAD_OPTION.code, "give `index` or `activity_id`, one of the two")
        return Reply(unwrap(audit_log.prove_inclusion(self._owner.organisation_id, leaf, size, self.services)))

    def audit_consistency(self, from_size: int, to_size: int | None = None) -> Reply:
        """Return a proof that the log of the first size is a prefix of the log of the second."""
        return Reply(
            unwrap(audit_log.prove_consistency(self._owner.organisation_id, from_size, to_size, self.services))
        )

    def verify_attestation(self, jwt: str) -> Reply:
        """Return whether a token is a valid attestation: `valid`, its `claims`, and the `error` if not."""
        return Reply(check_attestation(unwrap(read_jwt({"jwt": jwt})), self.services))

    def get_attestation(self, attestation_id: str) -> Reply:
        """Return an attestation of this organisation, issued again from the log."""
        attestation = unwrap(
            attestation_lookup.find_own_attestation(attestation_id, self._owner.organisation_id, self.services)
        )
        return Reply(unwrap(attestation_lookup.attestation_view(attestation, self.services)))

    def revoke_attestation(self, attestation_id: str, reason: str) -> Reply:
        """Revoke an attestation."""
        fields = unwrap(read_fields({"reason": reason}, ("reason",)))
        revocation = attestation_lookup.revoke(attestation_id, fields["reason"], self._owner, self.services)
        return Reply(self._act(revocation))

    def rotate_signing_key(self, reason: str) -> Reply:
        """Rotate the signing key; old keys stay in the JWKS."""
        fields = unwrap(read_fields({"reason": reason}, ("reason",)))
        self._act(rotate_key(fields["reason"], self._owner, self.services))
        return Reply(signing_keys_view(self.services))
