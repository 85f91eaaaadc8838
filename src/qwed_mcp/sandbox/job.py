"""Types of the sandbox: limits, job and outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

OUTPUT_CAP = 1 << 20
"""Byte limit of stdout and of stderr; one byte more ends the job."""


class EndReason(StrEnum):
    """Reason for the end of a job."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    OUTPUT_CAP = "output_cap"
    MEMORY = "memory"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobLimits:
    """Resource limits of a job as a whole."""

    seconds: float
    memory_mb: int = 512
    processes: int = 16
    open_files: int = 128
    disk_mb: int = 64
    output_bytes: int = OUTPUT_CAP


class JobOutcome(NamedTuple):
    """Output of a job, cut at the cap, and its end."""

    stdout: str
    stderr: str
    return_code: int | None
    """Exit code; None if the job was stopped."""
    ended: EndReason
    sandbox: str
    """Name of the sandbox, such as `bubblewrap`."""


class SandboxUnavailable(NamedTuple):
    """Missing sandbox; the reason says what to install or to allow."""

    reason: str


class SandboxError(Exception):
    """A working sandbox failed: the job did not run, or its end is not known."""


class SandboxJob(Protocol):
    """Running job."""

    def wait(self) -> JobOutcome:
        """Return the outcome once every process is dead; raise SandboxError if the job could not be supervised."""

    def cancel(self) -> None:
        """End the job now, from any thread; `wait` then returns."""


class Sandbox(Protocol):
    """Environment that runs code."""

    name: str

    def start(self, code: str, limits: JobLimits) -> SandboxJob:
        """Start `code` as a Python program; raise SandboxError if that fails."""


SandboxProvider = Callable[[], Sandbox | SandboxUnavailable]
"""Called before each job, because a sandbox may become available or unavailable while the server runs."""
