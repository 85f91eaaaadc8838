"""Pytest hooks and fixtures of a run on PostgreSQL."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.store_choice import chosen

if TYPE_CHECKING:
    from tests.support.postgres_server import Databases


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that are about SQLite alone, each with its reason."""
    for item in items:
        about = item.get_closest_marker("sqlite")
        if about is not None:
            item.add_marker(pytest.mark.skip(reason=f"about SQLite: {about.args[0]}"))


@pytest.fixture(scope="session", autouse=True)
def _databases(postgres: "Databases") -> Iterator[None]:
    """Create servers and gates on PostgreSQL from now on."""
    chosen.server = postgres
    yield
    chosen.forget(set())
    chosen.server = None


@pytest.fixture(autouse=True)
def _own_databases(_databases: None) -> Iterator[None]:
    """Drop the databases of a test after it; those of wider fixtures were created before and stay."""
    before = {*chosen.known, *chosen.made}
    yield
    chosen.forget(before)
