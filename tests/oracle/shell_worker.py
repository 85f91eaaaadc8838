"""Worker inside the sandbox of the shell oracle: runs each command in a fresh project and reports what changed.

It runs under strace with the standard library only. It reads commands as JSON lines from its input, and writes a JSON
line for each. A failed `unlink` of `/marker/N` in the trace shows where command N begins.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

HOME = "/home/dev"
PROJECT = f"{HOME}/project"
AREAS = ("/home", "/tmp", "/dev/shm", "/etc", "/var", "/run", "/root", "/opt", "/srv", "/mnt")
_ENOUGH_MEMORY = 2 << 30
MAX_OUTPUT = 1 << 20
_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.1
_GRACE_SECONDS = 0.15
LIMITS = (
    (resource.RLIMIT_FSIZE, 8 << 20),
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_AS, 2 << 30),
    (resource.RLIMIT_NPROC, 128),
)
_INDEX = f"{PROJECT}/.git/index"

Snapshot = dict[str, tuple[int, ...]]


def main() -> None:
    """Run the commands of the input."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for name, value in LIMITS:
        resource.setrlimit(name, (value, value))
    output = os.memfd_create("output")
    resident = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    setup = json.loads(sys.stdin.readline())
    make_project(setup["files"], setup["script"], setup["environment"])
    make_database(setup["database"])
    clean = Areas(AREAS)
    for line in sys.stdin:
        job = json.loads(line)
        for path in setup["secrets"]:
            os.utime(path, ns=(0, os.stat(path).st_mtime_ns))
        clean.look_again(setup["secrets"])
        with suppress(OSError):
            os.unlink(f"/marker/{job['index']}")
        report = run(job["command"], setup, output, resident)
        with suppress(OSError):
            os.unlink("/marker/end")
        changes = clean.changes()
        report["opened"] = [path for path in setup["secrets"] if was_read(path)]
        report |= {"index": job["index"], "changes": changes[:50], "canaries": canaries_in(output, setup["canaries"])}
        if changes:
            clean.restore(changes)
        sys.stdout.write(json.dumps(report) + "\n")
        sys.stdout.flush()


def make_database(statements: str) -> None:
    """Create the database of the project."""
    with contextlib.closing(sqlite3.connect(f"{PROJECT}/db.sqlite")) as connection:
        connection.executescript(statements)


def make_project(files: dict[str, str], script: str, environment: dict[str, str]) -> None:
    """Write the files of the home directory, and run the script that makes the rest of the project."""
    for name, text in files.items():
        path = Path(HOME, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["/bin/bash", "-ec", script], cwd=PROJECT, env=environment, check=True, stdout=subprocess.DEVNULL)


class Areas:
    """Directories a command may write to, as they were at the start."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = roots
        self._content = {path: read_content(path) for path in self._snapshot()}
        self._before = self._snapshot()

    def _snapshot(self) -> Snapshot:
        return {path: row for root in self._roots for path, row in snapshot(root).items()}

    def look_again(self, paths: list[str]) -> None:
        """Take the present times of these files for those of the start."""
        for path in paths:
            self._before[path] = _row(os.lstat(path))

    def changes(self) -> list[tuple[str, str]]:
        """Return what changed since the start: created, removed, changed or mode, with the path."""
        after = self._snapshot()
        if after == self._before:
            return []
        rows = [("removed", path) for path in self._before if path not in after]
        rows += [
            ("created" if any(row[1:2]) else "created empty", path)
            for path, row in after.items()
            if path not in self._before
        ]
        rows += [(_change(row, after[path]), path) for path, row in self._before.items() if after.get(path, row) != row]
        if rows == [("changed", _INDEX)] and self._is_same_index():
            self.restore(rows)
            return []
        return rows

    def restore(self, rows: list[tuple[str, str]]) -> None:
        """Undo these changes."""
        for kind, path in sorted(rows, key=lambda row: row[1], reverse=True):
            if kind != "removed" and not stat.S_ISDIR(self._content.get(path, (0, None))[0]):
                remove(path)
        for _, path in sorted(rows, key=lambda row: row[1]):
            if path in self._content:
                write_content(path, *self._content[path])
        self._before = self._snapshot()

    def _is_same_index(self) -> bool:
        """Return True if git only refreshed what it remembers about the files."""
        return index_entries(self._content[_INDEX][1]) == index_entries(Path(_INDEX).read_bytes())


def index_entries(content: bytes) -> list[bytes]:
    """Return the entries of a git index without the times and numbers of the files."""
    entries, start = [], 12
    for _ in range(int.from_bytes(content[8:12], "big")):
        end = content.index(b"\0", start + 62)
        entries.append(content[start + 24 : start + 28] + content[start + 40 : end])
        start += (end - start) // 8 * 8 + 8
    return entries


def _change(before: tuple[int, ...], after: tuple[int, ...]) -> str:
    return "mode" if before[1:4] == after[1:4] else "changed"


def snapshot(root: str) -> Snapshot:
    """Return mode, size, inode and times of everything below a directory."""
    rows: Snapshot = {}
    device = os.stat(root).st_dev
    pending = [root]
    while pending:
        directory = pending.pop()
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if status.st_dev != device:
                continue
            if stat.S_ISDIR(status.st_mode):
                rows[entry.path] = (status.st_mode,)
                pending.append(entry.path)
            else:
                rows[entry.path] = _row(status)
    return rows


def _row(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_mode, status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


def was_read(path: str) -> bool:
    """Return True if the access time, which was set to 0, has changed."""
    try:
        return os.stat(path).st_atime_ns != 0
    except OSError:
        return False


def read_content(path: str) -> tuple[int, Any]:
    """Return mode and content of a file, a link or a directory."""
    mode = os.lstat(path).st_mode
    content = os.readlink(path) if stat.S_ISLNK(mode) else Path(path).read_bytes() if stat.S_ISREG(mode) else None
    return mode, content


def write_content(path: str, mode: int, content: Any) -> None:
    """Write a file, a link or a directory."""
    if stat.S_ISDIR(mode):
        os.makedirs(path, exist_ok=True)
    elif stat.S_ISLNK(mode):
        os.symlink(content, path)
    else:
        Path(path).write_bytes(content)
    if not stat.S_ISLNK(mode):
        os.chmod(path, stat.S_IMODE(mode))


def remove(path: str) -> None:
    """Remove a file, a link or a directory that is there."""
    with suppress(OSError):
        if not os.path.islink(path):
            os.chmod(path, 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)


def run(command: str, setup: dict[str, Any], output: int, resident: set[int]) -> dict[str, Any]:
    """Run one command and end everything it started."""
    os.ftruncate(output, 0)
    os.lseek(output, 0, os.SEEK_SET)
    child = subprocess.Popen(
        ["/bin/bash", "-c", command],
        cwd=PROJECT,
        env=setup["environment"],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    status = None
    if wait(child.pid, setup["seconds"]):
        with suppress(subprocess.TimeoutExpired):
            status = child.wait(timeout=1)
    _wait_for_others(resident)
    end_processes(resident)
    with suppress(subprocess.TimeoutExpired):
        child.wait(timeout=5)
    return {"status": status}


def _available_memory() -> int:
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))


def wait(process: int, seconds: float) -> bool:
    """Wait for the process; return False if it took too long or the memory of the machine runs short."""
    until = time.monotonic() + seconds
    descriptor = os.pidfd_open(process)
    try:
        while time.monotonic() < until:
            if select.select([descriptor], [], [], _POLL_SECONDS)[0]:
                return True
            if _available_memory() < _ENOUGH_MEMORY:
                return False
    finally:
        os.close(descriptor)
    return False


def _wait_for_others(resident: set[int]) -> None:
    """Let processes in the background finish, for a moment."""
    until = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < until and _others(resident):
        time.sleep(0.005)


def _others(resident: set[int]) -> set[int]:
    """Return the running processes that were not there at the start."""
    numbers = {int(name) for name in os.listdir("/proc") if name.isdigit()} - resident
    for number in numbers:
        with suppress(OSError):
            os.waitpid(number, os.WNOHANG)
    return {number for number in numbers if os.path.exists(f"/proc/{number}")}


def end_processes(resident: set[int]) -> None:
    """Kill every process that was not there at the start, and wait for them."""
    while True:
        others = _others(resident)
        if not others:
            return
        for process in others:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.0005)


def canaries_in(output: int, canaries: dict[str, str]) -> list[str]:
    """Return the names of the canaries that the output shows."""
    text = os.pread(output, MAX_OUTPUT, 0)
    return [name for name, value in canaries.items() if value.encode() in text]


if __name__ == "__main__":
    main()
