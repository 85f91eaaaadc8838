"""Protection of the proxy's memory and environment against other programs of the same user."""

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def disable_memory_dumps() -> None:
    """Let only the administrator read this process's memory and its initial environment.

    The program behind the proxy may run as the same user, and a key in our environment could approve what it is denied.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
