"""Processes on one store: what happens in one wakes those who wait in the other, told over a Redis or looked for."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from qwed.api import neighbours
from qwed.api.events import Following, Listeners
from qwed.api.neighbours import Neighbours, neighbours_for
from qwed.gate import Gate
from qwed.kernel.people.doorbell import Doorbells
from qwed.kernel.people.events import TYPES
from qwed.kernel.wiring import close_services, open_services
from qwed.limits import fanout
from qwed.settings import Settings
from qwed.store.protocol import StoreError
from tests.support.failing import Failing, Instead
from tests.support.redis_hands import patient, run
from tests.support.redis_server import RedisServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    with patient():
        yield


class Postman:
    """One who only notes that he was called."""

    woken = 0

    def wake(self) -> None:
        self.woken += 1


class Process:
    """What one process has of its own, on a store that it shares."""

    def __init__(self, shared: Any, redis_url: str) -> None:
        self.doorbells = Doorbells()
        self.services = Instead(shared)
        self.services.__dict__.update(settings=Settings(redis_url=redis_url), doorbells=self.doorbells)
        self.listeners = Listeners(shared.store)
        self.postman = Postman()
        services: Any = self.services
        postman: Any = self.postman
        self.neighbours = Neighbours(services, self.listeners, lambda: postman)
        self.neighbours.expect()


class Street:
    """Two processes, and a gate through which the first of them is asked."""

    def __init__(self, redis_url: str) -> None:
        self.opened = open_services(Settings(), in_memory=True)
        services = self.opened.services
        self.organisation_id = self.opened.organisation_id
        (self.key,) = services.store.list_keys(self.organisation_id)
        self.here, self.there = Process(services, redis_url), Process(services, redis_url)
        services.store.on_commit = self.here.neighbours.committed
        self.gate = Gate(self.opened)

    def act(self) -> None:
        """One leaf, by way of the first process."""
        self.gate.register_agent(name="a", principal_id="p")

    @asynccontextmanager
    async def lived_in(self) -> AsyncIterator["Street"]:
        both = (self.here.neighbours, self.there.neighbours)
        for each in both:
            each.start()
        try:
            yield self
        finally:
            for each in both:
                await each.close()


@pytest.fixture
def street(server: RedisServer) -> Iterator[Street]:
    made = Street(server.url)
    yield made
    close_services(made.opened.services)


@pytest.fixture
def silent_street() -> Iterator[Street]:
    """Where there is no Redis."""
    made = Street("")
    yield made
    close_services(made.opened.services)


async def until(holds: Callable[[], bool]) -> None:
    """What is waited for happens within seconds, or never."""
    for _ in range(3_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


async def connected(street: Street) -> None:
    for process in (street.here, street.there):
        made = process.neighbours.fanout
        assert made is not None
        await until(lambda made=made: made.up)  # type: ignore[misc]


async def heard_of(street: Street, process: Process) -> bytes:
    """What a stream in this process tells of one leaf that was written by way of the first."""
    size = street.opened.services.store.log_size(street.organisation_id)
    stream = Following(street.key, size - 1, frozenset(TYPES), process.listeners)
    told = aiter(stream)
    await anext(told)
    waiting = asyncio.ensure_future(anext(told))
    await asyncio.sleep(0.05)
    street.act()
    said = await waiting
    await stream.aclose()
    return said


def test_a_stream_tells_what_another_process_committed(street: Street, monkeypatch: pytest.MonkeyPatch) -> None:
    # Told, and not found by a look.
    monkeypatch.setattr(neighbours, "LOOK_SECONDS_WHERE_TOLD", 3600.0)

    async def act() -> None:
        async with street.lived_in():
            await connected(street)
            assert b'"event":"registered"' in await heard_of(street, street.there)

    run(act())


def test_without_a_redis_it_is_looked_for(silent_street: Street, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "LOOK_SECONDS", 0.02)

    async def act() -> None:
        async with silent_street.lived_in():
            assert silent_street.there.neighbours.fanout is None
            assert b'"event":"registered"' in await heard_of(silent_street, silent_street.there)

    run(act())


def test_while_the_redis_is_away_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(neighbours, "LOOK_SECONDS_WHERE_TOLD", 3600.0)
    with RedisServer(tmp_path) as own:
        street = Street(own.url)

        async def act() -> None:
            async with street.lived_in():
                await connected(street)
                own.kill()
                await until(lambda: street.there.neighbours.pace == 0.02)
                assert b'"event":"registered"' in await heard_of(street, street.there)
                own.start()
                await connected(street)
                assert b'"event":"registered"' in await heard_of(street, street.there)

        run(act())
        close_services(street.opened.services)


def test_a_bell_that_rings_in_one_process_rings_in_the_other_and_not_back(street: Street) -> None:
    async def act() -> None:
        async with street.lived_in():
            await connected(street)
            far, near = street.there.doorbells.wait("act_1"), street.here.doorbells.wait("act_1")
            street.here.doorbells.ring("act_1")
            assert near.done
            await until(lambda: far.done)
            first, second = street.here.neighbours.fanout, street.there.neighbours.fanout
            assert first is not None
            assert second is not None
            assert (first.told, first.heard, second.told, second.heard) == (1, 0, 0, 1)

    run(act())


def test_a_notice_wakes_the_postman_wherever_he_is(street: Street) -> None:
    async def act() -> None:
        async with street.lived_in():
            await connected(street)
            street.here.neighbours.noticed()
            await until(lambda: street.there.postman.woken == 1)
            assert street.here.postman.woken == 1

    run(act())


def test_many_commits_are_few_messages(street: Street, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        async with street.lived_in():
            await connected(street)
            made = street.here.neighbours.fanout
            assert made is not None
            for number in range(2_500):
                made.tell_logs([f"org_{number}"])
            await until(lambda: made.told >= 3)
            # A thousand in each.
            assert made.told == 3

    monkeypatch.setattr(fanout, "GATHER_SECONDS", 0.3)
    run(act())


def test_nothing_waits_for_a_redis_that_is_away_and_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    street = Street("redis://127.0.0.1:9")

    async def act() -> None:
        async with street.lived_in():
            made = street.here.neighbours.fanout
            assert made is not None
            await until(lambda: bool(made._line.trouble))
            for number in range(fanout.MOST_WAITING * 2):
                made.tell_bell(f"act_{number}")
            assert len(made._bells) == fanout.MOST_WAITING
            await until(lambda: made.lost > 0)
            assert not made._bells
            assert made.told == 0

    run(act())
    close_services(street.opened.services)


@pytest.mark.parametrize(
    "said", ["", "{", "null", '{"by": 1}', '{"by": "x", "logs": "all"}', '{"by": "x", "logs": [1]}', "\x00", "é" * 1000]
)
def test_what_is_no_message_is_counted_and_passed_over(street: Street, server: RedisServer, said: str) -> None:
    async def act() -> None:
        async with street.lived_in():
            await connected(street)
            made = street.there.neighbours.fanout
            assert made is not None
            with redis.Redis.from_url(server.url) as client:
                client.publish(made._channel, said)
            await until(lambda: made.lost == 1)
            assert b'"event":"registered"' in await heard_of(street, street.there)

    run(act())


def test_a_member_that_is_not_known_yet_is_passed_over(street: Street, server: RedisServer) -> None:
    async def act() -> None:
        async with street.lived_in():
            await connected(street)
            made = street.there.neighbours.fanout
            assert made is not None
            bell = street.there.doorbells.wait("act_1")
            with redis.Redis.from_url(server.url) as client:
                client.publish(made._channel, '{"by": "a later version", "bells": ["act_1"], "moods": ["good"]}')
            await until(lambda: bell.done)

    run(act())


def test_a_store_that_fails_while_it_is_looked_at_is_looked_at_again(
    silent_street: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "LOOK_SECONDS", 0.02)
    real = silent_street.there.services.store
    failing = Failing(real, "log_size", StoreError("away"), once=True)
    silent_street.there.services.__dict__["store"] = failing

    async def act() -> None:
        async with silent_street.lived_in():
            assert b'"event":"registered"' in await heard_of(silent_street, silent_street.there)
            assert failing.calls > 1

    run(act())


def test_a_process_that_is_alone_neither_tells_nor_looks() -> None:
    opened = open_services(Settings(redis_url="redis://127.0.0.1:9"), in_memory=True)
    made = neighbours_for(opened.services, Listeners(opened.services.store), lambda: None)
    assert (made.fanout, made.pace) == (None, math.inf)

    async def act() -> None:
        made.start()
        assert made._task is None
        await made.close()

    run(act())
    close_services(opened.services)
