"""Erasure of a subject, through a running server or in a data directory."""

from pathlib import Path

from qwed.cli.audit.keys import read_published_keys
from qwed.cli.backend import Target, server_client
from qwed.cli.data_directory import exit_on_open_error
from qwed.model.defaults import DEFAULT_URL
from qwed.store.data_directory import FILE_NAME
from qwed.store.snapshot_reader import DatabaseReadError


def erase_on_server(subject: str, target: Target) -> bool:
    """Ask the server to erase the subject; return True if there was anything to erase."""
    with server_client(target) as client:
        return bool(client.erase(subject).erased)


def erase_in_directory(subject: str, directory: Path, database_url: str = "") -> bool:
    """Erase the subject in the data directory, on which no server may run, or in PostgreSQL.

    Return True if there was anything to erase.
    """
    from qwed.gate import GateError, open_gate
    from qwed.store.data_directory import DataDirectoryInUseError

    if not database_url and not (directory / FILE_NAME).is_file():
        raise DatabaseReadError(
            f"there is no database in {directory}: give the data directory of a server with --data-dir"
        )
    if database_url:
        read_published_keys(directory)  # a typo in the path must not create new keys
    with exit_on_open_error(directory):
        try:
            with open_gate(directory, database_url=database_url) as gate:
                return bool(gate.erase(subject).erased)
        except DataDirectoryInUseError:
            raise DatabaseReadError(
                f"a server runs on {directory}: give its address with --url, such as {DEFAULT_URL}"
            ) from None
        except (GateError, ValueError) as error:
            raise DatabaseReadError(str(error)) from None
