"""A process that has imported the server already, and becomes one for whoever asks: most of a start is imports.

`python -m module ...` is asked for with `born`, and what comes back is used like a `subprocess.Popen`: a process of its
own with its own environment, directory and streams. What is about the start of an interpreter itself - its options, the
variables it reads - cannot be born here: `can_be_born` says so.
"""

import atexit
import gc
import importlib
import json
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

KNOWN = (
    *("qwed.cli.app", "qwed.cli.serve", "qwed.api.app", "qwed.api.connection", "qwed.api.logs"),
    *("qwed.guards.startup_hooks", "uvicorn", "uvloop", "typer._adapters", "importlib.metadata"),
)
"""What nearly every process that is born here would import first."""
_LONGEST = 1 << 16


def can_be_born(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether nothing about this process is decided before its first import."""
    ours = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
    theirs = {name: value for name, value in environment.items() if name.startswith("PYTHON")}
    return [*command[:2]] == [sys.executable, "-m"] and theirs.items() <= ours.items()


def born(command: Sequence[str], environment: Mapping[str, str], errors: IO[Any]) -> "Born":
    """The process that `command` asks for, its standard output readable, its standard error going to this file."""
    readable, writable = os.pipe()
    told, tells = os.pipe()
    order = {"argv": command[2:], "environment": dict(environment), "directory": os.getcwd()}
    line = _nursery()
    socket.send_fds(line, [json.dumps(order).encode()], [writable, errors.fileno(), tells])
    os.close(writable)
    os.close(tells)
    pid = int(line.recv(64))
    return Born(pid, os.fdopen(readable, "r"), told)


class Born:
    """As much of a `subprocess.Popen` as servers are used with."""

    def __init__(self, pid: int, stdout: IO[str], told: int) -> None:
        self.pid = pid
        self.stdout: IO[str] | None = stdout
        self.returncode: int | None = None
        self._told = told

    def poll(self) -> int | None:
        """How it ended; nothing while it runs."""
        return self._heard(0)

    def wait(self, timeout: float | None = None) -> int:
        """How it ended, once it has."""
        code = self._heard(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def _heard(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            self.returncode = int(os.read(self._told, 64) or b"-9")
            os.close(self._told)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it, unless it has ended."""
        # Between the two it may end.
        with suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it between two instructions."""
        self.send_signal(signal.SIGKILL)


@cache
def _nursery() -> socket.socket:
    """The one of this test process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.support.nursery", str(theirs.fileno())]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], pass_fds=[theirs.fileno()])
    atexit.register(_close, ours, process)
    return ours


def _close(line: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    line.close()
    process.wait()


# What follows runs in the nursery itself.


class Order(NamedTuple):
    """Who is to be, and with which streams."""

    argv: list[str]
    environment: dict[str, str]
    directory: str
    streams: list[int]


class Nursery:
    """Forks, and tells how each ended; it has one thread, so that nothing is lost in a fork."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.born: dict[int, tuple[int, int]] = {}
        """By the descriptor of a process: its number, and where its end is told."""

    def attend(self) -> Order | None:
        """Comes back in a process that was born, with what it is to be; or when nobody will ask any more."""
        while True:
            for ready in select.select([self.line.fileno(), *self.born], [], [])[0]:
                if ready in self.born:
                    self._tell_the_end(ready)
                    continue
                said, descriptors, _flags, _where = socket.recv_fds(self.line, _LONGEST, 3)
                if not said:
                    return None
                order = self._bear(said, descriptors)
                if order is not None:
                    return order

    def _bear(self, said: bytes, descriptors: list[int]) -> Order | None:
        *streams, tells = descriptors
        pid = os.fork()
        if pid == 0:
            for process, (_pid, other) in self.born.items():
                os.close(process)
                os.close(other)
            os.close(tells)
            self.line.close()
            return Order(**json.loads(said), streams=streams)
        self.born[os.pidfd_open(pid)] = (pid, tells)
        for stream in streams:
            os.close(stream)
        self.line.send(str(pid).encode())
        return None

    def _tell_the_end(self, process: int) -> None:
        pid, tells = self.born.pop(process)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(BrokenPipeError):  # nobody wants to know
            os.write(tells, str(code).encode())
        os.close(tells)
        os.close(process)


def become(order: Order) -> None:
    """Be the process that was asked for; it ends as any other, through the end of the program."""
    for stream, number in zip(order.streams, (1, 2), strict=True):
        os.dup2(stream, number)
        os.close(stream)
    # What was opened for the streams of the nursery may be able to do more or less.
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    os.environ.clear()
    os.environ.update(order.environment)
    os.chdir(order.directory)
    # `python -m` looks in the directory where it was started.
    sys.path[0] = order.directory
    random.seed()
    module, *arguments = order.argv
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main(descriptor: int) -> None:
    """Import what is known, then serve until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in KNOWN:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    order = Nursery(socket.socket(fileno=descriptor)).attend()
    if order is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        become(order)


if __name__ == "__main__":
    main(int(sys.argv[1]))
