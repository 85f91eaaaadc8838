"""Servers that several campaigns share."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import places
from tests.support.fleet import Fleet, Shaken, shaken_workers, two_servers, two_workers

if TYPE_CHECKING:
    from tests.support.postgres_server import Databases

_KINDS: dict[str, Callable[..., AbstractContextManager[Fleet]]] = {
    "two workers": two_workers,
    "two servers": two_servers,
}


@pytest.fixture(scope="session")
def pair(memory: Path, postgres: "Databases") -> Iterator[Fleet]:
    """Two servers on one database, each at an address of its own, for tests that leave them as they were."""
    with two_servers(places.room_in(memory), postgres.database()) as fleet:
        yield fleet


@pytest.fixture(params=_KINDS)
def fleet(request: pytest.FixtureRequest, memory_path: Path, database: str) -> Iterator[Fleet]:
    """Two of one machine, which share an address, and two as of two machines, which do not."""
    with _KINDS[request.param](memory_path, database) as running:
        yield running


@pytest.fixture(scope="session")
def shaken_before(memory: Path) -> Iterator[Shaken]:
    """Two workers that have been through troubles before: after each they are as they were."""
    with shaken_workers(places.room_in(memory)) as shaken:
        yield shaken


@pytest.fixture
def shaken(memory_path: Path) -> Iterator[Shaken]:
    """Two workers for the troubles of one test."""
    with shaken_workers(memory_path) as running:
        yield running
