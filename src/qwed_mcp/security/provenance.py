"""Check of the skill manifest a server is started with (seed 004, SkillProvenanceGuard)."""

import errno
import os
import stat
from pathlib import Path

from qwed.guards.skill_manifest import SkillProvenanceGuard, SkillVerdict, blocked_verdict, display_text
from qwed.model.strict_json import StrictJsonError, parse_strict_json

__all__ = ["MAX_MANIFEST_BYTES", "SkillProvenanceGuard", "SkillVerdict", "check_manifest_file"]

MAX_MANIFEST_BYTES = 1 << 20
"""Largest manifest that is read."""


def check_manifest_file(
    path: str | os.PathLike[str], guard: SkillProvenanceGuard | None = None, *, content: bytes | None = None
) -> SkillVerdict:
    """Return the guard's verdict on a manifest file; an unreadable or ambiguous file is BLOCKED."""
    try:
        manifest = parse_strict_json(_read_manifest(Path(path)), "the manifest")
    except (OSError, ValueError) as error:
        return blocked_verdict(
            "", f"the manifest `{display_text(Path(path).name)}` cannot be read: {_reason_of(error)}"
        )
    return (guard or SkillProvenanceGuard()).verify_skill(manifest, content)


def _read_manifest(path: Path) -> bytes:
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise StrictJsonError("it is not a regular file")
        data = file.read(MAX_MANIFEST_BYTES + 1)
    if len(data) > MAX_MANIFEST_BYTES:
        raise StrictJsonError(f"it is larger than {MAX_MANIFEST_BYTES} bytes")
    return data


def _reason_of(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return os.strerror(error.errno or errno.EIO).lower()
    return "".join(char if char.isprintable() else " " for char in str(error))
