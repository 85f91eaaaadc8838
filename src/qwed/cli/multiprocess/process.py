"""Process-level helpers of a server: listen socket, stop signals, exit with the parent."""

import os
import signal
import socket
import sys
from collections.abc import Callable

_TCP_USER_TIMEOUT_MS = 60_000
"""Time that sent data may stay unacknowledged before the connection is closed."""


def bind_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a socket bound to this address; with `shared`, the kernel distributes connections over all listeners."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # Inherited by every connection: it ends connections whose peer lost power even if we rarely write to them.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _TCP_USER_TIMEOUT_MS)
        bound.bind((host, port))
    except (OSError, OverflowError):
        bound.close()
        raise
    return bound


def install_stop_handler(stop: Callable[..., None]) -> None:
    """Call `stop` on SIGTERM, SIGINT and SIGHUP; SIGHUP stays ignored if the parent ignored it (nohup)."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)


def exit_with_parent(supervisor: int) -> None:
    """Send this process SIGTERM when its supervisor has ended for any reason."""
    # Imported here to keep `qwed --help` fast.
    from qwed.engines._pool.worker_main import PR_SET_PDEATHSIG, prctl

    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != supervisor:
        sys.exit(0)
