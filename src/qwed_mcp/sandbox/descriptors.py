"""File descriptors between the server and a starting job."""

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from qwed_mcp.sandbox.job import SandboxError

START_SECONDS = 15.0
_MAX_MESSAGE_BYTES = 1 << 12
_MAX_OOM_SCORE = "1000"


@contextmanager
def convert_start_errors() -> Iterator[None]:
    """Convert a system error during a start (no processes, threads or descriptors left) to SandboxError."""
    try:
        yield
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise SandboxError(f"a job could not be started: {error}") from error


def open_pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Open a pipe; each end is closed with its stack."""
    ends = os.pipe()
    for stack, end in zip((reader, writer), ends, strict=True):
        stack.callback(os.close, end)
    return ends


def memory_file(stack: ExitStack, content: bytes) -> int:
    """Return a descriptor that reads `content` from memory, not from a file of the host."""
    descriptor = os.memfd_create("qwed")
    stack.callback(os.close, descriptor)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def raise_oom_score(process: int) -> None:
    """Make the kernel kill this process and its children, not the server, when memory runs out."""
    with open(f"/proc/{process}/oom_score_adj", "w") as score:
        score.write(_MAX_OOM_SCORE)


def read_until(descriptor: int, terminator: bytes) -> bytes:
    """Read up to `terminator`, in any number of pieces; return nothing at the end of input or after a timeout."""
    data = b""
    while not data.endswith(terminator) and len(data) < _MAX_MESSAGE_BYTES:
        piece = os.read(descriptor, _MAX_MESSAGE_BYTES) if wait_readable(descriptor, START_SECONDS) else b""
        if not piece:
            return b""
        data += piece
    return data


def wait_readable(descriptor: int, seconds: float) -> bool:
    """Return True if the descriptor, or a pidfd, becomes readable in time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
