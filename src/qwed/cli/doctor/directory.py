"""The data directory: whose it is, who may read its secrets, what is missing in it, who is using it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from qwed.cli.doctor.finding import Finding, broken, fine, warning

_DATABASE = "qwed.db"
_LOCK = "lock"
_VAULT = "vault.key"
_SECRETS = ("owner.key", "signing.key", _VAULT)
_NEEDED = {
    "signing.key": "`qwed keys rotate` makes another where it is lost",
    _VAULT: "content opens with no other",
}
_OTHERS = 0o077
_LITTLE, _TOO_LITTLE = 1 << 30, 100 << 20
"""Free bytes: a warning below the first, broken below the second."""
_NAME = "data directory"


def look_at_directory(directory: Path, *, shared: bool = False) -> Iterator[Finding]:
    """Everything about it; nothing is written. Where the database is `shared`, it lies elsewhere."""
    try:
        mode = directory.stat().st_mode & 0o777
        names = set(os.listdir(directory))
    except FileNotFoundError:
        yield fine(_NAME, f"{directory} is not there yet: the first `qwed serve` makes it")
        yield from _disk(_nearest(directory))
        return
    except NotADirectoryError:
        yield broken(_NAME, f"{directory} is no directory", "name another with --data-dir or QWED_DATA_DIR")
        return
    except OSError as error:
        yield broken(_NAME, f"{directory} cannot be read: {error.strerror}", "look as the user that the server runs as")
        return
    yield _itself(directory, mode, names, shared=shared)
    yield from _secrets(directory, names)
    yield from _disk(directory)


def _itself(directory: Path, mode: int, names: set[str], *, shared: bool) -> Finding:
    if mode & _OTHERS:
        advice = f"run `chmod 700 {directory}`"
        return warning(_NAME, f"{directory} is open to others (mode {mode:o})", advice)
    if _is_locked(directory / _LOCK):
        return fine(_NAME, f"{directory}, in use by a running server")
    if shared and _NEEDED.keys() <= names:
        return fine(_NAME, f"{directory}, with the keys of a server on PostgreSQL")
    if _DATABASE in names:
        return fine(_NAME, f"{directory}, no server runs on it")
    if not shared and _VAULT in names:
        advice = "restore it from a backup, or set QWED_DATABASE_URL to the PostgreSQL it was copied to"
        return broken(_NAME, f"{directory} has keys, and the database they are of is gone", advice)
    return fine(_NAME, f"{directory}, empty, no server has started on it yet")


def _is_locked(file: Path) -> bool:
    """Whether somebody holds it; asked with a shared lock, which is given back at once."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _secrets(directory: Path, names: set[str]) -> Iterator[Finding]:
    before = True
    for finding in _wrong_secrets(directory, names):
        before = False
        yield finding
    there = [name for name in _SECRETS if name in names]
    if before and there:
        yield fine("secrets", f"{', '.join(there)}: readable by you alone")


def _wrong_secrets(directory: Path, names: set[str]) -> Iterator[Finding]:
    for name in _SECRETS:
        file = directory / name
        if name in names:
            mode = _mode_of(file)
            if mode is None:
                yield broken("secrets", f"{file} leads nowhere, or may not be looked at", "restore it from a backup")
            elif mode & _OTHERS:
                yield broken("secrets", f"{file} is open to others (mode {mode:o})", f"run `chmod 600 {file}`")
    if _DATABASE in names:
        yield from missing_secrets(directory, names)


def missing_secrets(directory: Path, names: set[str]) -> Iterator[Finding]:
    """The keys without which what is in the database cannot be read, or nothing can be added to it."""
    for name, why in _NEEDED.items():
        if name not in names and not _kept_elsewhere(name):
            yield broken("secrets", f"{directory / name} is missing", f"restore it from a backup; {why}")


def _mode_of(file: Path) -> int | None:
    try:
        return file.stat().st_mode & 0o777
    except OSError:
        return None


def _kept_elsewhere(name: str) -> bool:
    return name == "signing.key" and bool(os.environ.get("QWED_SIGNING_KEY_FILE"))


def _nearest(directory: Path) -> Path:
    """The directory, or the one that it would be made in."""
    return next(place for place in (directory, *directory.absolute().parents) if place.exists())


def _disk(place: Path) -> Iterator[Finding]:
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        yield warning("disk space", f"cannot be told for {place}: {error.strerror}", "look at it with `df`")
        return
    shown = f"{free / (1 << 30):.1f} GiB are free"
    if free < _LITTLE:
        kind = broken if free < _TOO_LITTLE else warning
        yield kind("disk space", shown, "free some: a decision that cannot be written is not given")
    else:
        yield fine("disk space", shown)
