"""The steps of a session, kept between the processes of a hook: one small file each, held by one process at a time.

A number is written down as used before the server is asked, and given back where the server refused it: whatever
happens in between, no number is used twice.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from qwed.words.home import NoHome, from_home
from qwed_sdk.hook.call import Unusable

T = TypeVar("T")

KEPT_SECONDS = 30 * 24 * 3600
MOST_KEPT = 200
_LARGEST = 1 << 18
_SWEPT = 1_000
_STATE, _LOCK = ".json", ".lock"
_KEPT = {"steps": int, "calls": str, "waiting": str}
"""What is kept of a session: names, and what stands under each."""
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(slots=True)
class Session:
    """What is known of one session; `save` after every change."""

    file: Path
    steps: dict[str, int] = field(default_factory=dict)
    """The last number that was used, in each turn of the session."""
    calls: dict[str, str] = field(default_factory=dict)
    """Which action a call of the agent is, so that its outcome can be told."""
    waiting: dict[str, str] = field(default_factory=dict)
    """Which action a person has yet to decide on, and its approval, so that asking again finds the decision."""

    def save(self) -> None:
        """Write it as a whole, or leave what was there."""
        written = self.file.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600), "w") as out:
            json.dump({name: _newest(getattr(self, name)) for name in _KEPT}, out)
        os.replace(written, self.file)


def _newest(kept: dict[str, T]) -> dict[str, T]:
    return dict(list(kept.items())[-MOST_KEPT:])


def name_of(*parts: str) -> str:
    """The name of a session's file: nothing of what the session is called can be read from it."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def directory() -> Path:
    """Where the files are: made at need, for its owner alone."""
    try:
        place = from_home("~/.qwed/hook")
    except NoHome as error:
        raise Unusable(str(error)) from None
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if stat.S_IMODE(place.stat().st_mode) & 0o077:
            place.chmod(0o700)
    except OSError as error:
        raise Unusable(f"{place} cannot be used: {error.strerror}") from None
    return place


@contextlib.contextmanager
def held(name: str) -> Iterator[Session]:
    """The session, while no other process has it."""
    place = directory()
    try:
        lock = _locked(place / f"{name}{_LOCK}")
    except OSError as error:
        raise Unusable(f"{place} cannot be used: {error.strerror}") from None
    try:
        file = place / f"{name}{_STATE}"
        if not file.exists():
            sweep(place)
        yield _read(file)
    except OSError as error:
        raise Unusable(f"the count of steps in {place} cannot be kept: {error.strerror or error}") from None
    finally:
        os.close(lock)


def _locked(file: Path) -> int:
    while True:
        lock = os.open(file, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(file)):
                return lock
        os.close(lock)  # it was swept away while we waited: another process may hold its successor


def _read(file: Path) -> Session:
    try:
        handle = os.open(file, os.O_RDONLY | _FLAGS)
    except FileNotFoundError:
        return Session(file)
    with os.fdopen(handle, "rb") as source:
        data = source.read(_LARGEST + 1)
    found = _decoded(data)
    if found is None:
        raise Unusable(f"{file} is broken: delete it, and the numbers the server knows are skipped")
    return Session(file, **found)


def _decoded(data: bytes) -> dict[str, dict[str, Any]] | None:
    try:
        found = json.loads(data) if len(data) <= _LARGEST else None
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict) and all(_is_kept(found.get(name), kind) for name, kind in _KEPT.items()):
        return {name: found[name] for name in _KEPT}
    return None


def _is_kept(found: Any, kind: type) -> bool:
    if not isinstance(found, dict) or not all(type(each) is kind for each in found.values()):
        return False
    return kind is not int or min(found.values(), default=0) >= 0


def sweep(place: Path, now: float | None = None) -> None:
    """Remove what no session has used for a month."""
    oldest = (time.time() if now is None else now) - KEPT_SECONDS
    with os.scandir(place) as entries:
        for entry, _ in zip(entries, range(_SWEPT), strict=False):
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    _remove(Path(entry.path))


def _remove(file: Path) -> None:
    """Remove one file, unless a process holds the session it belongs to."""
    lock = os.open(file.with_suffix(_LOCK), os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink()
    finally:
        os.close(lock)
