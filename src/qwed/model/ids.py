"""Identifiers and random bytes: a prefix that names the kind, then lowercase hex. No id is a counter."""

import os
import secrets

_BYTES = 16
_AT_ONCE = 256

_left: list[bytes] = []
os.register_at_fork(after_in_child=_left.clear)


def random_bytes() -> bytes:
    """Return sixteen random bytes, for ids and nonces; every decision needs two.

    `os.urandom` releases the interpreter lock on each call, and a busy writer thread does not return it at once. So
    bytes are fetched in bulk and each chunk is handed out once: to one thread, because `list.pop` is atomic, and to one
    process, because a forked child starts with an empty buffer.
    """
    try:
        return _left.pop()
    except IndexError:
        fresh = os.urandom(_BYTES * _AT_ONCE)
        _left.extend([fresh[at : at + _BYTES] for at in range(_BYTES, len(fresh), _BYTES)])
        return fresh[:_BYTES]


def new_id(prefix: str) -> str:
    """Return an unguessable id such as `agent_5f1c...`."""
    return f"{prefix}_{secrets.token_hex(12)}"


def timed_id(prefix: str, now: float) -> str:
    """Return a unique id that sorts by time, so that an index on it grows at its end. Not a secret.

    Random within a millisecond: a counter would tell one organisation how busy the others are.
    """
    return f"{prefix}_{int(now * 1000):012x}{random_bytes()[:7].hex()}"
