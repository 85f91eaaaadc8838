"""Where a cache lives: a directory and files that their owner alone can read."""

import os
import stat
from pathlib import Path

from qwed.words.home import NoHome, from_home
from qwed_sdk.cache.errors import CacheError

DEFAULT = "~/.qwed/cache"
FILE_NAME = "cache.db"
COMPANIONS = ("-wal", "-shm", "-journal")
_OTHERS = 0o077
_OURS = (".db", *(f".db{companion}" for companion in COMPANIONS))


def directory_of(named: str | os.PathLike[str] | None) -> Path:
    """The directory that is meant, from the root on: a program that changes its directory keeps its cache."""
    if named is not None and not os.fspath(named):
        raise CacheError("no directory is named: leave `cache_dir` out, or name one")
    try:
        return from_home(DEFAULT if named is None else named).absolute()
    except NoHome as error:
        raise CacheError(str(error)) from None


def prepare(directory: Path) -> Path:
    """The file of the cache in its directory, both private; CacheError where they are not ours to make so."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(directory)
        file = directory / FILE_NAME
        _create(file)
        for name in names(file):
            _require_private(name)
    except CacheError:
        raise
    except OSError as error:
        raise CacheError(f"`{directory}` cannot hold a cache: {error.strerror or error}") from error
    return file


def names(file: Path) -> list[Path]:
    """The file of a cache and those that SQLite keeps beside it."""
    return [file, *(file.with_name(f"{file.name}{companion}") for companion in COMPANIONS)]


def identity(file: Path) -> tuple[int, ...]:
    """Which files stand there now: SQLite goes on with what was removed, and nobody else sees it."""
    return _identity(file) + _identity(f"{file}-wal")


def _identity(file: str | Path) -> tuple[int, ...]:
    try:
        status = os.stat(file)
    except OSError:
        return ()
    return status.st_dev, status.st_ino


def size(file: Path) -> int:
    """The bytes that the cache takes on the disk."""
    return sum(_length(name) for name in names(file))


def remove(file: Path) -> None:
    """Take the files of a cache away."""
    for name in names(file):
        name.unlink(missing_ok=True)


def _length(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _create(file: Path) -> None:
    """Make the file, empty and private, where there is none: SQLite would leave it to the umask."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        return


def _make_private(directory: Path) -> None:
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise CacheError(f"`{directory}` is a link or no directory: name the directory itself")
    _require_owner(directory, status)
    if not status.st_mode & _OTHERS:
        return
    # Somebody's home, `/tmp` or a project is not closed to others because it was named by mistake.
    if status.st_mode & stat.S_ISVTX or not _holds_caches_alone(directory):
        raise CacheError(f"`{directory}` is open to others and holds more than a cache: name a directory of its own")
    directory.chmod(0o700)


def _holds_caches_alone(directory: Path) -> bool:
    return all(name.endswith(_OURS) for name in os.listdir(directory))


def _require_private(file: Path) -> None:
    try:
        status = file.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise CacheError(f"`{file}` is a link or no file: remove it")
    _require_owner(file, status)
    if status.st_mode & _OTHERS:
        file.chmod(0o600)


def _require_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise CacheError(f"`{path}` belongs to another user: name a directory of your own")
