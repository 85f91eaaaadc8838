"""Store of the servers and gates under test: SQLite, or with `--store postgres` a database for each.

A database belongs to a data directory, as a SQLite file does: opening the directory again finds it again.
"""

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import temp_directories

if TYPE_CHECKING:
    from tests.support.postgres_server import Databases

SQLITE, POSTGRES = "sqlite", "postgres"
_OPTION = "--store"


def add_option(parser: pytest.Parser) -> None:
    """Add the option of the store."""
    parser.addoption(_OPTION, choices=(SQLITE, POSTGRES), default=SQLITE, help="what servers and gates write to")


def register(config: pytest.Config) -> None:
    """Create and remove databases if PostgreSQL is selected."""
    if config.getoption(_OPTION) == POSTGRES:
        from tests.support import postgres_plugin

        config.pluginmanager.register(postgres_plugin, "on postgres")


class StoreChoice:
    """Databases in use by their data directory; none on SQLite."""

    def __init__(self) -> None:
        self.server: Databases | None = None
        self.known: dict[Path, str] = {}
        self.made: list[Path] = []

    @property
    def store(self) -> str:
        return SQLITE if self.server is None else POSTGRES

    def url(self, data_dir: Path) -> str:
        """Return the URL of the directory's database, creating it if needed; empty on SQLite."""
        if self.server is None:
            return ""
        place = data_dir.absolute()
        if place not in self.known:
            self.known[place] = self.server.database()
        return self.known[place]

    def environment(self, data_dir: Path) -> dict[str, str]:
        """Return the environment variables of a command on this directory."""
        return {"QWED_DATABASE_URL": self.url(data_dir)} if self.server else {}

    def directory(self) -> Path:
        """Return a new data directory for a gate whose files are in memory elsewhere."""
        roomy = temp_directories.MEMORY.is_dir()
        made = Path(tempfile.mkdtemp(prefix="qwed-tests-", dir=temp_directories.MEMORY if roomy else None))
        self.made.append(made)
        return made

    def forget(self, kept: set[Path]) -> None:
        """Drop every database except those of these directories."""
        for place in self.known.keys() - kept:
            assert self.server is not None
            self.server.drop(self.known.pop(place))
        for made in [each for each in self.made if each not in kept]:
            shutil.rmtree(made)
            self.made.remove(made)


chosen = StoreChoice()
