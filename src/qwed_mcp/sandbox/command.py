"""The command line of a job: an argv, every path absolute, nothing of the caller's environment."""

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from qwed_mcp.sandbox.outcome import Limits
from qwed_mcp.sandbox.view import LAUNCHER, View

PROGRAM = "/program.py"
_INSIDE = "65534"
_DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
"""Not /dev/zero: what is shared through it is memory that no process and no file counts."""
_HIDDEN = ("cmdline", "kcore", "key-users", "keys", "kmsg", "sched_debug", "sysrq-trigger", "timer_list")
"""Of the host, although in a /proc of one's own; opening them is refused."""

_ISOLATED = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--uid", _INSIDE, "--gid", _INSIDE),
    *("--hostname", "sandbox", "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--clearenv"),
)


class Tools(NamedTuple):
    """What makes the sandbox on this host."""

    bwrap: str
    filter: bytes
    uid: int | None = None
    """Whom root becomes first; None where we are an ordinary user already."""


class Given(NamedTuple):
    """The descriptors that are passed on; none of them is open any more when the program begins."""

    program: int
    filter: int
    status: int
    go: int
    said: int


def command(tools: Tools, view: View, limits: Limits, given: Given) -> list[str]:
    """bubblewrap with the launcher in it."""
    files = str(limits.disk_mb << 20)
    return [
        *(tools.bwrap, *_ISOLATED),
        # First, because an environment below the host's /tmp is shown in it.
        *("--perms", "0700", "--size", files, "--tmpfs", "/tmp", "--chdir", "/tmp"),  # noqa: S108 - the job's own
        *_shown(view),
        *("--proc", "/proc", *_hidden(), *_devices()),
        *("--perms", "0444", "--file", str(given.program), PROGRAM),
        *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"),
        *("--setenv", "PATH", str(view.python.parent), "--setenv", "PYTHONPATH", search_path(view)),
        *("--seccomp", str(given.filter), "--json-status-fd", str(given.status), "--block-fd", str(given.go)),
        "--",
        *launcher(view, given.said, PROGRAM, rlimits(limits) | {"RLIMIT_NPROC": limits.processes + 1}),
    ]


def launcher(view: View, said: int, program: str, limits: dict[str, int]) -> list[str]:
    """Python without what is slow and what a directory could change about its start."""
    words = [f"{name}={value}" for name, value in limits.items()]
    return [str(view.python), "-I", "-S", "-B", str(LAUNCHER), str(said), program, search_path(view), *words]


def rlimits(limits: Limits) -> dict[str, int]:
    """What holds for each process."""
    return {
        "RLIMIT_DATA": limits.memory_mb << 20,
        # Address space that is reserved and never used, as the C library does for each thread, is no memory.
        "RLIMIT_AS": limits.memory_mb << 21,
        # The wall clock ends the job first, unless nobody is left to look at it.
        "RLIMIT_CPU": math.ceil(limits.seconds) + 1,
        "RLIMIT_FSIZE": limits.disk_mb << 20,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        # Some hosts let ordinary users go before everybody else, for sound.
        "RLIMIT_NICE": 0,
        "RLIMIT_RTPRIO": 0,
        # Otherwise the user's own, outside too.
        "RLIMIT_SIGPENDING": 256,
    }


def search_path(view: View) -> str:
    """Where the packages are, for the program and for a Python that it starts."""
    return os.pathsep.join(map(str, view.path))


def _shown(view: View) -> list[str]:
    words = _directories(view.parents)
    for place in map(str, view.shown):
        words += ("--ro-bind", place, place)
    for target, link in view.links:
        words += ("--symlink", target, link)
    return words


def _directories(paths: Iterable[Path]) -> list[str]:
    """Named one by one: those that bubblewrap makes of itself are closed to everybody else."""
    return [word for path in sorted({*paths} - {Path("/")}) for word in ("--dir", str(path))]


def _hidden() -> list[str]:
    return [
        word
        for name in _HIDDEN
        if os.path.exists(f"/proc/{name}")
        for word in ("--ro-bind", "/dev/null", f"/proc/{name}")
    ]


def _devices() -> list[str]:
    """No terminal and no pseudo-terminals; shared memory counts as files."""
    return [
        *("--tmpfs", "/dev"),
        *(word for device in _DEVICES for word in ("--dev-bind", device, device)),
        *("--symlink", "/tmp", "/dev/shm", "--symlink", "/proc/self/fd", "/dev/fd"),  # noqa: S108 - the job's own
    ]
