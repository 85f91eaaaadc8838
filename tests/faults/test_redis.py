"""P4, P6: under a Redis that is stopped, hangs or is slow there are refusals alone, in time, and it comes back."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.figures import Figure, campaign
from tests.support.redis_server import RedisServer
from tests.support.relays import Relay
from tests.support.scrape import Scrape
from tests.support.server import Server
from tests.support.wire import Line, dial, message

PROMISED_SECONDS = 1.0
UP = "qwed_rate_limiter_up"
Json = dict[str, Any]


class Answer(NamedTuple):
    """One request: when it was asked, how long it took, and what was said."""

    asked: float
    seconds: float
    status: int
    body: Json


class House:
    """A server, its Redis, and a relay between them."""

    def __init__(self, directory: Path) -> None:
        self.redis = RedisServer(directory / "redis")
        self.relay = Relay(self.redis.port)
        self.server = Server(directory / "data", QWED_REDIS_URL=self.relay.url, QWED_RATE_LIMIT_PER_KEY="1000000")
        self.key = {"X-API-Key": self.server.owner_key}
        self.scrape = Scrape(self.server.base_url, self.server.owner_key)
        self._numbers = itertools.count(1)
        url = f"{self.server.base_url}/agents/register"
        with httpx.Client(headers=self.key, timeout=30) as client:
            self.agent: Json = client.post(url, json={"name": "a", "principal_id": "p"}).json()

    def question(self) -> bytes:
        """A decision asked for with a key and a token: both are counted, one after the other."""
        context = {"conversation_id": f"c{next(self._numbers)}", "step_number": 1}
        body = {"action": {"type": "calculate", "query": "2 + 2"}, "context": context}
        headers = self.key | {"Authorization": f"Bearer {self.agent['agent_token']}"}
        return message(f"/agents/{self.agent['agent_id']}/verify", body, headers)

    async def load(self, clients: int, over: asyncio.Event, heard: list[Answer]) -> None:
        """So many clients, each asking again once it is answered, until it is over."""
        lines = [await dial(self.server.base_url) for _ in range(clients)]
        await asyncio.gather(*(self._ask_on(line, over, heard) for line in lines))
        for line in lines:
            line.close()

    async def _ask_on(self, line: Line, over: asyncio.Event, heard: list[Answer]) -> None:
        while not over.is_set():
            asked = time.monotonic()
            answer = await line.ask(self.question())
            heard.append(Answer(asked, time.monotonic() - asked, answer.status, answer.json))
            if answer.status != 200:
                # As a client that is told to come back later, if sooner than it was told.
                await asyncio.sleep(0.01)

    def close(self) -> None:
        assert self.server.stop() == 0
        self.relay.close()
        self.redis.kill()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    made = House(tmp_path_factory.mktemp("house"))
    yield made
    made.close()


class Outage(NamedTuple):
    """What is done to the Redis, and undone."""

    begin: Callable[[House], None]
    end: Callable[[House], None]


def _slow(house: House, seconds: float) -> None:
    house.relay.delay = seconds


OUTAGES = {
    "stopped": Outage(lambda house: house.redis.kill(), lambda house: house.redis.start()),
    "hung": Outage(lambda house: house.redis.hang(), lambda house: house.redis.go_on()),
    "slow": Outage(lambda house: _slow(house, 0.6), lambda house: _slow(house, 0.0)),
}


class Told(NamedTuple):
    """What was heard while the Redis was away, and how long it took to come back."""

    refused: list[Answer]
    slowest: float
    """Of all that were under way while it was away, those included that were asked before or answered after."""
    passed: int
    back_after: float
    connections: int


async def _until(holds: Callable[[], bool]) -> None:
    """What is waited for happens within seconds, or never."""
    for _ in range(3_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


async def _suffered(house: House, kind: str, clients: int, seconds: float) -> Told:
    over, heard, outage = asyncio.Event(), list[Answer](), OUTAGES[kind]
    load = asyncio.ensure_future(house.load(clients, over, heard))
    await _until(lambda: sum(answer.status == 200 for answer in heard) >= clients)
    connections = house.relay.connections
    outage.begin(house)
    begun = time.monotonic()
    await asyncio.sleep(seconds)
    connections = house.relay.connections - connections
    ended = time.monotonic()
    outage.end(house)
    await _until(lambda: any(answer.status == 200 and answer.asked > ended for answer in heard))
    over.set()
    await load
    around = [answer for answer in heard if answer.asked <= ended and begun <= answer.asked + answer.seconds]
    during = [answer for answer in around if begun <= answer.asked and answer.asked + answer.seconds <= ended]
    back = min(answer.asked + answer.seconds for answer in heard if answer.status == 200 and answer.asked > ended)
    passed = [answer for answer in heard if answer.status == 200]
    assert {answer.body["decision"] for answer in passed} == {"APPROVED"}
    return Told(during, max(answer.seconds for answer in around), len(passed), back - ended, connections)


def _require_refusals(told: Told, clients: int) -> None:
    assert len(told.refused) >= clients
    said = {(each.status, each.body["decision"], each.body["error"]["code"]) for each in told.refused}
    assert said == {(503, "DENIED", "QWED-SYS-002")}
    # One attempt after another, however many ask.
    assert told.connections <= 20


def test_a_redis_that_hangs_under_a_few_clients_gives_refusals_and_comes_back(house: House) -> None:
    told = asyncio.run(_suffered(house, "hung", 4, 0.9))
    _require_refusals(told, 4)
    house.scrape.wait_until(UP, 1)


@pytest.mark.drill
@pytest.mark.parametrize("kind", list(OUTAGES))
@campaign("P4 P6", "a Redis that is stopped, hangs or is slow")
def test_under_32_clients_every_answer_is_a_refusal_within_a_second(house: House, figure: Figure, kind: str) -> None:
    rounds = []
    for _ in range(3):
        house.scrape.wait_until(UP, 1)
        rounds.append(asyncio.run(_suffered(house, kind, 32, 5.0)))
        _require_refusals(rounds[-1], 32)
        assert rounds[-1].slowest < PROMISED_SECONDS
    figure(f"refused while {kind}", sum(len(each.refused) for each in rounds))
    figure(f"ms for the slowest answer while {kind}", round(max(each.slowest for each in rounds) * 1_000))
    figure(f"ms until it was back after being {kind}", round(max(each.back_after for each in rounds) * 1_000))
