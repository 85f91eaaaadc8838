"""Backend of a command (a server or the local engines), input reading and error texts."""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple

import typer

from qwed.cli.options import data_dir_of
from qwed.cli.output import console, fail
from qwed.model.defaults import DEFAULT_URL

if TYPE_CHECKING:
    from qwed.gate import Gate
    from qwed_sdk import QWEDClient, QWEDError

MAX_TEXT = 1 << 20
"""Maximum bytes of a request, as on the server; longer input is refused before it is sent."""
MAX_FILE = 10 << 20
STDIN = "-"
_MAX_KEY = 4_096

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="server to use (QWED_BASE_URL)")]
Local = Annotated[
    bool, typer.Option("--local", help="use the engines in this process; the default if no server is named")
]


class Target(NamedTuple):
    """Target options of a command: server address, data directory, local engines."""

    url: str | None = None
    data_dir: Path | None = None
    local: bool = False


def is_local(target: Target) -> bool:
    """Return True if the engines of this process are to be used."""
    if target.local and target.url:
        fail("give either --local or --url, not both")
    return target.local or not (target.url or os.environ.get("QWED_BASE_URL"))


@contextmanager
def connect(target: Target) -> Iterator["QWEDClient | Gate"]:
    """Yield a client of the named server, or a Gate with the engines of this process; exit on an error of either."""
    context = _local_engines() if is_local(target) else server_client(target)
    with context as backend:
        yield backend


@contextmanager
def server_client(target: Target, *, timeout: float = 60.0, keyed: bool = True) -> Iterator["QWEDClient"]:
    """Yield a client of the named server (default 127.0.0.1:8000); `keyed` says whether it needs an API key."""
    from qwed.model.lazy_import import skip_httpx_command
    from qwed_sdk import QWEDClient, QWEDError

    skip_httpx_command()
    url = target.url or os.environ.get("QWED_BASE_URL") or DEFAULT_URL
    key = _api_key(target, url) if keyed else None
    try:
        with QWEDClient(key, url, timeout) as client:
            yield client
    except QWEDError as error:
        fail(describe_error(error, url))
    except UnicodeError:
        fail("an argument is not valid UTF-8")
    except ValueError as error:
        fail(error)


@contextmanager
def _local_engines() -> Iterator["Gate"]:
    with open_engines() as gate, exit_on_engine_error():
        yield gate


def open_engines(*, show_spinner: bool = True) -> "Gate":
    """Open the engines of this process; exit if they are not installed."""
    try:
        import qwed
        from qwed.model.lazy_import import paused_collector
        from qwed.settings import SettingsError

        with spinner("loading the engines") if show_spinner else nullcontext(), paused_collector():
            return qwed.open()
    except ImportError as error:
        fail(f"the engines need `{error.name}`: pip install 'qwed[engines]', or use a server with --url")
    except SettingsError as error:
        fail(error)


@contextmanager
def exit_on_engine_error() -> Iterator[None]:
    """Exit with one line on an error of the local engines."""
    from qwed.gate import GateError

    try:
        yield
    except GateError as error:
        fail(f"{error.message} ({error.code})")


def spinner(message: str) -> AbstractContextManager[Any]:
    """Return a context manager that shows a spinner if standard error is a terminal."""
    return console(err=True).status(message) if sys.stderr.isatty() else nullcontext()


def read_text(argument: str | None, file: str | None, name: str) -> str | None:
    """Return the text of the argument (`-` reads standard input) or of the file; None if neither is given."""
    if argument is not None and file is not None:
        fail(f"give {name} either as text or in a file, not both")
    if argument is not None and argument != STDIN:
        return argument
    source = STDIN if argument == STDIN else file
    return None if source is None else _decode(read_bytes(source, MAX_TEXT), source)


def require_text(argument: str | None, file: str | None, name: str) -> str:
    """Return the text of the argument or of the file; exit if neither is given."""
    text = read_text(argument, file, name)
    if text is None:
        fail(f"{name} is missing: give it as text, with --file FILE, or as `-` for standard input")
    return text


def read_bytes(source: str, limit: int) -> bytes:
    """Return the content of a file, or of standard input for `-`; exit if it is larger than `limit`."""
    with open_input(source) as stream:
        try:
            content = stream.read(limit + 1)
        except OSError as error:
            fail(f"`{source}` cannot be read: {error.strerror or error}")
    if len(content) > limit:
        fail(f"{_display_name(source)} is larger than {limit >> 20} MiB")
    return content


def open_input(source: str) -> AbstractContextManager[BinaryIO]:
    """Open a file, or standard input for `-`, for reading bytes."""
    if source == STDIN:
        if sys.stdin is None:
            fail("standard input is closed")
        return nullcontext(sys.stdin.buffer)
    try:
        return open(source, "rb")
    except (OSError, ValueError) as error:
        fail(f"`{source[:200]}` cannot be read: {getattr(error, 'strerror', None) or 'not a valid file name'}")


def _decode(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        fail(f"{_display_name(source)} is not valid UTF-8: byte {error.start} is invalid")


def _display_name(source: str) -> str:
    return "standard input" if source == STDIN else f"`{source[:200]}`"


def _api_key(target: Target, url: str) -> str:
    """Return QWED_API_KEY, or the owner's key in the data directory."""
    key = os.environ.get("QWED_API_KEY", "").strip()
    if key:
        return key
    from qwed_sdk.transport import is_loopback_url

    named = target.data_dir is not None or bool(os.environ.get("QWED_DATA_DIR"))
    # The default directory holds the key of the local server: it must not be sent to another machine by default.
    if not named and not is_loopback_url(url):
        fail(f"an API key for {url} is missing: set QWED_API_KEY")
    file = data_dir_of(target.data_dir) / "owner.key"
    try:
        if file.exists() and not file.is_file():
            raise ValueError("not a regular file: reading a pipe could block forever")
        with file.open("rb") as stream:
            return stream.read(_MAX_KEY).decode("ascii").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it does not hold a key"
        fail(f"an API key is missing: set QWED_API_KEY, or give the server's --data-dir ({file}: {why})")


def describe_error(error: "QWEDError", url: str) -> str:
    """Return the error as one line, with advice if there is any."""
    from qwed_sdk.errors import QWEDConnectionError, connection_advice

    message = f"{error.message} ({error.code})" if error.code else error.message
    if not error.code and error.status is not None:
        message = f"{url}: {message}"
    unsent = isinstance(error, QWEDConnectionError) and not error.sent
    suggestion = connection_advice(error.message) if unsent else error.suggestion
    return f"{message}; {suggestion}" if suggestion else message
