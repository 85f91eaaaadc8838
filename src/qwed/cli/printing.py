"""How the commands speak: plain lines where a program reads, colours where a person does, nothing a terminal obeys.

Whatever comes from a server, a file or the log goes through `shown`, `say`, `table` or `print_json`.
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

WRONG = 1
"""The exit code of a no: not verified, refused, something is wrong."""
CANNOT = 2
"""The exit code of what could not be done: called wrongly, unreachable, unreadable."""
_STOPPED = 128 + 2
_NOBODY_LISTENS = 128 + 13
_GAP = "  "
_LONGEST_ANSWER = 80


def shown(text: object) -> str:
    """The text with nothing in it that a terminal would obey."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))


def say(text: object, style: str | None = None, *, err: bool = False) -> None:
    """Print one line; a style such as `bold red` is for terminals alone."""
    try:
        _print(text, style, err=err)
    except OSError:
        if not err:
            raise
        # Where nobody hears why, the exit code says it.
        _discard(sys.stderr)


def _print(text: object, style: str | None, *, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    if style is None or not _coloured(stream):
        print(shown(text), file=stream)
        return
    from rich.text import Text

    console(err=err).print(Text(shown(text), style), soft_wrap=True)


def sorry(message: object) -> NoReturn:
    """Say in one sentence why it cannot be done, and end the command with the exit code for that."""
    say(f"qwed: {message}", err=True)
    raise SystemExit(CANNOT)


def show_once(*lines: str) -> bool:
    """Whether the lines were written: a secret that nobody could see must not be left behind in silence."""
    try:
        print(*map(shown, lines), sep="\n", flush=True)
    except OSError:
        _discard(sys.stdout)
        return False
    return not isinstance(sys.stdout, _Nobody)


def json_of(value: Any) -> str:
    """The value as one line of JSON."""
    # What is not ASCII is escaped, and with it whatever a terminal would obey; one such character is ASCII.
    return json.dumps(value, default=_plain).replace("\x7f", "\\u007f")


def answer_to(question: str) -> str:
    """What the person says, in small letters; asked on standard error, for a program may be reading the other."""
    print(shown(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline(_LONGEST_ANSWER).strip().lower()


def print_json(value: Any) -> None:
    """Print one JSON value on one line."""
    print(json_of(value))


def _plain(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their heads: drawn on a terminal, otherwise in columns of plain text that are never cut."""
    cells = [["" if cell is None else shown(cell) for cell in row] for row in rows]
    if not _coloured(sys.stdout):
        for line in _aligned([[head.upper() for head in heads], *cells]):
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


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def console(*, err: bool = False) -> "Console":
    """Rich's console, which takes no text for markup; what others wrote must be `shown` before it is printed there."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the command with the code of a no.
            raise BrokenPipeError

    stream = sys.stderr if err else sys.stdout
    coloured = _coloured(stream)
    return Ours(
        file=stream,
        force_terminal=coloured,
        color_system="auto" if coloured else None,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _coloured(stream: TextIO | None) -> bool:
    """Whether it is a terminal that shows colours, and nobody asked for none."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream is not None and stream.isatty()


def quietly(run: Callable[[], int | None]) -> int:
    """Run a command; a reader who leaves, as `head` does, and a person who stops it are no errors of ours."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or _Nobody()
        setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return _finished(run)
    except KeyboardInterrupt:
        return _STOPPED
    except BrokenPipeError:
        _discard(sys.stdout)
        return _NOBODY_LISTENS
    except OSError as error:
        _discard(sys.stdout)
        where = f": {error.filename}" if error.filename else ""
        say(f"qwed: {error.strerror or error}{where}", err=True)
        return CANNOT


def _finished(run: Callable[[], int | None]) -> int:
    try:
        code: object = run()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    if isinstance(code, str):
        say(f"qwed: {code}", err=True)
        return CANNOT
    return code if isinstance(code, int) else 0


def _discard(stream: TextIO) -> None:
    # What is still in the buffer is for nobody; without this the interpreter would complain at its end.
    if isinstance(stream, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Nobody(io.TextIOBase):
    """What stands in for a stream that is closed: whatever is said to it is said to nobody."""

    def write(self, text: str) -> int:
        return len(text)

    def fileno(self) -> int:
        """None: where bytes are to go, somebody has to be."""
        raise OSError(errno.EBADF, "the output is closed")

    @property
    def buffer(self) -> BinaryIO:
        """As above."""
        raise OSError(errno.EBADF, "the output is closed")
