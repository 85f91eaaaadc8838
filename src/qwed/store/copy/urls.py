"""Addresses of a copy: `sqlite:///` with the path of a data directory, or a PostgreSQL URL."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from qwed.store.copy import sqlite
from qwed.store.copy.plan import CopyError, CopyTarget
from qwed.store.snapshot_reader import Tables

_SQLITE = "sqlite:///"


class DatabaseAddress(NamedTuple):
    """Data directory, or URL of a PostgreSQL database."""

    directory: Path | None
    url: str = ""

    @property
    def display(self) -> str:
        """Printable form, without user, password and options."""
        if self.directory is not None:
            return str(self.directory)
        parts = urlsplit(self.url)
        return f"postgresql://{parts.hostname or ''}{parts.path}"


def address_of(text: str) -> DatabaseAddress:
    """Parse an address; raise CopyError, without repeating the text, if it is invalid."""
    if text.startswith(_SQLITE) and len(text) > len(_SQLITE):
        return DatabaseAddress(Path(text.removeprefix(_SQLITE)).expanduser())
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme in ("postgresql", "postgres") and parts.path.strip("/"):
        return DatabaseAddress(None, text)
    raise CopyError(
        "an address is sqlite:///DIRECTORY, such as sqlite:////var/lib/qwed, or postgresql://user@host/qwed"
    )


def open_source(address: DatabaseAddress) -> AbstractContextManager[Tables]:
    """Open the source of a copy."""
    if address.directory is not None:
        return sqlite.open_source(address.directory)
    from qwed.store.copy import postgres

    return postgres.open_source(address.url)


def open_target(address: DatabaseAddress) -> AbstractContextManager[CopyTarget]:
    """Open the target of a copy."""
    if address.directory is not None:
        return sqlite.open_target(address.directory)
    from qwed.store.copy import postgres

    return postgres.open_target(address.url)
