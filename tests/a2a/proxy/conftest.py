"""One proxy and one agent for all tests, because starting them takes time."""

from collections.abc import Iterator

import pytest

from tests.support.a2a_proxies import ProxyEnvironment, proxy_environment


@pytest.fixture(scope="session")
def started() -> Iterator[ProxyEnvironment]:
    with proxy_environment() as environment:
        yield environment


@pytest.fixture
def env(started: ProxyEnvironment) -> ProxyEnvironment:
    started.clear()
    return started
