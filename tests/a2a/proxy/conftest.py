"""One proxy before one agent for all of them: starting them is what takes time."""

from collections.abc import Iterator

import pytest

from tests.support.a2a_proxies import Scene, scene


@pytest.fixture(scope="session")
def started() -> Iterator[Scene]:
    with scene() as found:
        yield found


@pytest.fixture
def between(started: Scene) -> Scene:
    started.clear()
    return started
