"""Identifiers: a prefix that says what it names, then lowercase hex."""

import secrets


def new_id(prefix: str) -> str:
    """An unguessable id such as `agent_5f1c...`."""
    return f"{prefix}_{secrets.token_hex(12)}"


def timed_id(prefix: str, now: float) -> str:
    """An unguessable id that sorts by time, so an index on it grows at its end."""
    return f"{prefix}_{int(now * 1000):012x}{secrets.token_hex(8)}"
