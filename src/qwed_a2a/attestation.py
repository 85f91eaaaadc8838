"""Signed attestations of message verdicts, and their offline verification (INTERFACES 6)."""

import hashlib
import time
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from qwed.kernel.a2a.message import EngineName, MessageVerdict
from qwed.ledger.attestation_verifier import MESSAGE, UNREAD, check_message
from qwed.ledger.keyring import Keyring, SigningKey, fresh_key
from qwed.ledger.verifier import public_keys
from qwed.model import canonical
from qwed_a2a.verdict import VerdictStatus, VerificationVerdict

if TYPE_CHECKING:
    from qwed_a2a.message import AgentMessage

TYPE, VERSION = MESSAGE, "1.0"
TTL_SECONDS = 86_400


def ephemeral_keyring() -> Keyring:
    """Return a keyring that exists only in this process."""
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
    """Return the attestation of one verdict. The same verdict, time and key give the same bytes.

    `activity_id` is its leaf in the log of a server.
    """
    issued = max(0, int(at))
    leaf = {} if activity_id is None else {"activity_id": activity_id}
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
            **leaf,
        },
    }
    return signer.current.sign(TYPE, canonical(claims))


def seal(
    signer: Keyring, message: "AgentMessage", verdict: MessageVerdict, *, trace_id: str, at: datetime, **claims: Any
) -> VerificationVerdict:
    """Return the signed verdict on a message; `claims` are the further arguments of `sign`."""
    status = VerdictStatus.FORWARDED if verdict.forwarded else VerdictStatus.BLOCKED
    attestation = sign(
        signer,
        trace_id=trace_id,
        at=at.timestamp(),
        status=status,
        engine=verdict.engine,
        sender=message.sender_agent_id,
        receiver=message.receiver_agent_id,
        **claims,
    )
    return VerificationVerdict(
        status=status,
        reason=verdict.reason,
        audit_trace_id=trace_id,
        attestation_jwt=attestation,
        engine_used=verdict.engine,
        verified_at=at,
        details=verdict.details,
    )


def verify_attestation(
    jwt: str,
    jwks: Mapping[str, Any],
    trusted_issuers: Collection[str] | None = None,
    now: float | None = None,
) -> tuple[bool, dict[str, Any]]:
    """Return True and the claims if the attestation is valid at `now`, else False and `{"error": {code, message}}`.

    Raises ValueError if the JWKS cannot be used, because then nothing is known about the attestation.
    """
    keys, at = public_keys(jwks), time.time() if now is None else now
    issuers = (trusted_issuers,) if isinstance(trusted_issuers, str) else trusted_issuers
    check = check_message(jwt, keys, now=at, trusted_issuers=issuers)
    if check.valid and check.claims is not None:
        return True, check.claims
    return False, {"error": {"code": check.code, "message": check.message}}
