"""Throw-away sandbox of the oracle: bubblewrap without network, with a read-only system and directories in memory."""

import functools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, NamedTuple

SANDBOX_UID = 61_100
"""User that root switches to first: not assigned by Debian, so no other process runs as this user."""
INNER_UID = 1000
_MEMORY = Path("/dev/shm")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM_CONFIGURATION = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ssl",
    "/etc/manpath.config",
    "/etc/postgresql-common",
)
_TMPFS_BYTES = str(256 << 20)


class SandboxJob(NamedTuple):
    """Program to run in the sandbox."""

    command: Sequence[str]
    files: dict[str, bytes]
    """Files to create, each with its content."""
    writable: Sequence[str] = ("/home", "/tmp", "/dev/shm", "/etc", "/var", "/run", "/root", "/opt", "/srv", "/mnt")
    visible: Sequence[Path] = ()
    """Directories of the host that are visible read-only."""
    links: Mapping[str, str] = MappingProxyType({})
    """Symbolic links to create, each with its target."""


def missing() -> str:
    """Return why nothing can be run here, or an empty string."""
    for program, package in (("bwrap", "bubblewrap"), ("strace", "strace"), ("git", "git")):
        if shutil.which(program) is None:
            return f"{program} is not installed: `apt-get install {package}`, or run `make setup` as root"
    return _probe()


@functools.cache
def _probe() -> str:
    try:
        with open(os.devnull, "rb") as nothing:
            finished = start(SandboxJob(["/bin/true"], {}), nothing, subprocess.DEVNULL)
    except OSError as error:
        return f"bubblewrap does not start: {error}"
    _, message = finished.communicate()
    return f"bubblewrap does not work here: {message.decode().strip()}" if finished.returncode else ""


def python() -> str:
    """Return a Python that the user of the sandbox can run."""
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        path = Path(os.path.realpath(candidate))
        if path.exists() and is_readable(path):
            return str(path)
    raise RuntimeError("no Python outside the home of root: install python3")


@functools.cache
def runs_same_python() -> bool:
    """Return True if compiled packages of this environment can be imported in the sandbox."""
    show = "import sys; print(*sys.version_info[:2])"
    version = subprocess.run([python(), "-c", show], capture_output=True, text=True, check=True).stdout.split()
    return version == [str(number) for number in sys.version_info[:2]]


def is_readable(path: Path) -> bool:
    """Return True if any user can reach this path."""
    return os.geteuid() != 0 or all(above.stat().st_mode & stat.S_IXOTH for above in path.parents)


def scratch_file() -> IO[bytes]:
    """Return an unnamed file in memory that the user of the sandbox can open."""
    file = tempfile.TemporaryFile(  # noqa: SIM115 - the caller closes it
        dir=_MEMORY if _MEMORY.is_dir() else None
    )
    if os.geteuid() == 0:
        os.fchown(file.fileno(), SANDBOX_UID, SANDBOX_UID)
    return file


def start(
    job: SandboxJob, stdin: IO[bytes], stdout: IO[bytes] | int, passed: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a job; it ends with this process."""
    descriptors = [_written(content) for content in job.files.values()]
    user = {"user": SANDBOX_UID, "group": SANDBOX_UID, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        return subprocess.Popen(
            [*_isolation(job), *_file_options(job.files, descriptors), "--remount-ro", "/", "--", *job.command],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd="/",
            env={},
            pass_fds=[*descriptors, *passed],
            **user,  # type: ignore[call-overload]  # all or none of three that subprocess names
        )
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _isolation(job: SandboxJob) -> list[str]:
    bwrap = shutil.which("bwrap") or "bwrap"
    words = [bwrap, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    words += ["--uid", str(INNER_UID), "--gid", str(INNER_UID), "--hostname", "devbox", "--cap-drop", "ALL"]
    words += ["--clearenv", "--proc", "/proc", "--tmpfs", "/dev", "--symlink", "/proc/self/fd", "/dev/fd"]
    for device in _DEVICES:
        words += ["--dev-bind", device, device]
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        words += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    for path in _SYSTEM:
        words += _system_options(Path(path))
    for area in job.writable:
        words += ["--size", _TMPFS_BYTES, "--tmpfs", area]
    # Last, because the repository may be below one of the areas in memory.
    for directory in (*map(str, job.visible), *_interpreter_directories(job)):
        words += ["--ro-bind", directory, directory]
    for path in _SYSTEM_CONFIGURATION:
        words += ["--ro-bind-try", path, path]
    for name, target in job.links.items():
        words += ["--symlink", target, name]
    return [*words, "--remount-ro", "/dev"]


def _interpreter_directories(job: SandboxJob) -> list[str]:
    """Return the directory of an interpreter outside /usr."""
    if not job.command or job.command[0].startswith("/bin/"):
        return []
    place = Path(python())
    return [] if place.is_relative_to("/usr") else [str(place.parents[1])]


def _system_options(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", os.readlink(path), str(path)]
    return ["--ro-bind", str(path), str(path)] if path.is_dir() else []


def _file_options(files: dict[str, bytes], descriptors: Sequence[int]) -> list[str]:
    words: list[str] = []
    for name, descriptor in zip(files, descriptors, strict=True):
        words += ["--perms", "0755", "--file", str(descriptor), name]
    return words


def _written(content: bytes) -> int:
    descriptor = os.memfd_create("file")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
