"""Conditions of the oracle's tests."""

import pytest

from tests.oracle import sandbox


@pytest.fixture(scope="session", autouse=True)
def _sandbox() -> None:
    """Skip the oracle where nothing can be run in a sandbox, with the reason and what to install."""
    problem = sandbox.missing()
    if problem:
        pytest.skip(problem)
