"""A database in PostgreSQL with our tables, and a connection to it that commits by itself."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from qwed.store.postgres.dialect import adapt
from tests.support.postgres_server import Databases


@pytest.fixture
def tables(postgres: Databases, template: str) -> Iterator[str]:
    """The address of a database with our tables and nothing in them."""
    url = postgres.database(like=template)
    yield url
    postgres.drop(url)


@pytest.fixture
def connection(tables: str) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(tables, autocommit=True) as connected:
        adapt(connected)
        yield connected
