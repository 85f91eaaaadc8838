"""Random bytes for ids and nonces, which every decision takes twice.

`os.urandom` gives up the interpreter lock each time, and a writer that is busy does not give it back at once. So it is
asked for many at a time, and each of them is handed out once: to one thread, because taking from a list is one step of
the interpreter, and to one process, because a child begins with none.
"""

import os

_BYTES = 16
_AT_ONCE = 256

_left: list[bytes] = []
os.register_at_fork(after_in_child=_left.clear)


def some_bytes() -> bytes:
    """Sixteen random bytes that nobody else was given."""
    try:
        return _left.pop()
    except IndexError:
        fresh = os.urandom(_BYTES * _AT_ONCE)
        _left.extend([fresh[at : at + _BYTES] for at in range(_BYTES, len(fresh), _BYTES)])
        return fresh[:_BYTES]
