"""Signatures of agent cards: detached JWS over the canonical card (A2A 1.x, 8.4)."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from a2a.types import AgentCard, AgentCardSignature
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from qwed.ledger.keyring import SigningKey
from qwed_a2a.proxy.agent_card import canonical_card
from qwed_sdk.errors import UsageError

TYP = "JOSE"
MAX_KEYS = MAX_SIGNATURES = 20
_MAX_JWKS_BYTES = 256 << 10
_MIN_RSA_BITS = 2_048
_ALGORITHMS = {("EC", "P-256"): "ES256", ("RSA", None): "RS256", ("OKP", "Ed25519"): "EdDSA"}
"""Algorithm of each kind of key, by type and curve."""
_PUBLIC_MEMBERS = frozenset({"kty", "crv", "x", "y", "n", "e"})


def sign_card(card: AgentCard, key: SigningKey, jku: str) -> AgentCard:
    """Return the card with our signature only."""
    protected, _, signature = key.sign(TYP, canonical_card(card), jku).split(".")
    signed = AgentCard()
    signed.CopyFrom(card)
    del signed.signatures[:]
    signed.signatures.append(AgentCardSignature(protected=protected, signature=signature))
    return signed


def is_signed_by(card: AgentCard, keys: Mapping[str, PyJWK]) -> bool:
    """Return True if one of these keys, named by its kid, signed the card."""
    payload = base64.urlsafe_b64encode(canonical_card(card)).rstrip(b"=").decode()
    return any(_is_valid_signature(signature, payload, keys) for signature in card.signatures[:MAX_SIGNATURES])


def _is_valid_signature(signature: AgentCardSignature, payload: str, keys: Mapping[str, PyJWK]) -> bool:
    try:
        header = json.loads(_bytes(signature.protected))
        # RFC 7515: a critical header must be understood, and none is supported.
        if not isinstance(header, dict) or "crit" in header:
            return False
        key = keys.get(str(header.get("kid")))
        if key is None or header.get("alg") != key.algorithm_name:
            return False
        signed = f"{signature.protected}.{payload}".encode()
        return key.Algorithm.verify(signed, key.key, _bytes(signature.signature))
    except (ValueError, RecursionError):
        return False


def load_trusted_keys(file: Path) -> dict[str, PyJWK]:
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
        kinds = ", ".join(_ALGORITHMS.values())
        raise UsageError(f"--upstream-jwks {file} must hold 1 to {MAX_KEYS} public keys with a `kid`: {kinds}")
    return usable


def _is_named(jwk: Any) -> bool:
    return isinstance(jwk, dict) and isinstance(jwk.get("kid"), str) and isinstance(jwk.get("kty"), str)


def _parse_key(jwk: Mapping[str, Any]) -> PyJWK | None:
    """Return the key for its algorithm, or None for an unsupported kind."""
    try:
        alg = _ALGORITHMS[jwk["kty"], jwk.get("crv")]
        key = PyJWK({name: jwk[name] for name in jwk if name in _PUBLIC_MEMBERS}, alg)
    except (KeyError, TypeError, ValueError, PyJWTError):
        return None
    if jwk.get("alg", alg) != alg:
        return None
    return None if alg == "RS256" and key.key.key_size < _MIN_RSA_BITS else key


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
