"""Ruling 4.18: keys and tokens, shown once, kept as SHA-256, found by a public prefix, compared in constant time."""

import hashlib
import hmac
import secrets
from typing import NamedTuple

API_KEY = "qwed_live"
AGENT_TOKEN = "qwed_agent"  # noqa: S105 - the public part of every token

_PREFIX_HEX = 12
_SECRET_HEX = 40
_LONGEST = 128


class Minted(NamedTuple):
    """A new credential. `text` is for its holder alone; the rest is kept."""

    text: str
    prefix: str
    digest: bytes


def mint(kind: str) -> Minted:
    """A credential of this kind with 160 random bits behind its public prefix."""
    prefix = f"{kind}_{secrets.token_hex(_PREFIX_HEX // 2)}"
    text = prefix + secrets.token_hex(_SECRET_HEX // 2)
    return Minted(text, prefix, digest_of(text))


def digest_of(text: str) -> bytes:
    """What is kept of a credential."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def prefix_of(text: str, kind: str) -> str | None:
    """The public prefix by which a credential of this kind is looked up, or None if it is not one."""
    if len(text) > _LONGEST or not text.startswith(kind + "_"):
        return None
    return text[: len(kind) + 1 + _PREFIX_HEX]


def matches(text: str, digest: bytes | None) -> bool:
    """Whether `text` is the credential kept as `digest`; takes as long when there is none."""
    return hmac.compare_digest(digest_of(text), _NOBODY if digest is None else digest) and digest is not None


_NOBODY = bytes(32)
