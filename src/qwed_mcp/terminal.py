"""Messages on standard error, and the exit codes of `qwed-mcp`."""

import sys
from typing import NoReturn

PROGRAM = "qwed-mcp"
EXIT_REFUSED, EXIT_ERROR = 1, 2


def fail(message: object, code: int = EXIT_ERROR) -> NoReturn:
    """Print the message and exit with the code."""
    echo(f"{PROGRAM}: {message}")
    raise SystemExit(code)


def echo(text: object) -> None:
    """Print to standard error, which no protocol uses, with unprintable characters escaped."""
    plain = "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in str(text))
    print(plain, file=sys.stderr, flush=True)  # noqa: T201 - this is the command
