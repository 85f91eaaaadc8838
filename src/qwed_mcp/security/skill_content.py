"""Content of a skill for its digest: the bytes of a file, or a checksum list of a directory."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

MAX_BYTES = 256 << 20
MAX_FILES = 10_000
_CHUNK = 1 << 20


class SkillContentError(ValueError):
    """The skill has no unambiguous content; the message says why."""


def read_skill_content(path: str | os.PathLike[str]) -> bytes:
    """Return the content that the digest of a skill covers: the bytes of a file, or the checksum list of a directory.

    The list is the output of `sha256sum` for the files, sorted by name. Links and devices raise SkillContentError.
    """
    root = Path(path)
    if not root.is_dir():
        return b"".join(_read_chunks(root, MAX_BYTES))
    bytes_left, lines = MAX_BYTES, []
    for name in sorted(_file_names(root), key=os.fsencode):
        digest = hashlib.sha256()
        for chunk in _read_chunks(root / name, bytes_left):
            digest.update(chunk)
            bytes_left -= len(chunk)
        lines.append(f"{digest.hexdigest()}  {name}\n")
    return "".join(lines).encode()


def _file_names(root: Path) -> Iterator[str]:
    count = 0
    for folder, folders, files in os.walk(root, onerror=_raise):
        for name in (*folders, *files):
            entry = Path(folder, name)
            count += 1
            if count > MAX_FILES:
                raise SkillContentError(f"the skill has more than {MAX_FILES} files")
            if entry.is_symlink():
                raise SkillContentError(f"`{ascii(name)[1:-1]}` is a link, which may point anywhere")
            if not name.isprintable() or "\\" in name:
                raise SkillContentError(f"the name `{ascii(name)[1:-1]}` can be written in more than one way")
        yield from (Path(folder, name).relative_to(root).as_posix() for name in files)


def _raise(error: OSError) -> None:
    raise error


def _read_chunks(file: Path, bytes_left: int) -> Iterator[bytes]:
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    with open(file, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise SkillContentError(f"`{ascii(file.name)[1:-1]}` is not a regular file")
        while chunk := stream.read(_CHUNK):
            bytes_left -= len(chunk)
            if bytes_left < 0:
                raise SkillContentError(f"the skill is larger than {MAX_BYTES} bytes")
            yield chunk
