"""Terminal output of the commands: plain lines for programs, colours for people, control characters escaped.

Everything that comes from a server, a file or the log must go through `sanitize`, `echo`, `print_table` or
`print_json`.
"""

import errno
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TextIO

if TYPE_CHECKING:
    from rich.console import Console

EXIT_FAILED = 1
"""Exit code of a negative result: not verified, refused, something is wrong."""
EXIT_ERROR = 2
"""Exit code of a command that could not run: usage error, unreachable server, unreadable input."""
_EXIT_INTERRUPTED = 128 + 2
_EXIT_BROKEN_PIPE = 128 + 13
_GAP = "  "
_MAX_ANSWER = 80


def sanitize(text: object) -> str:
    """Return the text with control characters escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))


def echo(text: object, style: str | None = None, *, err: bool = False) -> None:
    """Print one line; a style such as `bold red` applies on terminals only."""
    try:
        _print(text, style, err=err)
    except OSError:
        if not err:
            raise
        # Standard error is closed: the exit code still reports the failure.
        _discard_output(sys.stderr)


def _print(text: object, style: str | None, *, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    if style is None or not _supports_colour(stream):
        print(sanitize(text), file=stream)
        return
    from rich.text import Text

    console(err=err).print(Text(sanitize(text), style), soft_wrap=True)


def fail(message: object) -> NoReturn:
    """Print the message on standard error and exit with EXIT_ERROR."""
    echo(f"qwed: {message}", err=True)
    raise SystemExit(EXIT_ERROR)


def show_once(*lines: str) -> bool:
    """Print the lines and return True if they were written: a secret that was not printed must be withdrawn."""
    try:
        print(*map(sanitize, lines), sep="\n", flush=True)
    except OSError:
        _discard_output(sys.stdout)
        return False
    return not isinstance(sys.stdout, _ClosedStream)


def to_json(value: Any) -> str:
    """Return the value as one line of JSON."""
    # json.dumps escapes everything a terminal would interpret except DEL.
    return json.dumps(value, default=_to_builtins).replace("\x7f", "\\u007f")


def prompt(question: str) -> str:
    """Ask on standard error, because a program may read standard output; return the answer in lower case."""
    print(sanitize(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline(_MAX_ANSWER).strip().lower()


def print_json(value: Any) -> None:
    """Print one JSON value on one line."""
    print(to_json(value))


def _to_builtins(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their headings: drawn on a terminal, otherwise in plain columns that are never cut."""
    cells = [["" if cell is None else sanitize(cell) for cell in row] for row in rows]
    if not _supports_colour(sys.stdout):
        for line in _align_columns([[head.upper() for head in heads], *cells]):
            print(line)
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        drawn.add_column(Text(head), overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    console().print(drawn)


def _align_columns(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def console(*, err: bool = False) -> "Console":
    """Return a rich console without markup; text from others must be sanitized before it is printed there."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            # Rich would exit with 1, which means a negative result here.
            raise BrokenPipeError

    stream = sys.stderr if err else sys.stdout
    coloured = _supports_colour(stream)
    return Ours(
        file=stream,
        force_terminal=coloured,
        color_system="auto" if coloured else None,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _supports_colour(stream: TextIO | None) -> bool:
    """Return True if the stream is a terminal and colours are not switched off."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream is not None and stream.isatty()


def run_command(run: Callable[[], int | None]) -> int:
    """Run a command and return its exit code; a closed pipe and Ctrl-C are not reported as errors."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or _ClosedStream()
        setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return _exit_code_of(run)
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_output(sys.stdout)
        return _EXIT_BROKEN_PIPE
    except OSError as error:
        _discard_output(sys.stdout)
        where = f": {error.filename}" if error.filename else ""
        echo(f"qwed: {error.strerror or error}{where}", err=True)
        return EXIT_ERROR


def _exit_code_of(run: Callable[[], int | None]) -> int:
    try:
        code: object = run()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    if isinstance(code, str):
        echo(f"qwed: {code}", err=True)
        return EXIT_ERROR
    return code if isinstance(code, int) else 0


def _discard_output(stream: TextIO) -> None:
    # The buffered rest cannot be written; without this the interpreter would report it at exit.
    if isinstance(stream, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _ClosedStream(io.TextIOBase):
    """Replacement for a closed standard stream; it discards what is written."""

    def write(self, text: str) -> int:
        return len(text)

    def fileno(self) -> int:
        """Raise OSError: the stream has no descriptor."""
        raise OSError(errno.EBADF, "the output is closed")

    @property
    def buffer(self) -> BinaryIO:
        """Raise OSError: the stream has no buffer."""
        raise OSError(errno.EBADF, "the output is closed")
