"""Supervisor of one PostgreSQL that stops it once no process uses it, however its users ended.

It runs as a program with the standard library only: `postgres_reaper.py HOME UID GID postgres ...`. Each user of the
server holds a shared lock on the file `life` in its home; the kernel releases the locks of dead processes.
"""

import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

READY = b"database system is ready to accept connections"
_PR_SET_PDEATHSIG = 1


def main(home: Path, user: int, group: int, command: list[str]) -> int:
    """Run the server until it ends, and remove its home if no user is left."""
    other = {"user": user, "group": group, "extra_groups": []} if os.geteuid() == 0 else {}
    server: subprocess.Popen[bytes] = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        preexec_fn=_end_with(os.getpid()),
        **other,  # type: ignore[call-overload]  # all or none of three that subprocess names
    )
    unused = threading.Event()
    threading.Thread(target=_end_when_unused, args=(home / "life", server.pid, unused), daemon=True).start()
    assert server.stderr is not None
    with (home / "log").open("ab", buffering=0) as log:
        _follow(server.stderr, log)
    code = server.wait()
    if unused.is_set():
        shutil.rmtree(home, ignore_errors=True)
    return code


def _follow(output: IO[bytes], log: IO[bytes]) -> None:
    """Copy the output of the server to the log, and tell the parent once it listens."""
    reported = False
    for line in output:
        log.write(line)
        if READY in line and not reported:
            reported = True
            os.write(sys.stdout.fileno(), b"ready\n")


def _end_when_unused(life: Path, server: int, unused: threading.Event) -> None:
    descriptor = os.open(life, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    unused.set()
    # A stopped server would not receive the signal.
    os.kill(server, signal.SIGCONT)
    os.kill(server, signal.SIGQUIT)


def _end_with(keeper: int) -> Callable[[], None]:
    """Return a preexec function that kills the server if its supervisor dies."""
    libc = ctypes.CDLL(None)

    def ask_for_the_signal() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(1)

    return ask_for_the_signal


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
