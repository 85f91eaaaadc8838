"""HMAC-SHA256 (RFC 2104), computed four times per decision.

`hmac.digest` derives both key blocks each time, and releases the interpreter lock, which a busy writer is slow to give
back. This module keeps the lock, and hashes the blocks of a reused key once.
"""

from hashlib import sha256

_BLOCK = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


_HALF = _BLOCK // 2
_INNER_HALF, _OUTER_HALF = bytes(_HALF).translate(_INNER), bytes(_HALF).translate(_OUTER)
"""Second half of the block of a key that is itself a hash."""


def mac(key: bytes, message: bytes) -> bytes:
    """Return the HMAC of a message under a key that is used once."""
    if len(key) == _HALF:
        inner = sha256(key.translate(_INNER) + _INNER_HALF + message).digest()
        return sha256(key.translate(_OUTER) + _OUTER_HALF + inner).digest()
    block = _block(key)
    return sha256(block.translate(_OUTER) + sha256(block.translate(_INNER) + message).digest()).digest()


class Hmac:
    """HMAC of many messages under one key."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        block = _block(key)
        self._inner = sha256(block.translate(_INNER))
        self._outer = sha256(block.translate(_OUTER))

    def digest(self, message: bytes) -> bytes:
        """Return the HMAC of a message."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


def _block(key: bytes) -> bytes:
    return (key if len(key) <= _BLOCK else sha256(key).digest()).ljust(_BLOCK, b"\0")
