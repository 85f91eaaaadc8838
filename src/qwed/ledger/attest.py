"""INTERFACES 4: attestations, ES256 JWTs that name the activity, the action and what was decided."""

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from qwed.ledger.leaf import Leaf
from qwed.words import canonical

TYPE = "qwed-attestation+jwt"
VERSION = "1.0"
KEY_FILE = "signing.key"
# Deterministic (RFC 6979): an attestation issued again from the log is the same token, byte for byte.
_ES256 = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
_encode = msgspec.json.Encoder().encode


class Signer:
    """Signs for one node with one key."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, ttl_seconds: int = 86_400) -> None:
        self._key = key
        self._ttl_seconds = ttl_seconds
        self.jwk = _public_jwk(key)
        self.kid = self.jwk["kid"]
        # The node is its key: nobody can claim an issuer without holding what it signs with.
        self.issuer = f"did:qwed:node:{hashlib.sha256(self.kid.encode()).hexdigest()[:32]}"
        self._header = _b64(_encode({"alg": "ES256", "kid": self.kid, "typ": TYPE}))

    def attest(self, leaf: Leaf, log_index: int) -> str:
        """The attestation of one activity, from its leaf and place in the log alone."""
        signing_input = self._header + b"." + _b64(_encode(self._claims(leaf, log_index)))
        r, s = decode_dss_signature(self._key.sign(signing_input, _ES256))
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
        return (signing_input + b"." + _b64(signature)).decode()

    def _claims(self, leaf: Leaf, log_index: int) -> dict[str, Any]:
        issued = leaf.time_ms // 1000
        verified = leaf.status in ("VERIFIED", "CORRECTED")
        return {
            "iss": self.issuer,
            "sub": leaf.sub,
            "iat": issued,
            "exp": issued + self._ttl_seconds,
            "jti": leaf.attestation_id,
            "qwed": {
                "version": VERSION,
                "result": {
                    "status": leaf.status,
                    "verified": verified,
                    "engine": leaf.engine,
                    "confidence": 1 if verified else 0,
                },
                "decision": leaf.decision,
                "risk_level": leaf.risk_level,
                "agent_id": leaf.agent_id,
                # The action that was asked about, whether it was permitted at once or by a person later.
                "activity_id": leaf.about or leaf.activity_id,
                "policy_hash": leaf.policy_hash,
                "log": {"index": log_index},
            },
        }


def _public_jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    point = {name: _b64(value.to_bytes(32, "big")).decode() for name, value in (("x", numbers.x), ("y", numbers.y))}
    members = {"crv": "P-256", "kty": "EC", **point}
    thumbprint = _b64(hashlib.sha256(canonical(members)).digest()).decode()
    return {**members, "alg": "ES256", "use": "sig", "kid": thumbprint}


def _b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def fresh_key() -> ec.EllipticCurvePrivateKey:
    """A new P-256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_from(file: Path) -> ec.EllipticCurvePrivateKey:
    """The key in `file`, made with mode 0600 on the first start and kept ever after."""
    try:
        return _load(file)
    except FileNotFoundError:
        return _create(file)


def _load(file: Path) -> ec.EllipticCurvePrivateKey:
    mode = file.stat().st_mode & 0o777
    if mode & 0o077:
        raise PermissionError(f"{file} is readable by others (mode {mode:o}): run chmod 600 on it")
    key = serialization.load_pem_private_key(file.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError(f"{file} does not hold a P-256 private key")
    return key


def _create(file: Path) -> ec.EllipticCurvePrivateKey:
    key = fresh_key()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Written whole beside its place and then moved there: a crash leaves a key or none, never half of one.
    unfinished = file.with_suffix(".new")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(pem)
        out.flush()
        os.fsync(out.fileno())
    unfinished.rename(file)
    return key
