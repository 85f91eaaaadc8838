"""The bytes of a skill: those of its file, or of the list of all files where it is a directory."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 256 << 20
MOST_FILES = 10_000
_CHUNK = 1 << 20


class Unreadable(ValueError):
    """It has no bytes that two people would agree on; the message says why."""


def content_of(path: str | os.PathLike[str]) -> bytes:
    """What the digest of a skill is made of: the bytes of a file, or the list of the files of a directory.

    The list is what `sha256sum` prints for them in the order of their names. Links and devices are Unreadable.
    """
    place = Path(path)
    if not place.is_dir():
        return b"".join(_chunks(place, MOST_BYTES))
    left, lines = MOST_BYTES, []
    for name in sorted(_files(place), key=os.fsencode):
        digest = hashlib.sha256()
        for chunk in _chunks(place / name, left):
            digest.update(chunk)
            left -= len(chunk)
        lines.append(f"{digest.hexdigest()}  {name}\n")
    return "".join(lines).encode()


def _files(place: Path) -> Iterator[str]:
    count = 0
    for folder, folders, files in os.walk(place, onerror=_raise):
        for name in (*folders, *files):
            inside = Path(folder, name)
            count += 1
            if count > MOST_FILES:
                raise Unreadable(f"the skill holds more than {MOST_FILES} files")
            if inside.is_symlink():
                raise Unreadable(f"`{ascii(name)[1:-1]}` is a link, which may lead anywhere")
            if not name.isprintable() or "\\" in name:
                raise Unreadable(f"the name `{ascii(name)[1:-1]}` can be written in more than one way")
        yield from (Path(folder, name).relative_to(place).as_posix() for name in files)


def _raise(error: OSError) -> None:
    raise error


def _chunks(file: Path, most: int) -> Iterator[bytes]:
    # Opening a pipe waits for its writer, unless it is asked not to.
    with open(file, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise Unreadable(f"`{ascii(file.name)[1:-1]}` is no file")
        while chunk := opened.read(_CHUNK):
            most -= len(chunk)
            if most < 0:
                raise Unreadable(f"the skill is larger than {MOST_BYTES} bytes")
            yield chunk
