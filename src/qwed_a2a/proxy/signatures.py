"""A2A 1.x, 8.4: the signature of a card, a JWS over its canonical form whose payload is not repeated."""

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
from qwed_a2a.proxy.card import canonical_card
from qwed_sdk.hook.call import Unusable

TYP = "JOSE"
MOST_KEYS = MOST_SIGNATURES = 20
_LARGEST = 256 << 10
_SMALLEST_RSA = 2_048
Proves = Callable[[bytes, bytes], None]
"""Takes a signature and what was signed; InvalidSignature where the one is not of the other."""


class Trusted(NamedTuple):
    """A key of which a card's signature may be."""

    alg: str
    proves: Proves


def signed(card: AgentCard, key: SigningKey, jku: str) -> AgentCard:
    """The card with our signature and no other."""
    protected, _, signature = key.sign(TYP, canonical_card(card), jku).split(".")
    made = AgentCard()
    made.CopyFrom(card)
    del made.signatures[:]
    made.signatures.append(AgentCardSignature(protected=protected, signature=signature))
    return made


def is_signed(card: AgentCard, keys: Mapping[str, Trusted]) -> bool:
    """Whether one of these keys, named by its kid, signed the card."""
    payload = base64.urlsafe_b64encode(canonical_card(card)).rstrip(b"=").decode()
    return any(_holds(each, payload, keys) for each in card.signatures[:MOST_SIGNATURES])


def _holds(given: AgentCardSignature, payload: str, keys: Mapping[str, Trusted]) -> bool:
    try:
        header = json.loads(_bytes(given.protected))
        # What its signer calls critical has to be understood, and nothing of it is.
        if not isinstance(header, dict) or "crit" in header:
            return False
        key = keys.get(str(header.get("kid")))
        if key is None or header.get("alg") != key.alg:
            return False
        key.proves(_bytes(given.signature), f"{given.protected}.{payload}".encode())
    except (InvalidSignature, ValueError, RecursionError):
        return False
    return True


def keys_in(file: Path) -> dict[str, Trusted]:
    """The keys of a JWKS by their kid; Unusable where it holds none that can be used."""
    try:
        data = file.read_bytes()
        found = json.loads(data) if len(data) <= _LARGEST else None
    except (OSError, ValueError, RecursionError) as error:
        raise Unusable(f"--upstream-jwks {file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    listed = found.get("keys") if isinstance(found, dict) else None
    keys = {each["kid"]: _key(each) for each in listed if _is_named(each)} if isinstance(listed, list) else {}
    usable = {kid: key for kid, key in keys.items() if key is not None}
    if not usable or len(usable) > MOST_KEYS:
        raise Unusable(f"--upstream-jwks {file} must hold 1 to {MOST_KEYS} public keys with a `kid`: {_KINDS}")
    return usable


def _is_named(jwk: Any) -> bool:
    return isinstance(jwk, dict) and isinstance(jwk.get("kid"), str) and isinstance(jwk.get("kty"), str)


def _key(jwk: Mapping[str, Any]) -> Trusted | None:
    """The key for the one algorithm it is for; None for any other kind."""
    kind = _KEYS.get((jwk["kty"], jwk.get("crv")))
    try:
        return None if kind is None or jwk.get("alg", kind[0]) != kind[0] else Trusted(kind[0], kind[1](jwk))
    except (KeyError, TypeError, ValueError):
        return None


def _es256(jwk: Mapping[str, Any]) -> Proves:
    public = ec.EllipticCurvePublicNumbers(_number(jwk["x"]), _number(jwk["y"]), ec.SECP256R1()).public_key()

    def proves(signature: bytes, said: bytes) -> None:
        if len(signature) != 64:
            raise InvalidSignature
        r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        public.verify(encode_dss_signature(r, s), said, ec.ECDSA(SHA256()))

    return proves


def _rs256(jwk: Mapping[str, Any]) -> Proves:
    public = rsa.RSAPublicNumbers(_number(jwk["e"]), _number(jwk["n"])).public_key()
    if public.key_size < _SMALLEST_RSA:
        raise ValueError("too short a key")
    return lambda signature, said: public.verify(signature, said, padding.PKCS1v15(), SHA256())


def _eddsa(jwk: Mapping[str, Any]) -> Proves:
    return ed25519.Ed25519PublicKey.from_public_bytes(_bytes(jwk["x"])).verify


_KEYS: Mapping[tuple[str, str | None], tuple[str, Callable[[Mapping[str, Any]], Proves]]] = {
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
