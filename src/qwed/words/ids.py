"""Identifiers: a prefix that says what it names, then lowercase hex."""

import itertools
import os
import secrets

_count = itertools.count()
_salt = secrets.token_hex(4)


def _fresh_salt() -> None:
    global _salt
    _salt = secrets.token_hex(4)


os.register_at_fork(after_in_child=_fresh_salt)


def new_id(prefix: str) -> str:
    """An unguessable id such as `agent_5f1c...`."""
    return f"{prefix}_{secrets.token_hex(12)}"


def timed_id(prefix: str, now: float) -> str:
    """A unique id that sorts by time, so an index on it grows at its end. Not a secret: it opens nothing by itself."""
    return f"{prefix}_{int(now * 1000):012x}{next(_count) & 0xFFFFFF:06x}{_salt}"
