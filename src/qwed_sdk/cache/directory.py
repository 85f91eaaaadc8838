"""Directory and files of a cache, private to their owner."""

import os
import stat
from pathlib import Path

from qwed.model.defaults import HomeDirectoryError, expand_home
from qwed_sdk.cache.cache_errors import CacheError

DEFAULT_DIRECTORY = "~/.qwed/cache"
FILE_NAME = "cache.db"
SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")
_GROUP_AND_OTHERS = 0o077
_CACHE_SUFFIXES = (".db", *(f".db{companion}" for companion in SQLITE_SUFFIXES))


def cache_directory(path: str | os.PathLike[str] | None) -> Path:
    """Return the absolute path of the directory, so that it stays the same after a `chdir`."""
    if path is not None and not os.fspath(path):
        raise CacheError("`cache_dir` is empty: leave it out, or name a directory")
    try:
        return expand_home(DEFAULT_DIRECTORY if path is None else path).absolute()
    except HomeDirectoryError as error:
        raise CacheError(str(error)) from None


def prepare_files(directory: Path) -> Path:
    """Create the directory and the file, both private, and return the file; raise CacheError if that fails."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(directory)
        file = directory / FILE_NAME
        _create_private(file)
        for name in cache_files(file):
            _require_private(name)
    except CacheError:
        raise
    except OSError as error:
        raise CacheError(f"`{directory}` cannot be used for a cache: {error.strerror or error}") from error
    return file


def cache_files(file: Path) -> list[Path]:
    """Return the file of a cache and the files that SQLite creates next to it."""
    return [file, *(file.with_name(f"{file.name}{suffix}") for suffix in SQLITE_SUFFIXES)]


def file_identity(file: Path) -> tuple[int, ...]:
    """Return device and inode of the files: SQLite keeps using a removed file, which no other process sees."""
    return _inode_of(file) + _inode_of(f"{file}-wal")


def _inode_of(file: str | Path) -> tuple[int, ...]:
    try:
        status = os.stat(file)
    except OSError:
        return ()
    return status.st_dev, status.st_ino


def total_size(file: Path) -> int:
    """Return the size of all files in bytes."""
    return sum(_file_size(name) for name in cache_files(file))


def remove_files(file: Path) -> None:
    """Remove the files of a cache."""
    for name in cache_files(file):
        name.unlink(missing_ok=True)


def _file_size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _create_private(file: Path) -> None:
    """Create the file, empty and private, if it is missing: SQLite would use the umask."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        return


def _make_private(directory: Path) -> None:
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise CacheError(f"`{directory}` is a link or not a directory: name the directory itself")
    _require_owner(directory, status)
    if not status.st_mode & _GROUP_AND_OTHERS:
        return
    # A home directory, `/tmp` or a project that was named by mistake must not be closed to others.
    if status.st_mode & stat.S_ISVTX or not _has_only_cache_files(directory):
        raise CacheError(
            f"`{directory}` is open to other users and contains other files: name a directory for the cache alone"
        )
    directory.chmod(0o700)


def _has_only_cache_files(directory: Path) -> bool:
    return all(name.endswith(_CACHE_SUFFIXES) for name in os.listdir(directory))


def _require_private(file: Path) -> None:
    try:
        status = file.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise CacheError(f"`{file}` is a link or not a regular file: remove it")
    _require_owner(file, status)
    if status.st_mode & _GROUP_AND_OTHERS:
        file.chmod(0o600)


def _require_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise CacheError(f"`{path}` belongs to another user: name a directory of your own")
