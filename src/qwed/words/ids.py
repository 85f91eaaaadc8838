"""Identifiers: a prefix that says what it names, then lowercase hex. None of them counts anything."""

import secrets

from qwed.words.chance import some_bytes


def new_id(prefix: str) -> str:
    """An unguessable id such as `agent_5f1c...`."""
    return f"{prefix}_{secrets.token_hex(12)}"


def timed_id(prefix: str, now: float) -> str:
    """A unique id that sorts by time, so an index on it grows at its end. Not a secret: it opens nothing by itself.

    Random within a millisecond: a counter would tell one organisation how busy the others are.
    """
    return f"{prefix}_{int(now * 1000):012x}{some_bytes()[:7].hex()}"
