"""Where a proxy keeps what outlives it: one directory for each program it stands before, for its owner alone."""

import json
import os
import stat
from pathlib import Path
from typing import Any

from qwed.ledger.files import write_private
from qwed.words.home import NoHome, from_home
from qwed_sdk.hook.call import Unusable

_LARGEST = 1 << 20
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


def directory(protocol: str, name: str) -> Path:
    """The directory of one server or agent: made at need; Unusable where it cannot be had."""
    try:
        place = from_home(f"~/.qwed/{protocol}") / name
        # Each by itself: those that are made on the way have whatever mode the umask leaves.
        for each in (place.parent.parent, place.parent, place):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        if stat.S_IMODE(place.stat().st_mode) & 0o077:
            place.chmod(0o700)
    except NoHome as error:
        raise Unusable(str(error)) from None
    except OSError as error:
        raise Unusable(f"{error.filename or f'~/.qwed/{protocol}'} cannot be used: {error.strerror}") from None
    return place


def read_object(file: Path) -> dict[str, Any] | None:
    """The JSON object in the file; None where there is none that can be read."""
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | _FLAGS), "rb") as source:
            data = source.read(_LARGEST + 1)
        found = json.loads(data) if len(data) <= _LARGEST else None
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def write_object(file: Path, members: dict[str, Any]) -> None:
    """Write it as a whole, readable by its owner alone, or leave what was there; Unusable where it cannot be."""
    try:
        write_private(file, json.dumps(members).encode())
    except OSError as error:
        raise Unusable(f"{file} cannot be written: {error.strerror}") from None
