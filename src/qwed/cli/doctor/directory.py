"""Checks of the data directory: permissions, secrets, use by a server, disk space."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from qwed.cli.doctor.check_result import DoctorCheck, broken, fine, warning

_DATABASE = "qwed.db"
_LOCK = "lock"
_VAULT = "vault.key"
_SECRETS = ("owner.key", "signing.key", _VAULT)
_NEEDED = {
    "signing.key": "if it is lost, `qwed keys rotate` creates a new one",
    _VAULT: "content cannot be decrypted without it",
}
_OTHERS = 0o077
_LOW_SPACE, _NO_SPACE = 1 << 30, 100 << 20
"""Free bytes: a warning below the first value, broken below the second."""
_NAME = "data directory"


def check_directory(directory: Path, *, shared: bool = False) -> Iterator[DoctorCheck]:
    """Check the directory without writing; with `shared`, the database is elsewhere."""
    try:
        mode = directory.stat().st_mode & 0o777
        names = set(os.listdir(directory))
    except FileNotFoundError:
        yield fine(_NAME, f"{directory} does not exist yet: the first `qwed serve` creates it")
        yield from _check_disk(_nearest_existing(directory))
        return
    except NotADirectoryError:
        yield broken(_NAME, f"{directory} is not a directory", "choose another with --data-dir or QWED_DATA_DIR")
        return
    except OSError as error:
        yield broken(
            _NAME, f"{directory} cannot be read: {error.strerror}", "run this command as the user of the server"
        )
        return
    yield _check_permissions_and_use(directory, mode, names, shared=shared)
    yield from _check_secrets(directory, names)
    yield from _check_disk(directory)


def _check_permissions_and_use(directory: Path, mode: int, names: set[str], *, shared: bool) -> DoctorCheck:
    if mode & _OTHERS:
        advice = f"run `chmod 700 {directory}`"
        return warning(_NAME, f"{directory} is accessible to other users (mode {mode:o})", advice)
    if is_locked(directory / _LOCK):
        return fine(_NAME, f"{directory}, in use by a running server")
    if shared and _NEEDED.keys() <= names:
        return fine(_NAME, f"{directory}, with the keys of a server on PostgreSQL")
    if _DATABASE in names:
        return fine(_NAME, f"{directory}, no server runs on it")
    if not shared and _VAULT in names:
        advice = "restore it from a backup, or set QWED_DATABASE_URL to the PostgreSQL it was copied to"
        return broken(_NAME, f"{directory} has keys, but its database is missing", advice)
    return fine(_NAME, f"{directory}, empty, no server has started on it yet")


def is_locked(file: Path) -> bool:
    """Return True if a process holds the lock; tested with a shared lock that is released at once."""
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


def _check_secrets(directory: Path, names: set[str]) -> Iterator[DoctorCheck]:
    all_fine = True
    for check in _secret_problems(directory, names):
        all_fine = False
        yield check
    present = [name for name in _SECRETS if name in names]
    if all_fine and present:
        yield fine("secrets", f"{', '.join(present)}: readable only by you")


def _secret_problems(directory: Path, names: set[str]) -> Iterator[DoctorCheck]:
    for name in _SECRETS:
        file = directory / name
        if name in names:
            mode = _mode_of(file)
            if mode is None:
                yield broken("secrets", f"{file} is a broken link or cannot be accessed", "restore it from a backup")
            elif mode & _OTHERS:
                yield broken(
                    "secrets", f"{file} is accessible to other users (mode {mode:o})", f"run `chmod 600 {file}`"
                )
    if _DATABASE in names:
        yield from check_missing_secrets(directory, names)


def check_missing_secrets(directory: Path, names: set[str]) -> Iterator[DoctorCheck]:
    """Report missing keys without which the database cannot be read or extended."""
    for name, why in _NEEDED.items():
        if name not in names and not _is_kept_elsewhere(name):
            yield broken("secrets", f"{directory / name} is missing", f"restore it from a backup; {why}")


def _mode_of(file: Path) -> int | None:
    try:
        return file.stat().st_mode & 0o777
    except OSError:
        return None


def _is_kept_elsewhere(name: str) -> bool:
    return name == "signing.key" and bool(os.environ.get("QWED_SIGNING_KEY_FILE"))


def _nearest_existing(directory: Path) -> Path:
    """Return the directory, or its nearest existing parent."""
    return next(path for path in (directory, *directory.absolute().parents) if path.exists())


def _check_disk(path: Path) -> Iterator[DoctorCheck]:
    try:
        free = shutil.disk_usage(path).free
    except OSError as error:
        yield warning("disk space", f"unknown for {path}: {error.strerror}", "check it with `df`")
        return
    message = f"{free / (1 << 30):.1f} GiB free"
    if free < _LOW_SPACE:
        result = broken if free < _NO_SPACE else warning
        yield result("disk space", message, "free disk space: a decision that cannot be written is denied")
    else:
        yield fine("disk space", message)
