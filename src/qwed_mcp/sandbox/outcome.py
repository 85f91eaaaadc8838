"""What a sandbox is asked for, and what it says came of it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

OUTPUT_CAP = 1 << 20
"""Bytes of stdout and of stderr, each; one byte more ends the job."""


class Ended(StrEnum):
    """Why a job is over."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    OUTPUT_CAP = "output_cap"
    MEMORY = "memory"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one job may use; the job as a whole where not said otherwise."""

    seconds: float
    memory_mb: int = 512
    processes: int = 16
    open_files: int = 128
    disk_mb: int = 64
    output_bytes: int = OUTPUT_CAP


class Outcome(NamedTuple):
    """What a job left: its output, cut at the cap, and how it ended."""

    stdout: str
    stderr: str
    return_code: int | None
    """None where it did not come to an end by itself."""
    ended: Ended
    sandbox: str
    """Which sandbox ran it, such as `bubblewrap`."""


class Unavailable(NamedTuple):
    """No sandbox: the sentence says what to install or to allow."""

    reason: str


class Failed(Exception):
    """The surprise that a sandbox which worked does not any more: the job did not run, or how it ended is not known."""


class Job(Protocol):
    """One job under way."""

    def wait(self) -> Outcome:
        """Its outcome, once every process of it is dead; raises Failed where it could not be followed."""

    def cancel(self) -> None:
        """End it now, from any thread; `wait` then returns."""


class Sandbox(Protocol):
    """Where code runs."""

    name: str

    def start(self, code: str, limits: Limits) -> Job:
        """Run `code` as a Python program; returns when it has been started, and raises Failed where it cannot be."""


Chosen = Callable[[], Sandbox | Unavailable]
"""Asked before each job: what did not work when the server started may work now, and the other way round."""
