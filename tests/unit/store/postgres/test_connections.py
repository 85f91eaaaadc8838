"""A failed connection is always the same error, whatever is missing."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from qwed.store.postgres.connections import READ_TIMEOUTS, Connector


@contextmanager
def _descriptors(left: int) -> Iterator[None]:
    """Limit the files that can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("left", [0, 1])
def test_a_process_that_has_no_descriptor_left_has_no_connection(database: str, left: int) -> None:
    lines = Connector(database)
    with _descriptors(left), pytest.raises(psycopg.OperationalError):
        lines.connect(READ_TIMEOUTS)
    lines.connect(READ_TIMEOUTS).close()
