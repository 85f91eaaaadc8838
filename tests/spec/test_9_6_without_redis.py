"""Spec 9.6, Fail-Closed Rate Limiting: a configured Redis is never silently skipped."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.spec.sections import spec
from tests.support.metrics_scrape import Scrape
from tests.support.redis_server import RedisServer
from tests.support.server import SERVE, Server


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis") as running:
        yield running


@spec("9.6", "guide/Fail-closed rate limiting")
@pytest.mark.parametrize("how", ["variable", "option"])
def test_a_redis_that_cannot_be_used_is_not_quietly_replaced_by_memory(
    redis_server: RedisServer, tmp_path: Path, how: str
) -> None:
    redis_server.kill()
    option = ("--redis", redis_server.url) if how == "option" else ()
    variable = {"QWED_REDIS_URL": redis_server.url} if how == "variable" else {}
    server = Server(tmp_path / "data", (*SERVE, *option), **variable)
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as client:
        ready = client.get("/ready")
        assert (ready.status_code, ready.json()["ready"]) == (503, False)
        assert ready.json()["parts"]["rate_limiter"] == "redis does not answer"
        refused = client.post("/agents/agent_1/verify", json={})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        said = refused.json()
        assert (said["decision"], said["error"]["code"]) == ("DENIED", "QWED-SYS-002")
        assert said["error"]["message"] == "the rate limiter does not answer"
        scrape = Scrape(server.base_url, server.owner_key)
        assert scrape.value("qwed_rate_limiter_up") == 0
        assert scrape.value("qwed_rate_limiter_unavailable_total") == 1
        redis_server.start()
        # It recovers without a restart of the server.
        scrape.wait_until("qwed_rate_limiter_up", 1)
        assert client.get("/tools").status_code == 200
    assert server.stop() == 0
    assert "counted in the memory" not in server.log.read_text()
