"""Buffered random bytes for ids and nonces; every decision needs two.

`os.urandom` releases the interpreter lock on each call, and a busy writer thread does not return it at once. So bytes
are fetched in bulk and each chunk is handed out once: to one thread, because `list.pop` is atomic, and to one process,
because a forked child starts with an empty buffer.
"""

import os

_BYTES = 16
_AT_ONCE = 256

_left: list[bytes] = []
os.register_at_fork(after_in_child=_left.clear)


def random_bytes() -> bytes:
    """Return sixteen random bytes."""
    try:
        return _left.pop()
    except IndexError:
        fresh = os.urandom(_BYTES * _AT_ONCE)
        _left.extend([fresh[at : at + _BYTES] for at in range(_BYTES, len(fresh), _BYTES)])
        return fresh[:_BYTES]
