"""What a program of the same user could read of the process that guards it: its environment and its memory."""

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def unreadable() -> None:
    """From now on nobody but the administrator reads our memory, or the environment we were started with.

    What we stand before may run as we do, and a key in our environment could approve what it is kept from.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
