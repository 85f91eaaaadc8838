"""The verbs of a Gate that are about attestations after they were issued."""

from qwed.gate.holder import Holder
from qwed.gate.reply import Reply, told
from qwed.kernel.bodies import read_fields
from qwed.kernel.proving import attested
from qwed.kernel.proving.attestations import check, read_jwt
from qwed.kernel.proving.signing_keys import rotate_key, signing_keys_view


class AttestationVerbs(Holder):
    """INTERFACES 4, in process."""

    def verify_attestation(self, jwt: str) -> Reply:
        """Whether a token is one of ours and to be relied on now: `valid`, its `claims`, and the `error` where not."""
        return Reply(check(told(read_jwt({"jwt": jwt})), self.services))

    def get_attestation(self, attestation_id: str) -> Reply:
        """One attestation of this organisation, issued again from the log."""
        found = told(attested.find_own(attestation_id, self._owner.organisation_id, self.services))
        return Reply(told(attested.attestation_view(found, self.services)))

    def revoke_attestation(self, attestation_id: str, reason: str) -> Reply:
        """The attestation, which nobody should rely on from now on."""
        said = told(read_fields({"reason": reason}, ("reason",)))
        walk = attested.revoke(attestation_id, said["reason"], self._owner, self.services)
        return Reply(self._act(walk))

    def rotate_signing_key(self, reason: str) -> Reply:
        """Sign with another key from now on; the old ones stay in the JWKS."""
        said = told(read_fields({"reason": reason}, ("reason",)))
        self._act(rotate_key(said["reason"], self._owner, self.services))
        return Reply(signing_keys_view(self.services))
