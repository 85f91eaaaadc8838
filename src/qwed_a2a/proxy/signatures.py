"""Signatures of agent cards: detached JWS over the canonical card (A2A 1.x, 8.4)."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from a2a.types import AgentCard, AgentCardSignature
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from qwed.ledger.keyring import SigningKey
from qwed_a2a.proxy.agent_card import canonical_card
from qwed_sdk.errors import UsageError

TYP = "JOSE"
MAX_KEYS = MAX_SIGNATURES = 20
_MAX_JWKS_BYTES = 256 << 10
_MIN_RSA_BITS = 2_048
VerifySignature = Callable[[bytes, bytes], None]
"""Verifies a signature of a message; raises InvalidSignature."""


class TrustedKey(NamedTuple):
    """Key that may have signed a card."""

    alg: str
    verify: VerifySignature


def sign_card(card: AgentCard, key: SigningKey, jku: str) -> AgentCard:
    """Return the card with our signature only."""
    protected, _, signature = key.sign(TYP, canonical_card(card), jku).split(".")
    signed = AgentCard()
    signed.CopyFrom(card)
    del signed.signatures[:]
    signed.signatures.append(AgentCardSignature(protected=protected, signature=signature))
    return signed


def is_signed_by(card: AgentCard, keys: Mapping[str, TrustedKey]) -> bool:
    """Return True if one of these keys, named by its kid, signed the card."""
    payload = base64.urlsafe_b64encode(canonical_card(card)).rstrip(b"=").decode()
    return any(_is_valid_signature(signature, payload, keys) for signature in card.signatures[:MAX_SIGNATURES])


def _is_valid_signature(signature: AgentCardSignature, payload: str, keys: Mapping[str, TrustedKey]) -> bool:
    try:
        header = json.loads(_bytes(signature.protected))
        # RFC 7515: a critical header must be understood, and none is supported.
        if not isinstance(header, dict) or "crit" in header:
            return False
        key = keys.get(str(header.get("kid")))
        if key is None or header.get("alg") != key.alg:
            return False
        key.verify(_bytes(signature.signature), f"{signature.protected}.{payload}".encode())
    except (InvalidSignature, ValueError, RecursionError):
        return False
    return True


def load_trusted_keys(file: Path) -> dict[str, TrustedKey]:
    """Return the keys of a JWKS file by their kid; raise UsageError if it has no usable key."""
    try:
        data = file.read_bytes()
        value = json.loads(data) if len(data) <= _MAX_JWKS_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"--upstream-jwks {file} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    listed = value.get("keys") if isinstance(value, dict) else None
    keys = {jwk["kid"]: _parse_key(jwk) for jwk in listed if _is_named(jwk)} if isinstance(listed, list) else {}
    usable = {kid: key for kid, key in keys.items() if key is not None}
    if not usable or len(usable) > MAX_KEYS:
        raise UsageError(f"--upstream-jwks {file} must hold 1 to {MAX_KEYS} public keys with a `kid`: {_KINDS}")
    return usable


def _is_named(jwk: Any) -> bool:
    return isinstance(jwk, dict) and isinstance(jwk.get("kid"), str) and isinstance(jwk.get("kty"), str)


def _parse_key(jwk: Mapping[str, Any]) -> TrustedKey | None:
    """Return the key for its algorithm, or None for an unsupported kind."""
    kind = _KEYS.get((jwk["kty"], jwk.get("crv")))
    try:
        return None if kind is None or jwk.get("alg", kind[0]) != kind[0] else TrustedKey(kind[0], kind[1](jwk))
    except (KeyError, TypeError, ValueError):
        return None


def _es256(jwk: Mapping[str, Any]) -> VerifySignature:
    public = ec.EllipticCurvePublicNumbers(_number(jwk["x"]), _number(jwk["y"]), ec.SECP256R1()).public_key()

    def verify(signature: bytes, message: bytes) -> None:
        if len(signature) != 64:
            raise InvalidSignature
        r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        public.verify(encode_dss_signature(r, s), message, ec.ECDSA(SHA256()))

    return verify


def _rs256(jwk: Mapping[str, Any]) -> VerifySignature:
    public = rsa.RSAPublicNumbers(_number(jwk["e"]), _number(jwk["n"])).public_key()
    if public.key_size < _MIN_RSA_BITS:
        raise ValueError("too short a key")
    return lambda signature, message: public.verify(signature, message, padding.PKCS1v15(), SHA256())


def _eddsa(jwk: Mapping[str, Any]) -> VerifySignature:
    return ed25519.Ed25519PublicKey.from_public_bytes(_bytes(jwk["x"])).verify


_KEYS: Mapping[tuple[str, str | None], tuple[str, Callable[[Mapping[str, Any]], VerifySignature]]] = {
    ("EC", "P-256"): ("ES256", _es256),
    ("RSA", None): ("RS256", _rs256),
    ("OKP", "Ed25519"): ("EdDSA", _eddsa),
}
_KINDS = ", ".join(alg for alg, _ in _KEYS.values())


def _number(text: str) -> int:
    return int.from_bytes(_bytes(text), "big")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
