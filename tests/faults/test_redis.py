"""P4 and P6 under a Redis that is stopped, hangs or is slow: only refusals, in time, and recovery."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.campaign_table import Figure, campaign
from tests.support.metrics_scrape import Scrape
from tests.support.raw_http import RawConnection, connect, message
from tests.support.redis_relays import RedisRelay
from tests.support.redis_server import RedisServer
from tests.support.server import Server

PROMISED_SECONDS = 1.0
UP = "qwed_rate_limiter_up"
Json = dict[str, Any]


class TimedAnswer(NamedTuple):
    """One request: when it was sent, how long it took, and its answer."""

    asked: float
    seconds: float
    status: int
    body: Json


class LimitedServer:
    """Server, its Redis, and a relay between them."""

    def __init__(self, directory: Path) -> None:
        self.redis = RedisServer(directory / "redis")
        self.relay = RedisRelay(self.redis.port)
        self.server = Server(directory / "data", QWED_REDIS_URL=self.relay.url, QWED_RATE_LIMIT_PER_KEY="1000000")
        self.key = {"X-API-Key": self.server.owner_key}
        self.scrape = Scrape(self.server.base_url, self.server.owner_key)
        self._numbers = itertools.count(1)
        url = f"{self.server.base_url}/agents/register"
        with httpx.Client(headers=self.key, timeout=30) as client:
            self.agent: Json = client.post(url, json={"name": "a", "principal_id": "p"}).json()

    def question(self) -> bytes:
        """Return a request with a key and a token: both are rate limited, one after the other."""
        context = {"conversation_id": f"c{next(self._numbers)}", "step_number": 1}
        body = {"action": {"type": "calculate", "query": "2 + 2"}, "context": context}
        headers = self.key | {"Authorization": f"Bearer {self.agent['agent_token']}"}
        return message(f"/agents/{self.agent['agent_id']}/verify", body, headers)

    async def load(self, clients: int, over: asyncio.Event, heard: list[TimedAnswer]) -> None:
        """Run clients that each repeat the request until it is over."""
        lines = [await connect(self.server.base_url) for _ in range(clients)]
        await asyncio.gather(*(self._ask_on(line, over, heard) for line in lines))
        for line in lines:
            line.close()

    async def _ask_on(self, line: RawConnection, over: asyncio.Event, heard: list[TimedAnswer]) -> None:
        while not over.is_set():
            asked = time.monotonic()
            answer = await line.ask(self.question())
            heard.append(TimedAnswer(asked, time.monotonic() - asked, answer.status, answer.json))
            if answer.status != 200:
                # As a client that obeys Retry-After, but sooner.
                await asyncio.sleep(0.01)

    def close(self) -> None:
        assert self.server.stop() == 0
        self.relay.close()
        self.redis.kill()


@pytest.fixture(scope="module")
def limited_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedServer]:
    made = LimitedServer(tmp_path_factory.mktemp("limited_server"))
    yield made
    made.close()


class Outage(NamedTuple):
    """Fault of the Redis, and its repair."""

    begin: Callable[[LimitedServer], None]
    end: Callable[[LimitedServer], None]


def _slow(limited_server: LimitedServer, seconds: float) -> None:
    limited_server.relay.delay = seconds


OUTAGES = {
    "stopped": Outage(
        lambda limited_server: limited_server.redis.kill(), lambda limited_server: limited_server.redis.start()
    ),
    "hung": Outage(
        lambda limited_server: limited_server.redis.hang(), lambda limited_server: limited_server.redis.go_on()
    ),
    "slow": Outage(
        lambda limited_server: _slow(limited_server, 0.6), lambda limited_server: _slow(limited_server, 0.0)
    ),
}


class OutageResult(NamedTuple):
    """Answers during the outage, and the recovery time."""

    refused: list[TimedAnswer]
    slowest: float
    """Slowest request that overlapped the outage."""
    passed: int
    back_after: float
    connections: int


async def _until(holds: Callable[[], bool]) -> None:
    """Poll until the condition holds, which takes seconds or fails."""
    for _ in range(3_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


async def _suffered(limited_server: LimitedServer, kind: str, clients: int, seconds: float) -> OutageResult:
    over, heard, outage = asyncio.Event(), list[TimedAnswer](), OUTAGES[kind]
    load = asyncio.ensure_future(limited_server.load(clients, over, heard))
    await _until(lambda: sum(answer.status == 200 for answer in heard) >= clients)
    connections = limited_server.relay.connections
    outage.begin(limited_server)
    begun = time.monotonic()
    await asyncio.sleep(seconds)
    connections = limited_server.relay.connections - connections
    ended = time.monotonic()
    outage.end(limited_server)
    await _until(lambda: any(answer.status == 200 and answer.asked > ended for answer in heard))
    over.set()
    await load
    around = [answer for answer in heard if answer.asked <= ended and begun <= answer.asked + answer.seconds]
    during = [answer for answer in around if begun <= answer.asked and answer.asked + answer.seconds <= ended]
    back = min(answer.asked + answer.seconds for answer in heard if answer.status == 200 and answer.asked > ended)
    passed = [answer for answer in heard if answer.status == 200]
    assert {answer.body["decision"] for answer in passed} == {"APPROVED"}
    return OutageResult(during, max(answer.seconds for answer in around), len(passed), back - ended, connections)


def _require_refusals(told: OutageResult, clients: int) -> None:
    assert len(told.refused) >= clients
    said = {(each.status, each.body["decision"], each.body["error"]["code"]) for each in told.refused}
    assert said == {(503, "DENIED", "QWED-SYS-002")}
    # One attempt after another, however many clients there are.
    assert told.connections <= 20


def test_a_redis_that_hangs_under_a_few_clients_gives_refusals_and_comes_back(limited_server: LimitedServer) -> None:
    told = asyncio.run(_suffered(limited_server, "hung", 4, 0.9))
    _require_refusals(told, 4)
    limited_server.scrape.wait_until(UP, 1)


@pytest.mark.drill
@pytest.mark.parametrize("kind", list(OUTAGES))
@campaign("P4 P6", "a Redis that is stopped, hangs or is slow")
def test_under_32_clients_every_answer_is_a_refusal_within_a_second(
    limited_server: LimitedServer, figure: Figure, kind: str
) -> None:
    rounds = []
    for _ in range(3):
        limited_server.scrape.wait_until(UP, 1)
        rounds.append(asyncio.run(_suffered(limited_server, kind, 32, 5.0)))
        _require_refusals(rounds[-1], 32)
        assert rounds[-1].slowest < PROMISED_SECONDS
    figure(f"refused while {kind}", sum(len(each.refused) for each in rounds))
    figure(f"ms for the slowest answer while {kind}", round(max(each.slowest for each in rounds) * 1_000))
    figure(f"ms until it was back after being {kind}", round(max(each.back_after for each in rounds) * 1_000))
