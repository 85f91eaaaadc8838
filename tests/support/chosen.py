"""Which store the servers and gates of the tests write to: SQLite, or with `--store postgres` a database for each.

A database belongs to a data directory, as a file of SQLite does: whoever opens the directory again finds it again.
"""

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import places

if TYPE_CHECKING:
    from tests.support.postgres_server import Databases

SQLITE, POSTGRES = "sqlite", "postgres"
_OPTION = "--store"


def add_option(parser: pytest.Parser) -> None:
    """Let the run be told which."""
    parser.addoption(_OPTION, choices=(SQLITE, POSTGRES), default=SQLITE, help="what servers and gates write to")


def register(config: pytest.Config) -> None:
    """Have databases made and removed, if they are wanted."""
    if config.getoption(_OPTION) == POSTGRES:
        from tests.support import on_postgres

        config.pluginmanager.register(on_postgres, "on postgres")


class Chosen:
    """The databases in use, by the data directory they belong to; none at all on SQLite."""

    def __init__(self) -> None:
        self.server: Databases | None = None
        self.known: dict[Path, str] = {}
        self.made: list[Path] = []

    @property
    def store(self) -> str:
        return SQLITE if self.server is None else POSTGRES

    def url(self, data_dir: Path) -> str:
        """The address of the directory's database, which is made if it is not known; empty on SQLite."""
        if self.server is None:
            return ""
        place = data_dir.absolute()
        if place not in self.known:
            self.known[place] = self.server.database()
        return self.known[place]

    def environment(self, data_dir: Path) -> dict[str, str]:
        """What a command about this directory has to be told."""
        return {"QWED_DATABASE_URL": self.url(data_dir)} if self.server else {}

    def directory(self) -> Path:
        """A new data directory, for a gate that keeps its files in memory elsewhere."""
        roomy = places.MEMORY.is_dir()
        made = Path(tempfile.mkdtemp(prefix="qwed-tests-", dir=places.MEMORY if roomy else None))
        self.made.append(made)
        return made

    def forget(self, kept: set[Path]) -> None:
        """Remove every database but those of these directories."""
        for place in self.known.keys() - kept:
            assert self.server is not None
            self.server.drop(self.known.pop(place))
        for made in [each for each in self.made if each not in kept]:
            shutil.rmtree(made)
            self.made.remove(made)


chosen = Chosen()
