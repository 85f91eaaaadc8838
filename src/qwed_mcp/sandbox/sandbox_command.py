"""Command line of a job: an argv with absolute paths and nothing from the caller's environment."""

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from qwed_mcp.sandbox.filesystem import LAUNCHER, VisibleFiles
from qwed_mcp.sandbox.job import JobLimits

PROGRAM = "/program.py"
_INNER_ID = "65534"
_DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
"""Visible devices; not /dev/zero, because memory shared through it is counted for no process and no file."""
_HIDDEN_PROC_FILES = ("cmdline", "kcore", "key-users", "keys", "kmsg", "sched_debug", "sysrq-trigger", "timer_list")
"""Files of a private /proc that still show data of the host; opening them is refused."""

_ISOLATION_OPTIONS = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--uid", _INNER_ID, "--gid", _INNER_ID),
    *("--hostname", "sandbox", "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--clearenv"),
)


class BubblewrapTools(NamedTuple):
    """Programs and filter that make the sandbox on this host."""

    bwrap: str
    filter: bytes
    uid: int | None = None
    """User that root switches to first; None for an ordinary user."""


class PassedDescriptors(NamedTuple):
    """Descriptors that bubblewrap inherits; all are closed when the program begins."""

    program: int
    filter: int
    status: int
    go: int
    ready: int


def bubblewrap_command(
    tools: BubblewrapTools, files: VisibleFiles, limits: JobLimits, descriptors: PassedDescriptors
) -> list[str]:
    """Return the argv of bubblewrap with the launcher in it."""
    tmp_bytes = str(limits.disk_mb << 20)
    return [
        *(tools.bwrap, *_ISOLATION_OPTIONS),
        # First, because a virtual environment below the host's /tmp is bound inside it.
        *("--perms", "0700", "--size", tmp_bytes, "--tmpfs", "/tmp", "--chdir", "/tmp"),  # noqa: S108 - the job's own
        *_bind_options(files),
        *("--proc", "/proc", *_hidden_proc_options(), *_device_options()),
        *("--perms", "0444", "--file", str(descriptors.program), PROGRAM),
        *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"),
        *("--setenv", "PATH", str(files.python.parent), "--setenv", "PYTHONPATH", search_path(files)),
        *(
            "--seccomp",
            str(descriptors.filter),
            "--json-status-fd",
            str(descriptors.status),
            "--block-fd",
            str(descriptors.go),
        ),
        "--",
        *launcher_command(files, descriptors.ready, PROGRAM, rlimits(limits) | {"RLIMIT_NPROC": limits.processes + 1}),
    ]


def launcher_command(files: VisibleFiles, ready: int, program: str, limits: dict[str, int]) -> list[str]:
    """Return the argv of Python without slow start-up steps and without files that could change its start."""
    words = [f"{name}={value}" for name, value in limits.items()]
    return [str(files.python), "-I", "-S", "-B", str(LAUNCHER), str(ready), program, search_path(files), *words]


def rlimits(limits: JobLimits) -> dict[str, int]:
    """Return the limits of each process."""
    return {
        "RLIMIT_DATA": limits.memory_mb << 20,
        # Twice as much: the C library reserves address space per thread that it never uses.
        "RLIMIT_AS": limits.memory_mb << 21,
        # The supervisor's wall clock ends the job first, unless the supervisor is gone.
        "RLIMIT_CPU": math.ceil(limits.seconds) + 1,
        "RLIMIT_FSIZE": limits.disk_mb << 20,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        # Some hosts allow ordinary users a higher priority, for audio.
        "RLIMIT_NICE": 0,
        "RLIMIT_RTPRIO": 0,
        # The default counts the user's signals outside the sandbox too.
        "RLIMIT_SIGPENDING": 256,
    }


def search_path(files: VisibleFiles) -> str:
    """Return the package path for the program and for a Python that it starts."""
    return os.pathsep.join(map(str, files.package_directories))


def _bind_options(files: VisibleFiles) -> list[str]:
    words = _directory_options(files.parents)
    for path in map(str, files.paths):
        words += ("--ro-bind", path, path)
    for target, link in files.links:
        words += ("--symlink", target, link)
    return words


def _directory_options(paths: Iterable[Path]) -> list[str]:
    """Create each parent explicitly: directories that bubblewrap creates itself are closed to other users."""
    return [word for path in sorted({*paths} - {Path("/")}) for word in ("--dir", str(path))]


def _hidden_proc_options() -> list[str]:
    return [
        word
        for name in _HIDDEN_PROC_FILES
        if os.path.exists(f"/proc/{name}")
        for word in ("--ro-bind", "/dev/null", f"/proc/{name}")
    ]


def _device_options() -> list[str]:
    """Return the /dev of a job: no terminals, and shared memory that counts as files."""
    return [
        *("--tmpfs", "/dev"),
        *(word for device in _DEVICES for word in ("--dev-bind", device, device)),
        *("--symlink", "/tmp", "/dev/shm", "--symlink", "/proc/self/fd", "/dev/fd"),  # noqa: S108 - the job's own
    ]
