"""Seed 004, SkillProvenanceGuard: the guard under its published name, and the manifest a server is started with."""

import errno
import os
import stat
from pathlib import Path

from qwed.guards.skill import SkillProvenanceGuard, SkillVerdict, blocked, shown
from qwed.words.strict import NotStrict, read_json

__all__ = ["MOST_MANIFEST", "SkillProvenanceGuard", "SkillVerdict", "check_manifest_file"]

MOST_MANIFEST = 1 << 20
"""Bytes of a manifest; one that is larger is not read."""


def check_manifest_file(
    path: str | os.PathLike[str], guard: SkillProvenanceGuard | None = None, *, content: bytes | None = None
) -> SkillVerdict:
    """What the guard says of the manifest in a file; what cannot be read in exactly one way is BLOCKED too."""
    try:
        manifest = read_json(_bytes_of(Path(path)), "the manifest")
    except (OSError, ValueError) as error:
        return blocked("", f"the manifest `{shown(Path(path).name)}` cannot be read: {_reason(error)}")
    return (guard or SkillProvenanceGuard()).verify_skill(manifest, content)


def _bytes_of(path: Path) -> bytes:
    # Opening a pipe waits for its writer, unless it is asked not to.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotStrict("it is no file")
        data = file.read(MOST_MANIFEST + 1)
    if len(data) > MOST_MANIFEST:
        raise NotStrict(f"it is larger than {MOST_MANIFEST} bytes")
    return data


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return os.strerror(error.errno or errno.EIO).lower()
    return "".join(each if each.isprintable() else " " for each in str(error))
