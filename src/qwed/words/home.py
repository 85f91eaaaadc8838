"""Where things are unless somebody says otherwise: the server on this machine, files in somebody's own directory."""

import os
from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:8000"
"""The address and not a name, which may lead to another family of addresses first: a server listens on this one."""


class NoHome(OSError):
    """There is no home to keep anything in; the message says what to set."""


def from_home(path: str | os.PathLike[str]) -> Path:
    """The path with its `~` resolved; NoHome where HOME names no directory, and something would lie in `/` or here."""
    named = Path(path)
    if not named.parts[:1] or not named.parts[0].startswith("~"):
        return named
    if not os.path.isabs(os.environ.get("HOME", os.sep)):
        raise NoHome(f"HOME must be the whole path of a directory: {named} lies there")
    try:
        return named.expanduser()
    except RuntimeError:
        raise NoHome(f"set HOME to the path of a directory: {named} lies there") from None
