"""A store of any kind, and one that lasts, each with `agent_1`; a module may have its own."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from qwed.store.postgres.schema import migrate
from tests.support.postgres_server import Databases
from tests.support.stores import KINDS, LASTING, Shop, agent_of, opened, place_of

_KEPT = ("meta", "schema_versions")


@pytest.fixture
def tmp_path(memory_path: Path) -> Path:
    """What is kept, and in which order, is the same wherever the file is."""
    return memory_path


@pytest.fixture(scope="session")
def template(postgres: Databases) -> str:
    """The address of a database with our tables, to be copied."""
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as connection:
        migrate(connection)
    return url


@pytest.fixture(scope="session")
def swept(postgres: Databases, template: str) -> Iterator["psycopg.Connection[tuple[str]]"]:
    """A connection to the one database of this process."""
    with psycopg.connect(postgres.database(like=template), autocommit=True) as connection:
        yield connection


@pytest.fixture
def empty(swept: "psycopg.Connection[tuple[str]]") -> Iterator[str]:
    """The address of a database with our tables, empty again after the test: that takes a millisecond."""
    yield str(swept.info.dsn)
    found = swept.execute(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace "
        "AND NOT relispartition"
    )
    tables = sorted({row[0] for row in found.fetchall()} - set(_KEPT), key=lambda name: name in _REFERRED)
    emptied = "; ".join(f"DELETE FROM {name}" for name in tables)
    noted = "DELETE FROM meta; INSERT INTO meta VALUES ('conversations_renamed', '1')"
    swept.execute(f"{emptied}; {noted}; SELECT setval('activities_sequence', 1, false)".encode())


_REFERRED = ("organisations", "subjects", "logs")
"""What others refer to goes last."""


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    yield from opened(request.param, place_of(request.param, request), agent_of())


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Shop]:
    """Where it is about SQLite, or about one process that knows everything first."""
    yield from opened("file", tmp_path, agent_of())


@pytest.fixture(params=LASTING)
def disk(request: pytest.FixtureRequest) -> Iterator[Shop]:
    yield from opened(request.param, place_of(request.param, request), agent_of())
