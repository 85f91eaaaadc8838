"""Where a copy begins and ends: `sqlite:///` and the path of a data directory, or the address of PostgreSQL."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from qwed.store.copying import sqlite
from qwed.store.copying.plan import CopyRefused, Target
from qwed.store.reader import Tables

_SQLITE = "sqlite:///"


class Address(NamedTuple):
    """A data directory, or the address of a database in PostgreSQL."""

    directory: Path | None
    url: str = ""

    @property
    def shown(self) -> str:
        """What may be printed: no user, no password, no option."""
        if self.directory is not None:
            return str(self.directory)
        parts = urlsplit(self.url)
        return f"postgresql://{parts.hostname or ''}{parts.path}"


def address_of(text: str) -> Address:
    """The address in a text; CopyRefused, without repeating it, where it is none."""
    if text.startswith(_SQLITE) and len(text) > len(_SQLITE):
        return Address(Path(text.removeprefix(_SQLITE)).expanduser())
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme in ("postgresql", "postgres") and parts.path.strip("/"):
        return Address(None, text)
    raise CopyRefused(
        "an address is sqlite:///DIRECTORY, such as sqlite:////var/lib/qwed, or postgresql://user@host/qwed"
    )


def open_source(address: Address) -> AbstractContextManager[Tables]:
    """Where rows are taken from."""
    if address.directory is not None:
        return sqlite.open_source(address.directory)
    from qwed.store.copying import postgres

    return postgres.open_source(address.url)


def open_target(address: Address) -> AbstractContextManager[Target]:
    """Where rows are put."""
    if address.directory is not None:
        return sqlite.open_target(address.directory)
    from qwed.store.copying import postgres

    return postgres.open_target(address.url)
