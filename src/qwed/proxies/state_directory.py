"""State directory of a proxy: one per program behind it, accessible to its owner only."""

import json
import os
import stat
from pathlib import Path
from typing import Any

from qwed.model.defaults import HomeDirectoryError, expand_home
from qwed.model.private_files import write_private
from qwed_sdk.errors import UsageError

_MAX_FILE_BYTES = 1 << 20
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


def ensure_state_directory(protocol: str, name: str) -> Path:
    """Return the directory of one server or agent, created if needed; raise UsageError if it cannot be used."""
    try:
        path = expand_home(f"~/.qwed/{protocol}") / name
        # One mkdir per level: parents that mkdir creates implicitly get the mode of the umask.
        for directory in (path.parent.parent, path.parent, path):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o700)
    except HomeDirectoryError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{error.filename or f'~/.qwed/{protocol}'} cannot be used: {error.strerror}") from None
    return path


def read_json_object(file: Path) -> dict[str, Any] | None:
    """Return the JSON object in the file, or None if it has none that can be read."""
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | _FLAGS), "rb") as source:
            data = source.read(_MAX_FILE_BYTES + 1)
        value = json.loads(data) if len(data) <= _MAX_FILE_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def write_json_object(file: Path, members: dict[str, Any]) -> None:
    """Replace the file atomically, readable by its owner only; raise UsageError if it cannot be written."""
    try:
        write_private(file, json.dumps(members).encode())
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
