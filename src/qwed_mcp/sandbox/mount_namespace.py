"""Bind mounts that make an interpreter in a private directory visible to the user that jobs run as.

The mounts are in a mount namespace of one thread; for other threads and processes the directory stays closed.
"""

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

_NEW_MOUNTS = 0x00020000
_NO_SUID, _NO_DEVICES, _BIND_MOUNT, _RECURSIVE, _PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000
_OTHERS_EXECUTE = 0o1


def closed_ancestor(path: Path) -> Path | None:
    """Return the outermost directory above the path that not every user may enter, or None."""
    for ancestor in reversed(path.parents):
        if not ancestor.stat().st_mode & _OTHERS_EXECUTE:
            return ancestor
    return None


def expose_in_this_thread(paths: Iterable[Path]) -> None:
    """Show this thread and its children open directories with only these paths in them; raise OSError on failure."""
    closed = [(path, ancestor) for path in paths if (ancestor := closed_ancestor(path))]
    _libc_call("unshare", _NEW_MOUNTS)
    _mount(None, Path("/"), _RECURSIVE | _PRIVATE)
    # Opened after unshare, because only mounts of this namespace can be bound, and before tmpfs covers them.
    descriptors = [(os.open(path, os.O_PATH), path) for path, _ in closed]
    try:
        for ancestor in sorted({ancestor for _, ancestor in closed}):
            _mount("tmpfs", ancestor, _NO_SUID | _NO_DEVICES, "tmpfs", "mode=0755,size=1m")
        for descriptor, path in descriptors:
            _bind(descriptor, path)
    finally:
        for descriptor, _ in descriptors:
            os.close(descriptor)


def _bind(descriptor: int, path: Path) -> None:
    source = Path(f"/proc/self/fd/{descriptor}")
    if source.is_dir():
        path.mkdir(parents=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    _mount(str(source), path, _BIND_MOUNT | _RECURSIVE)


def _mount(source: str | None, target: Path, flags: int, kind: str | None = None, options: str | None = None) -> None:
    words = [None if word is None else word.encode() for word in (source, str(target), kind, options)]
    _libc_call("mount", words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])


def _libc_call(name: str, *arguments: object) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
