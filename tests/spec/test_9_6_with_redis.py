"""Spec 9.6, Fail-Closed Rate Limiting: one sliding window in Redis for all processes."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from tests.spec.sections import spec
from tests.support.metrics_scrape import Scrape
from tests.support.redis_server import RedisServer
from tests.support.server import Server
from tests.support.store_choice import chosen

LIMIT = 6
Json = dict[str, Any]


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as running:
        yield running


class Pair:
    """Two servers of one installation with one Redis."""

    def __init__(self, directory: Path, url: str) -> None:
        settings = {"QWED_REDIS_URL": url, "QWED_RATE_LIMIT_PER_KEY": str(LIMIT)}
        settings |= chosen.environment(directory / "one")
        first = Server(directory / "one", **settings)
        key = {"X-API-Key": first.owner_key}
        self.agent: Json = httpx.post(
            f"{first.base_url}/agents/register", json={"name": "a", "principal_id": "p"}, headers=key, timeout=30
        ).json()
        assert first.stop() == 0
        shutil.copytree(directory / "one", directory / "two")
        self.servers = [Server(directory / name, **settings) for name in ("one", "two")]

    def verify(self, which: int, step: int) -> httpx.Response:
        """Request one decision with the agent's token."""
        body = {
            "action": {"type": "calculate", "query": f"{step} + 1"},
            "context": {"conversation_id": "c", "step_number": step},
        }
        return httpx.post(
            f"{self.servers[which].base_url}/agents/{self.agent['agent_id']}/verify",
            json=body,
            headers={"Authorization": f"Bearer {self.agent['agent_token']}"},
            timeout=30,
        )


@pytest.fixture(scope="module")
def pair(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"), redis_server.url)
    yield made
    assert [server.stop() for server in made.servers] == [0, 0]


@spec("9.6", "guide/Fail-closed rate limiting")
def test_servers_of_one_installation_count_together(pair: Pair) -> None:
    answers = [pair.verify(step % 2, step) for step in range(1, LIMIT + 3)]
    left = [answer.headers["x-ratelimit-remaining"] for answer in answers]
    assert left == ["5", "4", "3", "2", "1", "0", "0", "0"]
    assert [answer.status_code for answer in answers] == [200] * LIMIT + [429] * 2
    last = answers[-1]
    assert (last.json()["decision"], last.json()["error"]["code"]) == ("DENIED", "QWED-SYS-001")
    assert last.headers["retry-after"] == last.headers["x-ratelimit-reset"]


@spec("9.6")
def test_ready_and_the_numbers_say_that_it_is_a_redis_and_answers(pair: Pair) -> None:
    server = pair.servers[0]
    assert httpx.get(f"{server.base_url}/ready", timeout=30).json()["parts"]["rate_limiter"] == "redis"
    scrape = Scrape(server.base_url, server.owner_key)
    assert scrape.value("qwed_rate_limiter_up") == 1
    assert "\nqwed_rate_limiter_keys " not in scrape.text()


@spec("9.6", "9.8")
def test_what_is_kept_in_a_redis_is_named_by_ids_and_holds_no_secret(pair: Pair, redis_server: RedisServer) -> None:
    pair.verify(0, 1)
    with redis.Redis.from_url(redis_server.url) as client:
        kept = {name.decode(): client.hgetall(name) for name in client.keys("*")}
    assert any(name.endswith(f":rate:{pair.agent['agent_id']}") for name in kept)
    assert all(name.startswith("qwed:{org_") for name in kept)
    secrets = [pair.agent["agent_token"], pair.servers[0].owner_key]
    assert all(secret[-20:] not in repr(kept) for secret in secrets)
