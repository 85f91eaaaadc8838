"""Descriptors between us and a job that starts."""

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from qwed_mcp.sandbox.outcome import Failed

START_SECONDS = 15.0
_SHORT = 1 << 12
_FIRST_TO_GO = "1000"


@contextmanager
def starting() -> Iterator[None]:
    """Whatever the system refuses while a job starts (processes, threads, descriptors) is told as one surprise."""
    try:
        yield
    except (OSError, RuntimeError, subprocess.SubprocessError) as surprise:
        raise Failed(f"a job could not be started: {surprise}") from surprise


def pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """The two ends of a pipe, each closed with its stack."""
    ends = os.pipe()
    for stack, end in zip((reader, writer), ends, strict=True):
        stack.callback(os.close, end)
    return ends


def holding(stack: ExitStack, content: bytes) -> int:
    """A descriptor to read `content` from, which is in no file of the host."""
    descriptor = os.memfd_create("qwed")
    stack.callback(os.close, descriptor)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def first_to_go(process: int) -> None:
    """Where the machine runs out of memory after all, the kernel ends this process and its children, not the server."""
    with open(f"/proc/{process}/oom_score_adj", "w") as score:
        score.write(_FIRST_TO_GO)


def heard(descriptor: int, last: bytes) -> bytes:
    """What is said up to the last byte of it, in however many pieces; nothing where it ends or takes too long."""
    said = b""
    while not said.endswith(last) and len(said) < _SHORT:
        piece = os.read(descriptor, _SHORT) if readable(descriptor, START_SECONDS) else b""
        if not piece:
            return b""
        said += piece
    return said


def readable(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read, or to be told by a descriptor of a process, within the time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
