"""Fork server: a process with the server modules preloaded, since most of a start is imports.

`fork_process` starts `python -m module ...` and returns an object like `subprocess.Popen`: a process with its own
environment, directory and streams. A command that depends on interpreter options or variables cannot be forked:
`can_be_forked` returns False for it.
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

PRELOADED_MODULES = (
    *("qwed.cli.app", "qwed.cli.serve", "qwed.api.app", "qwed.api.server.http_protocol", "qwed.api.server.log_format"),
    *("qwed.guards.startup_hooks", "uvicorn", "uvloop", "typer._adapters", "importlib.metadata"),
)
"""Modules that nearly every forked process imports first."""
_LONGEST = 1 << 16


def can_be_forked(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Return True if nothing about this process is decided before its first import."""
    ours = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
    theirs = {name: value for name, value in environment.items() if name.startswith("PYTHON")}
    return [*command[:2]] == [sys.executable, "-m"] and theirs.items() <= ours.items()


def fork_process(command: Sequence[str], environment: Mapping[str, str], errors: IO[Any]) -> "ForkedProcess":
    """Start the process of `command` with a readable standard output; its standard error goes to this file."""
    readable, writable = os.pipe()
    exit_reader, exit_writer = os.pipe()
    request = {"argv": command[2:], "environment": dict(environment), "directory": os.getcwd()}
    server = _fork_server_socket()
    socket.send_fds(server, [json.dumps(request).encode()], [writable, errors.fileno(), exit_writer])
    os.close(writable)
    os.close(exit_writer)
    pid = int(server.recv(64))
    return ForkedProcess(pid, os.fdopen(readable, "r"), exit_reader)


class ForkedProcess:
    """Subset of `subprocess.Popen` that server tests use."""

    def __init__(self, pid: int, stdout: IO[str], exit_reader: int) -> None:
        self.pid = pid
        self.stdout: IO[str] | None = stdout
        self.returncode: int | None = None
        self._exit_reader = exit_reader

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self._read_exit_code(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit and return the exit code."""
        code = self._read_exit_code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def _read_exit_code(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._exit_reader], [], [], seconds)[0]:
            self.returncode = int(os.read(self._exit_reader, 64) or b"-9")
            os.close(self._exit_reader)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send the signal unless the process has ended."""
        # The process may end between poll and kill.
        with suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


@cache
def _fork_server_socket() -> socket.socket:
    """Return the socket of the fork server of this test process; start it at the first call."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], pass_fds=[theirs.fileno()])
    atexit.register(_close, ours, process)
    return ours


def _close(server: socket.socket, process: "subprocess.Popen[bytes]") -> None:
    server.close()
    process.wait()


# The rest runs in the fork server process.


class ProcessRequest(NamedTuple):
    """Arguments, environment, directory and streams of a process to start."""

    argv: list[str]
    environment: dict[str, str]
    directory: str
    streams: list[int]


class ForkServer:
    """Single-threaded process that forks on request and reports how each child ended."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.children: dict[int, tuple[int, int]] = {}
        """Process id and pipe for the exit code, by pidfd."""

    def serve_requests(self) -> ProcessRequest | None:
        """Serve until the socket closes (return None); in a forked child, return its request."""
        while True:
            for ready in select.select([self.client.fileno(), *self.children], [], [])[0]:
                if ready in self.children:
                    self._report_exit(ready)
                    continue
                message, descriptors, _flags, _where = socket.recv_fds(self.client, _LONGEST, 3)
                if not message:
                    return None
                request = self._fork(message, descriptors)
                if request is not None:
                    return request

    def _fork(self, message: bytes, descriptors: list[int]) -> ProcessRequest | None:
        *streams, exit_writer = descriptors
        pid = os.fork()
        if pid == 0:
            for process, (_pid, other) in self.children.items():
                os.close(process)
                os.close(other)
            os.close(exit_writer)
            self.client.close()
            return ProcessRequest(**json.loads(message), streams=streams)
        self.children[os.pidfd_open(pid)] = (pid, exit_writer)
        for stream in streams:
            os.close(stream)
        self.client.send(str(pid).encode())
        return None

    def _report_exit(self, process: int) -> None:
        pid, exit_writer = self.children.pop(process)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(BrokenPipeError):  # the parent has closed its end
            os.write(exit_writer, str(code).encode())
        os.close(exit_writer)
        os.close(process)


def run_request(request: ProcessRequest) -> None:
    """Run the requested module in this process; it ends like any other program."""
    for stream, number in zip(request.streams, (1, 2), strict=True):
        os.dup2(stream, number)
        os.close(stream)
    # The streams of the fork server may have other encodings and buffering.
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.directory)
    # `python -m` searches the directory where it was started.
    sys.path[0] = request.directory
    random.seed()
    module, *arguments = request.argv
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main(descriptor: int) -> None:
    """Import the preloaded modules, then serve until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in PRELOADED_MODULES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    request = ForkServer(socket.socket(fileno=descriptor)).serve_requests()
    if request is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run_request(request)


if __name__ == "__main__":
    main(int(sys.argv[1]))
