"""INTERFACES 6: the signed word on a message, and whether one may be believed, found out offline."""

import hashlib
import time
from collections.abc import Collection, Mapping
from typing import Any

from qwed.ledger.keyring import Keyring, SigningKey, fresh_key
from qwed.ledger.tokens import MESSAGE, UNREAD, check_message
from qwed.ledger.verifier import public_keys
from qwed.words import canonical
from qwed_a2a.verdict import EngineName, VerdictStatus

TYPE, VERSION = MESSAGE, "1.0"
TTL_SECONDS = 86_400


def own_keyring() -> Keyring:
    """A key of the process's own, which dies with it."""
    key = SigningKey(fresh_key())
    name = hashlib.sha256(key.kid.encode()).hexdigest()[:32]
    return Keyring(f"did:qwed:a2a:{name}", key, (), lambda _issuer, _jwks, _private: None)


def sign(
    signer: Keyring,
    *,
    digest: str,
    trace_id: str,
    at: float,
    status: VerdictStatus,
    engine: EngineName,
    sender: str,
    receiver: str,
    activity_id: str | None = None,
    ttl_seconds: int = TTL_SECONDS,
) -> str:
    """The attestation of one verdict: the same words at the same time, signed by the same key, are the same bytes.

    `activity_id` is its leaf, where a server keeps a log.
    """
    issued = max(0, int(at))
    kept = {} if activity_id is None else {"activity_id": activity_id}
    claims = {
        "iss": signer.issuer,
        "sub": digest if digest == UNREAD else f"sha256:{digest}",
        "iat": issued,
        "exp": issued + ttl_seconds,
        "jti": trace_id,
        "qwed_a2a": {
            "version": VERSION,
            "verdict": str(status),
            "engine": str(engine),
            "sender": sender,
            "receiver": receiver,
            **kept,
        },
    }
    return signer.current.sign(TYPE, canonical(claims))


def verify_attestation(
    jwt: str,
    jwks: Mapping[str, Any],
    trusted_issuers: Collection[str] | None = None,
    now: float | None = None,
) -> tuple[bool, dict[str, Any]]:
    """Whether the attestation of a message is valid at `now`, and its claims; or else `{"error": {code, message}}`.

    A JWKS that cannot be used raises ValueError: nothing can be said about the attestation then.
    """
    keys, moment = public_keys(jwks), time.time() if now is None else now
    issuers = (trusted_issuers,) if isinstance(trusted_issuers, str) else trusted_issuers
    found = check_message(jwt, keys, now=moment, trusted_issuers=issuers)
    if found.valid and found.claims is not None:
        return True, found.claims
    return False, {"error": {"code": found.code, "message": found.message}}
