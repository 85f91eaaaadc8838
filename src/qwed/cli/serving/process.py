"""What a server is as a process: where it listens, what stops it, with whom it ends."""

import os
import signal
import socket
import sys
from collections.abc import Callable

_ACKNOWLEDGE_MS = 60_000
"""How long what we have sent may go without being acknowledged."""


def bound_to(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket at this address; the kernel deals out connections among all that share it and listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # Every connection has it from here: one whose other end lost its power ends, however seldom we write to it.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _ACKNOWLEDGE_MS)
        made.bind((host, port))
    except (OSError, OverflowError):
        made.close()
        raise
    return made


def on_stop(stop: Callable[..., None]) -> None:
    """Call this on every signal that asks to stop; a hang-up that whoever started us has ignored is none."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


def end_with(supervisor: int) -> None:
    """Be told to stop when the process that started this one has ended, however that happens."""
    # Imported here so that `qwed --help` answers at once.
    from qwed.engines._pool.child import PR_SET_PDEATHSIG, prctl

    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != supervisor:
        sys.exit(0)
