"""Disks that fill up: a small file system where one can be mounted, else a limit on file size."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qwed.store.data_directory import FILE_NAME
from tests.support.server import Server

MIB = 1 << 20


class SmallDisk:
    """File system in memory whose free space a test takes and gives back."""

    kind = "on a file system of its own"

    def __init__(self, place: Path) -> None:
        self.place = place

    @contextmanager
    def full(self, _server: Server | None, leave: int) -> Iterator[None]:
        """Leave this many bytes free inside the block."""
        ballast = self.place / "ballast"
        with ballast.open("wb", buffering=0) as file:
            found = os.statvfs(self.place)
            os.posix_fallocate(file.fileno(), 0, max(found.f_bavail * found.f_frsize - leave, 1))
            yield
        ballast.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Mount it read-only inside the block; only while no file is open for writing."""
        subprocess.run(["mount", "-o", "remount,ro", str(self.place)], check=True)
        yield
        subprocess.run(["mount", "-o", "remount,rw", str(self.place)], check=True)


class LimitedFiles:
    """Fallback without mounts: the kernel refuses to let any file of the server grow."""

    kind = "under a limit on the size of files"

    def __init__(self, place: Path) -> None:
        self.place = place

    @contextmanager
    def full(self, server: Server | None, leave: int) -> Iterator[None]:
        """Limit every file to the current size of the database log plus this many bytes."""
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
    """Yield a disk that can be filled: a file system of its own if this process may mount one."""
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
