"""PostgreSQL database with our tables, and a connection in autocommit mode."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from qwed.store.postgres.dialect import register_dumpers
from tests.support.postgres_server import Databases


@pytest.fixture
def tables(postgres: Databases, template: str) -> Iterator[str]:
    """URL of a database with our tables and no rows."""
    url = postgres.database(like=template)
    yield url
    postgres.drop(url)


@pytest.fixture
def connection(tables: str) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(tables, autocommit=True) as connected:
        register_dumpers(connected)
        yield connected
