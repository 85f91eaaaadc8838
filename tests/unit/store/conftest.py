"""Stores of every kind with `agent_1`; a module may have its own."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from qwed.store.postgres.schema import migrate
from tests.support.postgres_server import Databases
from tests.support.stores import DURABLE_KINDS, KINDS, StoreFixture, agent_of, location_of, open_fixture

_KEPT = ("meta", "schema_versions")


@pytest.fixture
def tmp_path(memory_path: Path) -> Path:
    """Directory in memory: the content and order of writes do not depend on the disk."""
    return memory_path


@pytest.fixture(scope="session")
def template(postgres: Databases) -> str:
    """URL of a database with our tables, to be copied."""
    url = postgres.database()
    with psycopg.connect(url, autocommit=True) as connection:
        migrate(connection)
    return url


@pytest.fixture(scope="session")
def swept(postgres: Databases, template: str) -> Iterator["psycopg.Connection[tuple[str]]"]:
    """Connection to the database of this process."""
    with psycopg.connect(postgres.database(like=template), autocommit=True) as connection:
        yield connection


@pytest.fixture
def empty(swept: "psycopg.Connection[tuple[str]]") -> Iterator[str]:
    """URL of a database with our tables, emptied after the test, which takes a millisecond."""
    yield str(swept.info.dsn)
    rows = swept.execute(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace "
        "AND NOT relispartition"
    )
    tables = sorted({row[0] for row in rows.fetchall()} - set(_KEPT), key=lambda name: name in _REFERRED)
    emptied = "; ".join(f"DELETE FROM {name}" for name in tables)
    noted = "DELETE FROM meta; INSERT INTO meta VALUES ('conversations_renamed', '1')"
    swept.execute(f"{emptied}; {noted}; SELECT setval('activities_sequence', 1, false)".encode())


_REFERRED = ("organisations", "subjects", "logs")
"""Tables that others refer to are emptied last."""


@pytest.fixture(params=KINDS)
def store_fixture(request: pytest.FixtureRequest) -> Iterator[StoreFixture]:
    yield from open_fixture(request.param, location_of(request.param, request), agent_of())


@pytest.fixture
def file(tmp_path: Path) -> Iterator[StoreFixture]:
    """SQLite store, for tests about SQLite or about a single process."""
    yield from open_fixture("file", tmp_path, agent_of())


@pytest.fixture(params=DURABLE_KINDS)
def disk(request: pytest.FixtureRequest) -> Iterator[StoreFixture]:
    yield from open_fixture(request.param, location_of(request.param, request), agent_of())
