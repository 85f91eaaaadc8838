"""Default server URL and paths below the home directory."""

import os
from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:8000"
"""An address, not a name: `localhost` may resolve to IPv6 first, and a server listens on IPv4."""


class HomeDirectoryError(OSError):
    """HOME is missing or relative; the message says what to set."""


def expand_home(path: str | os.PathLike[str]) -> Path:
    """Return the path with `~` expanded.

    Raise HomeDirectoryError if HOME does not name an absolute directory, because the file would end up in `/` or in the
    working directory.
    """
    expanded = Path(path)
    if not expanded.parts[:1] or not expanded.parts[0].startswith("~"):
        return expanded
    if not os.path.isabs(os.environ.get("HOME", os.sep)):
        raise HomeDirectoryError(f"HOME must be the whole path of a directory: {expanded} lies there")
    try:
        return expanded.expanduser()
    except RuntimeError:
        raise HomeDirectoryError(f"set HOME to the path of a directory: {expanded} lies there") from None
