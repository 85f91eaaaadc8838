"""Erasing from the command line: through the running server, or where none runs in the data directory itself."""

from pathlib import Path

from qwed.cli.asking import Where, server
from qwed.cli.audit.keys import published_in
from qwed.cli.opening import opening
from qwed.store.place import FILE_NAME
from qwed.store.reader import Unreadable
from qwed.words.home import DEFAULT_URL


def erase_there(subject: str, where: Where) -> bool:
    """Ask the server; whether there was anything to erase."""
    with server(where) as client:
        return bool(client.erase(subject).erased)


def erase_here(subject: str, directory: Path, database_url: str = "") -> bool:
    """Open the directory, which no server may have open, or PostgreSQL beside those that run on it.

    Says whether there was anything to erase.
    """
    from qwed.gate import GateError, open_gate
    from qwed.store.place import DataDirectoryInUse

    if not database_url and not (directory / FILE_NAME).is_file():
        raise Unreadable(f"there is no database in {directory}: --data-dir names the directory of a server")
    if database_url:
        published_in(directory)  # a slip of the pen must not make new keys
    with opening(directory):
        try:
            with open_gate(directory, database_url=database_url) as gate:
                return bool(gate.erase(subject).erased)
        except DataDirectoryInUse:
            raise Unreadable(f"a server runs on {directory}: name it with --url, such as {DEFAULT_URL}") from None
        except (GateError, ValueError) as error:
            raise Unreadable(str(error)) from None
