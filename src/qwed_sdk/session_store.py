"""Step counters of a session, stored between the processes of a hook: one small file each, locked by one process.

A number is stored as used before the request is sent, and released if the server refused it. A crash in between never
uses a number twice.
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

from qwed.model.defaults import HomeDirectoryError, expand_home
from qwed.model.private_files import write_private
from qwed_sdk.errors import UsageError

T = TypeVar("T")

RETENTION_SECONDS = 30 * 24 * 3600
MAX_ENTRIES = 200
_MAX_FILE_BYTES = 1 << 18
_MAX_SWEPT_FILES = 1_000
_STATE, _LOCK = ".json", ".lock"
_FIELD_TYPES = {"steps": int, "calls": str, "waiting": str}
"""Fields of a session, and the type of their values."""
_OPEN_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(slots=True)
class HookSession:
    """Stored state of one session; call `save` after every change."""

    file: Path
    steps: dict[str, int] = field(default_factory=dict)
    """Last used step number by turn."""
    calls: dict[str, str] = field(default_factory=dict)
    """Action id by call, to report its outcome."""
    waiting: dict[str, str] = field(default_factory=dict)
    """Action id and approval id by fingerprint of a call that waits for a person."""

    def save(self) -> None:
        """Replace the file atomically."""
        entries = {name: _newest(getattr(self, name)) for name in _FIELD_TYPES}
        write_private(self.file, json.dumps(entries).encode(), durable=False)


def _newest(entries: dict[str, T]) -> dict[str, T]:
    return dict(list(entries.items())[-MAX_ENTRIES:])


def hashed_name(*parts: str) -> str:
    """Return a file name that does not reveal its parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def session_directory() -> Path:
    """Return the directory of the session files; create it, private to its owner, if it is missing."""
    try:
        path = expand_home("~/.qwed/hook")
    except HomeDirectoryError as error:
        raise UsageError(str(error)) from None
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise UsageError(f"{path} cannot be used: {error.strerror}") from None
    return path


@contextlib.contextmanager
def locked_session(name: str) -> Iterator[HookSession]:
    """Lock a session against other processes, and yield it."""
    directory = session_directory()
    try:
        lock = _lock_file(directory / f"{name}{_LOCK}")
    except OSError as error:
        raise UsageError(f"{directory} cannot be used: {error.strerror}") from None
    try:
        file = directory / f"{name}{_STATE}"
        if not file.exists():
            remove_expired(directory)
        yield _read_session(file)
    except OSError as error:
        raise UsageError(f"the step counter in {directory} cannot be stored: {error.strerror or error}") from None
    finally:
        os.close(lock)


def _lock_file(file: Path) -> int:
    while True:
        lock = os.open(file, os.O_RDWR | os.O_CREAT | _OPEN_FLAGS, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(file)):
                return lock
        os.close(lock)  # the file was removed while we waited: another process may have locked its successor


def _read_session(file: Path) -> HookSession:
    try:
        handle = os.open(file, os.O_RDONLY | _OPEN_FLAGS)
    except FileNotFoundError:
        return HookSession(file)
    with os.fdopen(handle, "rb") as source:
        data = source.read(_MAX_FILE_BYTES + 1)
    fields = _decode_session(data)
    if fields is None:
        raise UsageError(f"{file} is damaged: delete it; used step numbers are then skipped")
    return HookSession(file, **fields)


def _decode_session(data: bytes) -> dict[str, dict[str, Any]] | None:
    try:
        fields = json.loads(data) if len(data) <= _MAX_FILE_BYTES else None
    except (ValueError, RecursionError):
        return None
    if isinstance(fields, dict) and all(_is_valid_field(fields.get(name), kind) for name, kind in _FIELD_TYPES.items()):
        return {name: fields[name] for name in _FIELD_TYPES}
    return None


def _is_valid_field(entries: Any, kind: type) -> bool:
    if not isinstance(entries, dict) or not all(type(value) is kind for value in entries.values()):
        return False
    return kind is not int or min(entries.values(), default=0) >= 0


def remove_expired(directory: Path, now: float | None = None) -> None:
    """Remove files that no session has used for a month."""
    oldest = (time.time() if now is None else now) - RETENTION_SECONDS
    with os.scandir(directory) as entries:
        for entry, _ in zip(entries, range(_MAX_SWEPT_FILES), strict=False):
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < oldest:
                    _remove_if_unlocked(Path(entry.path))


def _remove_if_unlocked(file: Path) -> None:
    """Remove one file, unless a process has locked its session."""
    lock = os.open(file.with_suffix(_LOCK), os.O_RDWR | os.O_CREAT | _OPEN_FLAGS, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink()
    finally:
        os.close(lock)
