"""Servers that several campaigns share."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import temp_directories
from tests.support.server_cluster import FaultCluster, ServerCluster, open_fault_cluster, two_servers, two_workers

if TYPE_CHECKING:
    from tests.support.postgres_server import Databases

_KINDS: dict[str, Callable[..., AbstractContextManager[ServerCluster]]] = {
    "two workers": two_workers,
    "two servers": two_servers,
}


@pytest.fixture(scope="session")
def pair(memory: Path, postgres: "Databases") -> Iterator[ServerCluster]:
    """Two servers on one database, each at its own address, for tests that restore their state."""
    with two_servers(temp_directories.make_directory_in(memory), postgres.database()) as cluster:
        yield cluster


@pytest.fixture(params=_KINDS)
def cluster(request: pytest.FixtureRequest, memory_path: Path, database: str) -> Iterator[ServerCluster]:
    """Two workers that share an address, and two servers at different addresses."""
    with _KINDS[request.param](memory_path, database) as running:
        yield running


@pytest.fixture(scope="session")
def shared_fault_cluster(memory: Path) -> Iterator[FaultCluster]:
    """Two workers shared by tests that restore them after each fault."""
    with open_fault_cluster(temp_directories.make_directory_in(memory)) as fault_cluster:
        yield fault_cluster


@pytest.fixture
def fault_cluster(memory_path: Path) -> Iterator[FaultCluster]:
    """Two workers for the faults of one test."""
    with open_fault_cluster(memory_path) as running:
        yield running
