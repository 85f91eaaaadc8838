"""Processes that share a store: a change in one wakes the waiters of the other, by Redis or by polling."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from qwed.api.handlers.event_stream import EventStream, Listeners
from qwed.api.server import cluster_events
from qwed.api.server.cluster_events import ClusterNotifier, create_cluster_notifier
from qwed.gate import Gate
from qwed.kernel.admin.approval_waiters import Waiters
from qwed.kernel.admin.events import TYPES
from qwed.kernel.bootstrap import close_services, open_services
from qwed.ratelimit import redis_pubsub
from qwed.settings import Settings
from qwed.store.protocol import StoreError
from tests.support.agent_names import unique_name
from tests.support.fault_injection import FailingProxy, ReplacingProxy
from tests.support.redis_manual_clock import long_reply_timeout, run
from tests.support.redis_server import RedisServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    with long_reply_timeout():
        yield


class FakeDispatcher:
    """Dispatcher that counts how often it is woken."""

    woken = 0

    def wake(self) -> None:
        self.woken += 1


class Process:
    """State of one process on a shared store."""

    def __init__(self, shared: Any, redis_url: str) -> None:
        self.waiters = Waiters()
        self.services = ReplacingProxy(shared)
        self.services.__dict__.update(settings=Settings(redis_url=redis_url), waiters=self.waiters)
        self.listeners = Listeners(shared.store)
        self.dispatcher = FakeDispatcher()
        services: Any = self.services
        dispatcher: Any = self.dispatcher
        self.cluster = ClusterNotifier(services, self.listeners, lambda: dispatcher)
        self.cluster.enable_cluster()


class TwoProcesses:
    """Two processes on one store, and a gate that acts through the first."""

    def __init__(self, redis_url: str) -> None:
        self.opened = open_services(Settings(), in_memory=True)
        services = self.opened.services
        self.organisation_id = self.opened.organisation_id
        (self.key,) = services.store.list_keys(self.organisation_id)
        self.here, self.there = Process(services, redis_url), Process(services, redis_url)
        services.store.on_commit = self.here.cluster.committed
        self.gate = Gate(self.opened)

    def act(self) -> None:
        """Write one leaf through the first process."""
        self.gate.register_agent(name=unique_name(), principal_id="p")

    @asynccontextmanager
    async def running(self) -> AsyncIterator["TwoProcesses"]:
        notifiers = (self.here.cluster, self.there.cluster)
        for notifier in notifiers:
            notifier.start()
        try:
            yield self
        finally:
            for notifier in notifiers:
                await notifier.close()


@pytest.fixture
def cluster(server: RedisServer) -> Iterator[TwoProcesses]:
    pubsub = TwoProcesses(server.url)
    yield pubsub
    close_services(pubsub.opened.services)


@pytest.fixture
def cluster_without_redis() -> Iterator[TwoProcesses]:
    """Two processes without Redis."""
    pubsub = TwoProcesses("")
    yield pubsub
    close_services(pubsub.opened.services)


async def until(holds: Callable[[], bool]) -> None:
    """Wait up to thirty seconds for the condition."""
    for _ in range(3_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the condition never became true")


async def connected(cluster: TwoProcesses) -> None:
    for process in (cluster.here, cluster.there):
        pubsub = process.cluster.pubsub
        assert pubsub is not None
        await until(lambda pubsub=pubsub: pubsub.up)  # type: ignore[misc]


async def event_from(cluster: TwoProcesses, process: Process) -> bytes:
    """Return what a stream of this process sends for a leaf written through the first process."""
    size = cluster.opened.services.store.log_size(cluster.organisation_id)
    stream = EventStream(cluster.key, size - 1, frozenset(TYPES), process.listeners)
    sent = aiter(stream)
    await anext(sent)
    waiting = asyncio.ensure_future(anext(sent))
    await asyncio.sleep(0.05)
    cluster.act()
    payload = await waiting
    await stream.aclose()
    return payload


def test_a_stream_tells_what_another_process_committed(cluster: TwoProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    # Notified, and not found by polling.
    monkeypatch.setattr(cluster_events, "POLL_SECONDS_WITH_PUBSUB", 3600.0)

    async def act() -> None:
        async with cluster.running():
            await connected(cluster)
            assert b'"event":"registered"' in await event_from(cluster, cluster.there)

    run(act())


def test_without_a_redis_it_is_looked_for(cluster_without_redis: TwoProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_events, "POLL_SECONDS", 0.02)

    async def act() -> None:
        async with cluster_without_redis.running():
            assert cluster_without_redis.there.cluster.pubsub is None
            assert b'"event":"registered"' in await event_from(cluster_without_redis, cluster_without_redis.there)

    run(act())


def test_while_the_redis_is_away_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_events, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(cluster_events, "POLL_SECONDS_WITH_PUBSUB", 3600.0)
    with RedisServer(tmp_path) as own:
        cluster = TwoProcesses(own.url)

        async def act() -> None:
            async with cluster.running():
                await connected(cluster)
                own.kill()
                await until(lambda: cluster.there.cluster.poll_interval == 0.02)
                assert b'"event":"registered"' in await event_from(cluster, cluster.there)
                own.start()
                await connected(cluster)
                assert b'"event":"registered"' in await event_from(cluster, cluster.there)

        run(act())
        close_services(cluster.opened.services)


def test_a_notification_in_one_process_reaches_the_other_and_not_back(cluster: TwoProcesses) -> None:
    async def act() -> None:
        async with cluster.running():
            await connected(cluster)
            far, near = cluster.there.waiters.wait("act_1"), cluster.here.waiters.wait("act_1")
            cluster.here.waiters.notify("act_1")
            assert near.done
            await until(lambda: far.done)
            first, second = cluster.here.cluster.pubsub, cluster.there.cluster.pubsub
            assert first is not None
            assert second is not None
            assert (first.sent, first.received, second.sent, second.received) == (1, 0, 0, 1)

    run(act())


def test_a_delivery_wakes_the_dispatcher_of_every_process(cluster: TwoProcesses) -> None:
    async def act() -> None:
        async with cluster.running():
            await connected(cluster)
            cluster.here.cluster.on_delivery()
            await until(lambda: cluster.there.dispatcher.woken == 1)
            assert cluster.here.dispatcher.woken == 1

    run(act())


def test_many_commits_are_few_messages(cluster: TwoProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        async with cluster.running():
            await connected(cluster)
            pubsub = cluster.here.cluster.pubsub
            assert pubsub is not None
            for number in range(2_500):
                pubsub.publish_logs([f"org_{number}"])
            await until(lambda: pubsub.sent >= 3)
            # A thousand ids in each message.
            assert pubsub.sent == 3

    monkeypatch.setattr(redis_pubsub, "BATCH_SECONDS", 0.3)
    run(act())


def test_nothing_waits_for_a_redis_that_is_away_and_what_waits_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    cluster = TwoProcesses("redis://127.0.0.1:9")

    async def act() -> None:
        async with cluster.running():
            pubsub = cluster.here.cluster.pubsub
            assert pubsub is not None
            await until(lambda: "redis connection failed (publishing events)" in caplog.text)
            for number in range(redis_pubsub.MAX_QUEUED_IDS * 2):
                pubsub.publish_waiter(f"act_{number}")
            await until(lambda: pubsub.lost > 0)
            messages = redis_pubsub.MAX_QUEUED_IDS // redis_pubsub.MAX_IDS_PER_MESSAGE
            assert (pubsub.lost, pubsub.sent) == (messages, 0)
            # Nothing is kept for later.
            pubsub.publish_waiter("act_next")
            await until(lambda: pubsub.lost > messages)
            assert (pubsub.lost, pubsub.sent) == (messages + 1, 0)

    run(act())
    close_services(cluster.opened.services)


@pytest.mark.parametrize(
    "payload",
    ["", "{", "null", '{"by": 1}', '{"by": "x", "logs": "all"}', '{"by": "x", "logs": [1]}', "\x00", "é" * 1000],
)
def test_what_is_no_message_is_counted_and_passed_over(
    cluster: TwoProcesses, server: RedisServer, payload: str
) -> None:
    async def act() -> None:
        async with cluster.running():
            await connected(cluster)
            pubsub = cluster.there.cluster.pubsub
            assert pubsub is not None
            with redis.Redis.from_url(server.url) as client:
                client.publish(pubsub.channel, payload)
            await until(lambda: pubsub.lost == 1)
            assert b'"event":"registered"' in await event_from(cluster, cluster.there)

    run(act())


def test_a_member_that_is_not_known_yet_is_passed_over(cluster: TwoProcesses, server: RedisServer) -> None:
    async def act() -> None:
        async with cluster.running():
            await connected(cluster)
            pubsub = cluster.there.cluster.pubsub
            assert pubsub is not None
            waiter = cluster.there.waiters.wait("act_1")
            with redis.Redis.from_url(server.url) as client:
                client.publish(pubsub.channel, '{"by": "a later version", "bells": ["act_1"], "moods": ["good"]}')
            await until(lambda: waiter.done)

    run(act())


def test_a_store_that_fails_while_it_is_looked_at_is_looked_at_again(
    cluster_without_redis: TwoProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_events, "POLL_SECONDS", 0.02)
    real = cluster_without_redis.there.services.store
    failing = FailingProxy(real, "log_size", StoreError("away"), once=True)
    cluster_without_redis.there.services.__dict__["store"] = failing

    async def act() -> None:
        async with cluster_without_redis.running():
            assert b'"event":"registered"' in await event_from(cluster_without_redis, cluster_without_redis.there)
            assert failing.calls > 1

    run(act())


def test_a_process_that_is_alone_neither_tells_nor_looks() -> None:
    opened = open_services(Settings(redis_url="redis://127.0.0.1:9"), in_memory=True)
    pubsub = create_cluster_notifier(opened.services, Listeners(opened.services.store), lambda: None)
    assert (pubsub.pubsub, pubsub.poll_interval) == (None, math.inf)

    async def act() -> None:
        pubsub.start()
        assert "qwed-cluster" not in {task.get_name() for task in asyncio.all_tasks()}
        await pubsub.close()

    run(act())
    close_services(opened.services)
