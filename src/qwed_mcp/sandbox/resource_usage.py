"""Total memory of a job's processes; kernel limits apply to each process alone."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress

# Largest tmpfs inode with its name and link target, because a million empty files contain no bytes.
_INODE_BYTES = 2048
_KB = 1024
_RESIDENT = re.compile(rb"^(?:VmRSS|VmSwap|VmPTE|HugetlbPages):\s+(\d+) kB", re.MULTILINE)
_PROPORTIONAL = re.compile(rb"^(?:Pss|SwapPss):\s+(\d+) kB", re.MULTILINE)
# A page that was only read is in no Pss, though its page tables may take two pages.
_NEVER_SHARED = re.compile(rb"^(?:VmPTE|HugetlbPages):\s+(\d+) kB", re.MULTILINE)
_SOCKETS = re.compile(rb"^sockets: used (\d+)", re.MULTILINE)
_INTEGER = re.compile(rb"(\d+)")
_DEFAULT_BUFFER = "/proc/sys/net/core/wmem_default"
_FALLBACK_BUFFER = 212_992


def has_children_files() -> bool:
    """Return True if this kernel lists the children of a process."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def process_tree(root: int) -> Iterator[int]:
    """Yield `root` and its descendants; in a pid namespace, orphans become children of the root."""
    waiting, seen = [root], {root}
    while waiting:
        process = waiting.pop()
        yield process
        new = [child for child in _children(process) if child not in seen]
        seen.update(new)
        waiting += new


def tree_memory(root: int, limit: int) -> int:
    """Return the bytes in memory and swap of `root` and its descendants; near the limit, shared pages count once."""
    processes = [*process_tree(root)]
    resident = sum(_sum_kilobytes(process, "status", _RESIDENT) or 0 for process in processes)
    return (resident if resident * _KB <= limit else sum(map(_proportional_kilobytes, processes))) * _KB


def tmpfs_usage(directory: int) -> int:
    """Return the bytes used by the files and inodes of the tmpfs that contains this descriptor."""
    usage = os.fstatvfs(directory)
    return (usage.f_blocks - usage.f_bfree) * usage.f_frsize + (usage.f_files - usage.f_ffree) * _INODE_BYTES


def socket_buffers(process: int) -> int:
    """Return the most bytes that the sockets of a network namespace can buffer, including unreferenced ones."""
    # A message is accepted while any space is left, and may be as large as the whole buffer.
    return 2 * _socket_buffer_bytes() * _read_number(f"/proc/{process}/net/sockstat", _SOCKETS, 0)


def _socket_buffer_bytes() -> int:
    """Return the default buffer size of a socket."""
    return _read_number(_DEFAULT_BUFFER, _INTEGER, _FALLBACK_BUFFER)


def _read_number(path: str, pattern: re.Pattern[bytes], otherwise: int) -> int:
    try:
        with open(path, "rb") as file:
            match = pattern.search(file.read())
    except OSError:
        return otherwise
    return int(match[1]) if match else otherwise


def _proportional_kilobytes(process: int) -> int:
    """Return the process's share of its pages; a process that hides its maps counts in full."""
    share = _sum_kilobytes(process, "smaps_rollup", _PROPORTIONAL)
    if share is None:
        return _sum_kilobytes(process, "status", _RESIDENT) or 0
    return share + (_sum_kilobytes(process, "status", _NEVER_SHARED) or 0)


def _sum_kilobytes(process: int, name: str, pattern: re.Pattern[bytes]) -> int | None:
    """Sum the matching fields of a /proc file; other threads are tried because the first may have exited."""
    for thread in _threads(process):
        try:
            with open(f"/proc/{process}/task/{thread}/{name}", "rb") as file:
                values = pattern.findall(file.read())
        except OSError:
            continue
        if values:
            return sum(map(int, values))
    return None


def _threads(process: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:
        return []


def _children(process: int) -> Iterator[int]:
    for thread in _threads(process):
        # Children of a thread that is gone belong to another thread or to the root.
        with suppress(OSError), open(f"/proc/{process}/task/{thread}/children", "rb") as file:
            yield from map(int, file.read().split())
