"""API keys and agent tokens: shown once, stored as SHA-256, found by a public prefix, compared in constant time (ruling
4.18)."""

import hashlib
import hmac
import secrets
from typing import NamedTuple

API_KEY = "qwed_live"
AGENT_TOKEN = "qwed_agent"  # noqa: S105 - the public part of every token

_PREFIX_HEX = 12
_SECRET_HEX = 40
_LONGEST = 128


class NewCredential(NamedTuple):
    """New credential. `text` is for its holder alone; the rest is stored."""

    text: str
    prefix: str
    digest: bytes


def mint(kind: str) -> NewCredential:
    """Create a credential of this kind with 160 random bits after its public prefix."""
    prefix = f"{kind}_{secrets.token_hex(_PREFIX_HEX // 2)}"
    text = prefix + secrets.token_hex(_SECRET_HEX // 2)
    return NewCredential(text, prefix, digest_of(text))


def digest_of(text: str) -> bytes:
    """Return the stored digest of a credential."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def prefix_of(text: str, kind: str) -> str | None:
    """Return the public prefix of a credential of this kind, or None if it is not one."""
    if len(text) > _LONGEST or not text.startswith(kind + "_"):
        return None
    return text[: len(kind) + 1 + _PREFIX_HEX]


def matches(text: str, digest: bytes | None) -> bool:
    """Return True if `text` has this digest; takes as long without one."""
    return hmac.compare_digest(digest_of(text), _NO_DIGEST if digest is None else digest) and digest is not None


_NO_DIGEST = bytes(32)
