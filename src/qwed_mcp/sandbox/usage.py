"""How much memory the processes of a job hold together: the limit of the kernel holds for each of them alone."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress

# An inode of a tmpfs with a name and a target as long as can be: a million empty files are no bytes of any file.
_INODE = 2048
_KB = 1024
_HELD = re.compile(rb"^(?:VmRSS|VmSwap|VmPTE|HugetlbPages):\s+(\d+) kB", re.MULTILINE)
_SHARED_OUT = re.compile(rb"^(?:Pss|SwapPss):\s+(\d+) kB", re.MULTILINE)
# A page that is only looked at is nobody's, and the tables that lead to it may be two pages.
_NEVER_SHARED = re.compile(rb"^(?:VmPTE|HugetlbPages):\s+(\d+) kB", re.MULTILINE)
_SOCKETS = re.compile(rb"^sockets: used (\d+)", re.MULTILINE)
_WHOLE = re.compile(rb"(\d+)")
_DEFAULT_BUFFER = "/proc/sys/net/core/wmem_default"
_USUAL_BUFFER = 212_992


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
    held = sum(_kilobytes(process, "status", _HELD) or 0 for process in processes)
    return (held if held * _KB <= limit else sum(map(_share, processes))) * _KB


def files_of(directory: int) -> int:
    """Bytes that the files and names of a tmpfs hold, given a descriptor in it."""
    found = os.fstatvfs(directory)
    return (found.f_blocks - found.f_bfree) * found.f_frsize + (found.f_files - found.f_ffree) * _INODE


def sockets_of(process: int) -> int:
    """Bytes that can wait in the sockets of its network namespace, also in those that nobody holds any more."""
    # A message is taken while there is any room, and is at most as large as all of it.
    return 2 * _buffer() * _number(f"/proc/{process}/net/sockstat", _SOCKETS, 0)


def _buffer() -> int:
    """Bytes that a socket has room for."""
    return _number(_DEFAULT_BUFFER, _WHOLE, _USUAL_BUFFER)


def _number(file: str, pattern: re.Pattern[bytes], otherwise: int) -> int:
    try:
        with open(file, "rb") as shown:
            found = pattern.search(shown.read())
    except OSError:
        return otherwise
    return int(found[1]) if found else otherwise


def _share(process: int) -> int:
    """A process may forbid that its pages are looked at: then each counts in full."""
    share = _kilobytes(process, "smaps_rollup", _SHARED_OUT)
    if share is None:
        return _kilobytes(process, "status", _HELD) or 0
    return share + (_kilobytes(process, "status", _NEVER_SHARED) or 0)


def _kilobytes(process: int, file: str, pattern: re.Pattern[bytes]) -> int | None:
    """The sum of what is found; a process goes on without its first thread, of which then nothing can be told."""
    for thread in _threads(process):
        try:
            with open(f"/proc/{process}/task/{thread}/{file}", "rb") as shown:
                found = pattern.findall(shown.read())
        except OSError:
            continue
        if found:
            return sum(map(int, found))
    return None


def _threads(process: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:
        return []


def _children(process: int) -> Iterator[int]:
    for thread in _threads(process):
        # Where it is gone its children are another's, of this process or the root.
        with suppress(OSError), open(f"/proc/{process}/task/{thread}/children", "rb") as shown:
            yield from map(int, shown.read().split())
