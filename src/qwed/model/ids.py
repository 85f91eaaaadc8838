"""Identifiers: a prefix that names the kind, then lowercase hex. None of them is a counter."""

import secrets

from qwed.model.random_bytes import random_bytes


def new_id(prefix: str) -> str:
    """Return an unguessable id such as `agent_5f1c...`."""
    return f"{prefix}_{secrets.token_hex(12)}"


def timed_id(prefix: str, now: float) -> str:
    """Return a unique id that sorts by time, so that an index on it grows at its end. Not a secret.

    Random within a millisecond: a counter would tell one organisation how busy the others are.
    """
    return f"{prefix}_{int(now * 1000):012x}{random_bytes()[:7].hex()}"
