"""What the commands share: where the data is, how they say what they cannot do, how they end when nobody listens."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qwed.settings import Settings

CANNOT = 2


def add_data_dir(parser: Any) -> None:
    """Add the option that names the data directory."""
    parser.add_argument(
        "--data-dir", type=Path, metavar="D", help="the server's data directory (QWED_DATA_DIR, default ~/.qwed/data)"
    )


def data_dir_of(given: Path | None) -> Path:
    """The data directory that is meant; no other setting is looked at."""
    return (given or Path(os.environ.get("QWED_DATA_DIR") or Settings().data_dir)).expanduser()


def sorry(message: str) -> int:
    """Say in one sentence why it cannot be done; the exit code for that."""
    print(f"qwed: {shown(message)}", file=sys.stderr)
    return CANNOT


def shown(text: str) -> str:
    """The text with nothing in it that a terminal would obey."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def quietly(run: Callable[[], int]) -> int:
    """Run a command; a reader who leaves, as `head` does, and a person who stops it are no errors of ours."""
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer is for nobody; without this the interpreter would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except KeyboardInterrupt:
        return 128 + 2
    return code
