"""Root shows the interpreter to the user that jobs run as, where it is in a directory that is closed to him.

It does so in a mount namespace of one thread: for everybody else, and every other thread, the directory stays closed.
"""

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

_NEW_MOUNTS = 0x00020000
_NO_SUID, _NO_DEVICES, _BIND, _BELOW, _PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000
_PASS = 0o1


def closed_above(place: Path) -> Path | None:
    """The outermost directory above it that not everybody may pass."""
    for above in reversed(place.parents):
        if not above.stat().st_mode & _PASS:
            return above
    return None


def open_in_this_thread(places: Iterable[Path]) -> None:
    """From now on this thread, and what it starts, sees an open directory with these alone in it; OSError where not."""
    closed = [(place, above) for place in places if (above := closed_above(place))]
    _call("unshare", _NEW_MOUNTS)
    _mount(None, Path("/"), _BELOW | _PRIVATE)
    # Held open before they are covered, and after the namespace was made: only its own mounts can be shown in it.
    held = [(os.open(place, os.O_PATH), place) for place, _ in closed]
    try:
        for above in sorted({above for _, above in closed}):
            _mount("tmpfs", above, _NO_SUID | _NO_DEVICES, "tmpfs", "mode=0755,size=1m")
        for descriptor, place in held:
            _show(descriptor, place)
    finally:
        for descriptor, _ in held:
            os.close(descriptor)


def _show(descriptor: int, place: Path) -> None:
    source = Path(f"/proc/self/fd/{descriptor}")
    if source.is_dir():
        place.mkdir(parents=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    _mount(str(source), place, _BIND | _BELOW)


def _mount(source: str | None, target: Path, flags: int, kind: str | None = None, options: str | None = None) -> None:
    words = [None if word is None else word.encode() for word in (source, str(target), kind, options)]
    _call("mount", words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])


def _call(name: str, *arguments: object) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
