"""A connection is there, or it is said in one way why not, whatever it is that is lacking."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from qwed.store.postgres.lines import ASKING, Lines


@contextmanager
def _descriptors(left: int) -> Iterator[None]:
    """So many more files may be opened."""
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
    lines = Lines(database)
    with _descriptors(left), pytest.raises(psycopg.OperationalError):
        lines.reach(ASKING)
    lines.reach(ASKING).close()
