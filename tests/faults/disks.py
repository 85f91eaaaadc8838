"""Disks that fill up: a small file system where one can be made, else a limit on how far a file may grow."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qwed.store.place import FILE_NAME
from tests.support.server import Server

MIB = 1 << 20


class SmallDisk:
    """A file system of its own, in memory; what is left of it is taken and given back."""

    kind = "on a file system of its own"

    def __init__(self, place: Path) -> None:
        self.place = place

    @contextmanager
    def full(self, _server: Server | None, leave: int) -> Iterator[None]:
        """So many bytes are left, for as long as this lasts."""
        ballast = self.place / "ballast"
        with ballast.open("wb", buffering=0) as file:
            found = os.statvfs(self.place)
            os.posix_fallocate(file.fileno(), 0, max(found.f_bavail * found.f_frsize - leave, 1))
            yield
        ballast.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Nothing can be written at all; only while nobody has a file open for writing."""
        subprocess.run(["mount", "-o", "remount,ro", str(self.place)], check=True)
        yield
        subprocess.run(["mount", "-o", "remount,rw", str(self.place)], check=True)


class LimitedFiles:
    """Where no file system can be made: no file of the server grows further, and the error comes from the kernel."""

    kind = "under a limit on the size of files"

    def __init__(self, place: Path) -> None:
        self.place = place

    @contextmanager
    def full(self, server: Server | None, leave: int) -> Iterator[None]:
        """No file grows past what the log of the database has now and so many bytes more."""
        whom = 0 if server is None else server.process.pid
        log = self.place / "data" / f"{FILE_NAME}-wal"
        size = log.stat().st_size if log.exists() else 0
        _soft, hard = resource.prlimit(whom, resource.RLIMIT_FSIZE)
        resource.prlimit(whom, resource.RLIMIT_FSIZE, (size + leave, hard))
        try:
            yield
        finally:
            resource.prlimit(whom, resource.RLIMIT_FSIZE, (hard, hard))


Disk = SmallDisk | LimitedFiles


@contextmanager
def small_disk(place: Path, size: int = 8 * MIB) -> Iterator[Disk]:
    """A disk that can be filled: one of its own where this process may make one."""
    place.mkdir()
    made = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "qwed-drill", str(place)],
        capture_output=True,
        check=False,
    )
    if not made or made.returncode:
        yield LimitedFiles(place)
        return
    try:
        yield SmallDisk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
