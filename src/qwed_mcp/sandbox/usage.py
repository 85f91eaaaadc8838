"""How much memory the processes of a job hold together: the limit of the kernel holds for each of them alone."""

import os
import re
from collections.abc import Iterator

# An inode of a tmpfs with its name: a million empty files are no bytes of any file.
_INODE = 1024
_KB = 1024
_RESIDENT = re.compile(rb"^(?:VmRSS|VmSwap):\s+(\d+) kB", re.MULTILINE)
_SHARED_OUT = re.compile(rb"^(?:Pss|SwapPss):\s+(\d+) kB", re.MULTILINE)


def can_be_told() -> bool:
    """Whether this kernel names the children of a process."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def processes_below(root: int) -> Iterator[int]:
    """`root` and all that descend from it; whoever loses its parent in a pid namespace becomes a child of its root."""
    waiting, seen = [root], {root}
    while waiting:
        process = waiting.pop()
        yield process
        new = [child for child in _children(process) if child not in seen]
        seen.update(new)
        waiting += new


def memory_of(root: int, limit: int) -> int:
    """Bytes in memory and in swap of `root` and its descendants; pages they share count once where that matters."""
    processes = [*processes_below(root)]
    resident = sum(_kilobytes(process, "status", _RESIDENT) or 0 for process in processes)
    if resident * _KB <= limit:
        return resident * _KB
    return sum(map(_share, processes)) * _KB


def files_of(directory: int) -> int:
    """Bytes that the files and names of a tmpfs hold, given a descriptor in it."""
    found = os.fstatvfs(directory)
    return (found.f_blocks - found.f_bfree) * found.f_frsize + (found.f_files - found.f_ffree) * _INODE


def _share(process: int) -> int:
    """A process may forbid that its pages are looked at: then each counts in full."""
    share = _kilobytes(process, "smaps_rollup", _SHARED_OUT)
    return _kilobytes(process, "status", _RESIDENT) or 0 if share is None else share


def _kilobytes(process: int, file: str, pattern: re.Pattern[bytes]) -> int | None:
    try:
        with open(f"/proc/{process}/{file}", "rb") as shown:
            return sum(map(int, pattern.findall(shown.read())))
    except OSError:
        return None


def _children(process: int) -> Iterator[int]:
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/children", "rb") as shown:
                yield from map(int, shown.read().split())
    except OSError:
        # It is gone, and its children with it or to the root.
        return
