"""Whom a command asks: a server, or engines of its own; what it reads to ask with, and how a refusal is told."""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple

import typer

from qwed.cli.options import data_dir_of
from qwed.cli.printing import console, sorry
from qwed.words.home import DEFAULT_URL

if TYPE_CHECKING:
    from qwed.gate import Gate
    from qwed_sdk import QWEDClient, QWEDError

MOST_TEXT = 1 << 20
"""Bytes of a request, as the server bounds it; whatever is longer is refused before it is sent."""
MOST_FILE = 10 << 20
STDIN = "-"
_MOST_KEY = 4_096

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="the server to ask (QWED_BASE_URL)")]
Local = Annotated[bool, typer.Option("--local", help="ask engines in this process; so it is where no server is named")]


class Where(NamedTuple):
    """Whom to ask, as the command line says it."""

    url: str | None = None
    data_dir: Path | None = None
    local: bool = False


def is_local(where: Where) -> bool:
    """Whether the engines of this process are meant."""
    if where.local and where.url:
        sorry("--local asks no server: leave it or --url out")
    return where.local or not (where.url or os.environ.get("QWED_BASE_URL"))


@contextmanager
def connect(where: Where) -> Iterator["QWEDClient | Gate"]:
    """A server where one is named, else the engines of this process; what they refuse ends the command."""
    opened = _engines() if is_local(where) else server(where)
    with opened as asked:
        yield asked


@contextmanager
def server(where: Where, *, timeout: float = 60.0, keyed: bool = True) -> Iterator["QWEDClient"]:
    """A client of the server that is meant, 127.0.0.1:8000 where none is named; `keyed` is whether it needs a key."""
    from qwed_sdk import QWEDClient, QWEDError

    url = where.url or os.environ.get("QWED_BASE_URL") or DEFAULT_URL
    key = _key(where, url) if keyed else None
    try:
        with QWEDClient(key, url, timeout) as client:
            yield client
    except QWEDError as error:
        sorry(told(error, url))
    except UnicodeError:
        sorry("what was given is no UTF-8 text")
    except ValueError as error:
        sorry(error)


@contextmanager
def _engines() -> Iterator["Gate"]:
    with open_engines() as gate, engines_told():
        yield gate


def open_engines(*, watched: bool = True) -> "Gate":
    """The engines of this process; where they are not installed, the command ends."""
    try:
        import qwed
        from qwed.settings import SettingsError

        with working("loading the engines") if watched else nullcontext():
            return qwed.open()
    except ImportError as error:
        sorry(f"the engines need `{error.name}`: pip install 'qwed[engines]', or name a server with --url")
    except SettingsError as error:
        sorry(error)


@contextmanager
def engines_told() -> Iterator[None]:
    """What the engines of this process refuse is one sentence, and ends the command."""
    from qwed.gate import GateError

    try:
        yield
    except GateError as error:
        sorry(f"{error.message} ({error.code})")


def working(what: str) -> AbstractContextManager[Any]:
    """Shows that something goes on, to a person at a terminal and to nobody else."""
    return console(err=True).status(what) if sys.stderr.isatty() else nullcontext()


def read_text(given: str | None, file: str | None, name: str) -> str | None:
    """The text that was given, `-` for standard input, or what stands in the file; None where neither was given."""
    if given is not None and file is not None:
        sorry(f"give {name} once: as text, or in a file")
    if given is not None and given != STDIN:
        return given
    source = STDIN if given == STDIN else file
    return None if source is None else _decoded(read_bytes(source, MOST_TEXT), source)


def require_text(given: str | None, file: str | None, name: str) -> str:
    """The text that was given in one of the ways."""
    text = read_text(given, file, name)
    if text is None:
        sorry(f"{name} is missing: give it as text, with --file FILE, or `-` for standard input")
    return text


def read_bytes(source: str, most: int) -> bytes:
    """What a file or, as `-`, standard input holds; what is too large is never read whole."""
    with open_input(source) as stream:
        try:
            content = stream.read(most + 1)
        except OSError as error:
            sorry(f"`{source}` cannot be read: {error.strerror or error}")
    if len(content) > most:
        sorry(f"{_name(source)} holds more than {most >> 20} MiB, which is the most that is read")
    return content


def open_input(source: str) -> AbstractContextManager[BinaryIO]:
    """The bytes of a file or, as `-`, of standard input."""
    if source == STDIN:
        if sys.stdin is None:
            sorry("there is no standard input to read")
        return nullcontext(sys.stdin.buffer)
    try:
        return open(source, "rb")
    except (OSError, ValueError) as error:
        sorry(f"`{source[:200]}` cannot be read: {getattr(error, 'strerror', None) or 'it is no name of a file'}")


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        sorry(f"{_name(source)} is no UTF-8 text: byte {error.start} stands alone")


def _name(source: str) -> str:
    return "standard input" if source == STDIN else f"`{source[:200]}`"


def _key(where: Where, url: str) -> str:
    """QWED_API_KEY, else the owner's key in the data directory that is named or, for this machine, in the usual one."""
    key = os.environ.get("QWED_API_KEY", "").strip()
    if key:
        return key
    from qwed_sdk.transport import is_here

    named = where.data_dir is not None or bool(os.environ.get("QWED_DATA_DIR"))
    # The usual directory holds the key of the server here: no other machine is shown it unasked.
    if not named and not is_here(url):
        sorry(f"a key for {url} is missing: set QWED_API_KEY")
    file = data_dir_of(where.data_dir) / "owner.key"
    try:
        if file.exists() and not file.is_file():
            raise ValueError("a pipe would be waited for without end")
        with file.open("rb") as stream:
            return stream.read(_MOST_KEY).decode("ascii").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no key"
        sorry(f"a key is missing: set QWED_API_KEY, or name the server's --data-dir ({file}: {why})")


def told(error: "QWEDError", url: str) -> str:
    """The error as one sentence, with what to do about it where that is known."""
    from qwed_sdk.errors import QWEDConnectionError, unreached

    said = f"{error.message} ({error.code})" if error.code else error.message
    if not error.code and error.status is not None:
        said = f"{url}: {said}"
    unsent = isinstance(error, QWEDConnectionError) and not error.sent
    suggestion = unreached(error.message) if unsent else error.suggestion
    return f"{said}; {suggestion}" if suggestion else said
