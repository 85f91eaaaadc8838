"""Event streams in process: heartbeats, wake-ups, shared reads and limits."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from qwed.api.handlers import event_stream
from qwed.api.handlers.event_stream import EventStream, Listeners
from qwed.domain.agent import Key
from qwed.gate import Gate
from qwed.kernel.admin.events import PAGE, TYPES, TYPES_OF, message_of
from qwed.kernel.bootstrap import close_services, open_services
from qwed.ledger import leaf
from qwed.ledger.leaf import Leaf
from qwed.model import Event
from qwed.settings import Settings
from qwed.store.protocol import LogEntry, StoreError
from tests.support.fault_injection import FailingProxy, RecordingProxy

ALL = frozenset(TYPES)


class LogFixture:
    """In-memory store, a gate to it, and its event streams."""

    def __init__(self) -> None:
        self.opened = open_services(Settings(), in_memory=True)
        self.store: Any = self.opened.services.store
        self.gate = Gate(self.opened)
        self.organisation_id = self.opened.organisation_id
        (self.key,) = self.store.list_keys(self.organisation_id)
        self.listeners = self.listen_to(self.store)
        self._made = 0

    def listen_to(self, store: Any) -> Listeners:
        """Create listeners that read through `store`."""
        self.listeners = Listeners(store)
        self.store.on_commit = self.listeners.notify
        return self.listeners

    def act(self, count: int = 1) -> None:
        """Write so many leaves."""
        for _ in range(count):
            self._made += 1
            self.gate.register_agent(name=f"agent {self._made}", principal_id="p")

    def follow(self, last: int = -1, types: frozenset[str] = ALL, key: Key | None = None) -> EventStream:
        return EventStream(key or self.key, last, types, self.listeners)


@pytest.fixture
def log() -> Iterator[LogFixture]:
    log = LogFixture()
    yield log
    assert log.listeners.count == 0
    log.gate.close()
    close_services(log.opened.services)


def play(act: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(30):
            await act()

    asyncio.run(run())


@asynccontextmanager
async def reading(following: EventStream) -> AsyncIterator[Any]:
    """Yield the chunks of a stream, and close it afterwards."""
    chunks = aiter(following)
    try:
        yield chunks
    finally:
        await following.aclose()


async def until_idle(log: LogFixture) -> None:
    """Wait until no read of the log is in progress."""
    await asyncio.sleep(0)
    while log.listeners._reads:  # noqa: ASYNC110 - a look in a thread has no event to wait for
        # Not 0: a busy loop keeps the GIL from that thread.
        await asyncio.sleep(0.001)
    for _ in range(10):
        await asyncio.sleep(0)


def ids_of(text: bytes) -> list[int]:
    return [int(line[4:]) for line in text.decode().splitlines() if line.startswith("id: ")]


def test_a_stream_says_first_how_soon_to_come_back_and_where_it_stands(log: LogFixture) -> None:
    async def act() -> None:
        async with reading(log.follow()) as chunks:
            assert await anext(chunks) == b"retry: 1000\nid: -1\n\n"
            assert log.listeners.count == 1

    play(act)


def test_what_was_kept_before_comes_in_pages_and_what_is_kept_then_as_it_comes(log: LogFixture) -> None:
    log.act(PAGE + 5)

    async def act() -> None:
        async with reading(log.follow(last=1)) as chunks:
            await anext(chunks)
            assert ids_of(await anext(chunks)) == list(range(2, PAGE + 2))
            assert ids_of(await anext(chunks)) == [PAGE + 2, PAGE + 3, PAGE + 4]
            later = asyncio.ensure_future(anext(chunks))
            await asyncio.sleep(0)
            log.act()
            assert ids_of(await later) == [PAGE + 5]

    play(act)


def test_who_hears_nothing_hears_a_heartbeat_that_is_no_event(log: LogFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.01)

    async def act() -> None:
        async with reading(log.follow()) as chunks:
            await anext(chunks)
            assert [await anext(chunks) for _ in range(3)] == [b":\n"] * 3

    play(act)


def test_who_asked_for_little_is_told_how_far_the_log_has_come(
    log: LogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.01)

    async def act() -> None:
        async with reading(log.follow(types=frozenset({"decision"}))) as chunks:
            await anext(chunks)
            assert await anext(chunks) == b":\n"
            log.act(3)
            while (text := await anext(chunks)) == b":\n":
                pass
            assert text == b"id: 2\n\n"
            assert await anext(chunks) == b":\n"

    play(act)


def test_a_heart_beats_while_much_is_read_of_which_nothing_was_asked_for(
    log: LogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.0)
    log.act(3 * PAGE)

    async def act() -> None:
        async with reading(log.follow(types=frozenset({"decision"}))) as chunks:
            await anext(chunks)
            texts = [await anext(chunks) for _ in range(3)]
            assert texts == [b"id: %d\n\n" % (PAGE * page - 1) for page in (1, 2, 3)]

    play(act)


def test_a_hundred_at_the_same_place_look_once(log: LogFixture) -> None:
    store = RecordingProxy(log.store)
    log.listen_to(store)

    async def act() -> None:
        streams = [log.follow() for _ in range(60)]
        chunks = [aiter(stream) for stream in streams]
        await asyncio.gather(*map(anext, chunks))
        log.act(2)
        texts = await asyncio.gather(*map(anext, chunks))
        assert set(map(tuple, map(ids_of, texts))) == {(0, 1)}
        assert store.called.count("entries") == 1
        for stream in streams:
            await stream.aclose()

    play(act)


def test_many_who_come_back_look_at_the_log_two_at_a_time(log: LogFixture) -> None:
    log.act(30)
    store = CountingStore(log.store)
    log.listen_to(store)

    async def act() -> None:
        streams = [log.follow(last=position) for position in range(20)]
        chunks = [aiter(stream) for stream in streams]
        await asyncio.gather(*map(anext, chunks))
        texts = await asyncio.gather(*map(anext, chunks))
        assert [ids_of(text)[0] for text in texts] == list(range(1, 21))
        assert store.most == 2
        for stream in streams:
            await stream.aclose()

    play(act)


class CountingStore:
    """Store that records the number of concurrent reads of its log."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self._now = 0
        self.most = 0
        self._lock = threading.Lock()
        self._two = threading.Barrier(2, timeout=60)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def entries(self, *args: Any) -> Any:
        """Return the entries once a second read has begun."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self._two.wait()
        with self._lock:
            self._now -= 1
        return self._real.entries(*args)


def test_many_commits_wake_a_listener_once(log: LogFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "WAKE_INTERVAL_SECONDS", 10.0)
    # On a busy machine a heartbeat may be due before the leaves are written.
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 3600.0)

    async def act() -> None:
        async with reading(log.follow()) as chunks:
            await anext(chunks)
            waiting = asyncio.ensure_future(anext(chunks))
            await until_idle(log)
            log.act(3)
            assert ids_of(await waiting) == [0, 1, 2]
            again = asyncio.ensure_future(anext(chunks))
            await until_idle(log)
            log.act(3)
            await until_idle(log)
            # Within the wake interval, the next wake-up is delayed.
            assert not again.done()
            loop = asyncio.get_running_loop()
            now = loop.time
            monkeypatch.setattr(loop, "time", lambda: now() + 10.0)
            assert ids_of(await again) == [3, 4, 5]

    play(act)


def test_without_listeners_a_commit_wakes_none(log: LogFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        loop = asyncio.get_running_loop()
        scheduled: list[Any] = []
        real = loop.call_soon_threadsafe
        monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *call: scheduled.append(call) or real(*call))
        async with reading(log.follow()) as chunks:
            await anext(chunks)
            waiting = asyncio.ensure_future(anext(chunks))
            await until_idle(log)
            log.act(1)
            assert ids_of(await waiting) == [0]
            await until_idle(log)
            # The wake-up and the reads come through here.
            assert scheduled
            scheduled.clear()
            log.listeners.notify(["org_other"])
            assert scheduled == []
        scheduled.clear()
        log.act(2)
        assert (scheduled, log.listeners.followed()) == ([], [])

    play(act)


def test_one_who_leaves_a_shared_look_does_not_take_it_from_the_others(log: LogFixture) -> None:
    log.act(1)

    async def act() -> None:
        leaving, staying = log.follow(), log.follow()
        chunks = [aiter(stream) for stream in (leaving, staying)]
        await asyncio.gather(*map(anext, chunks))
        looks = [asyncio.ensure_future(anext(stream)) for stream in chunks]
        await asyncio.sleep(0)
        looks[0].cancel()
        assert ids_of(await looks[1]) == [0]
        for stream in (leaving, staying):
            await stream.aclose()

    play(act)


def test_a_store_that_fails_is_a_failure_of_the_stream(log: LogFixture) -> None:
    log.act(1)
    log.listen_to(FailingProxy(log.store, "entries", StoreError("gone")))

    async def act() -> None:
        async with reading(log.follow()) as chunks:
            await anext(chunks)
            with pytest.raises(StoreError):
                await anext(chunks)

    play(act)


def test_a_failed_read_without_waiters_is_not_reported(log: LogFixture) -> None:
    log.listen_to(FailingProxy(log.store, "entries", StoreError("gone")))

    async def act() -> None:
        look = asyncio.ensure_future(log.listeners.page(log.organisation_id, 0))
        await asyncio.sleep(0)
        look.cancel()
        await until_idle(log)

    play(act)


def test_a_node_has_so_many_streams_and_an_organisation_its_share(
    log: LogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "MAX_STREAMS", 3)
    monkeypatch.setattr(event_stream, "MAX_STREAMS_PER_ORGANISATION", 2)
    other = Key(**{**{name: getattr(log.key, name) for name in _FIELDS}, "organisation_id": "org_other"})

    async def act() -> None:
        refuse = log.listeners.refuse
        streams = [log.follow(), log.follow(), log.follow(key=other)]
        assert [getattr(refuse(name), "code", None) for name in (log.organisation_id, "org_other")] == [
            "QWED-SYS-001",
            "QWED-SYS-003",
        ]
        await streams[0].aclose()
        assert refuse("org_other") is None
        await streams[0].aclose()
        assert log.listeners.count == 2
        for stream in streams[1:]:
            await stream.aclose()

    play(act)


_FIELDS = ("key_id", "organisation_id", "name", "role", "prefix", "digest", "created_at")


def test_a_stream_ends_when_the_node_stops_and_none_begins_after_that(log: LogFixture) -> None:
    async def act() -> None:
        async with reading(log.follow()) as chunks:
            await anext(chunks)
            waiting = asyncio.ensure_future(anext(chunks))
            await until_idle(log)
            log.listeners.close()
            with pytest.raises(StopAsyncIteration):
                await waiting
        refusal = log.listeners.refuse(log.organisation_id)
        assert refusal is not None
        assert (refusal.code, refusal.message) == ("QWED-SYS-003", "the server is stopping")

    play(act)


def test_a_stream_that_never_began_gives_its_place_back(log: LogFixture) -> None:
    async def act() -> None:
        stream = log.follow()
        assert log.listeners.count == 1
        await stream.aclose()
        assert log.listeners.count == 0

    play(act)


def test_listeners_of_one_loop_are_woken_after_those_of_another_were_left_asleep(log: LogFixture) -> None:
    async def begin() -> None:
        stream = log.follow()
        log.act(1)
        # The loop ends before a listener was woken.
        await stream.aclose()

    async def again() -> None:
        async with reading(log.follow(last=0)) as chunks:
            await anext(chunks)
            waiting = asyncio.ensure_future(anext(chunks))
            await until_idle(log)
            log.act(1)
            assert ids_of(await waiting) == [1]

    play(begin)
    play(again)


# Content of an event


def test_every_change_there_is_has_a_type() -> None:
    assert set(TYPES_OF) == set(Event)
    assert {kind for kinds in TYPES_OF.values() for kind in kinds} | {"decision"} == set(TYPES)


def test_a_change_that_is_not_known_yet_is_the_organisations() -> None:
    event = _event_of(event="something_new")
    assert (event["type"], event["event"]) == ("organisation", "something_new")


def test_an_event_is_one_line_whatever_stands_in_it() -> None:
    stored = Leaf(activity_id="act_1", by="key_1", event="tool_changed", about="a\nb\r\u2028c", time_ms=1, v=2)
    text = message_of(LogEntry(7, leaf.encode(stored).decode())).text
    assert text.count(b"\n") == 4
    assert text.count(b"\r") == 0
    assert text.startswith(b"id: 7\nevent: organisation\ndata: {")


@pytest.mark.parametrize(("version", "expected"), [(1, None), (2, "calculate")])
def test_of_old_leaves_which_may_name_any_type_of_action_none_is_told(version: int, expected: str | None) -> None:
    assert _event_of(v=version, action_type="calculate", decision="APPROVED").get("action_type") == expected


def test_nothing_of_a_leaf_is_told_that_could_be_about_its_content() -> None:
    secret = "f" * 64
    event = _event_of(
        decision="APPROVED",
        commitment=secret,
        action_hash=secret,
        result_hash=secret,
        policy_hash=secret,
        sub=secret,
        conversation_id=secret,
    )
    assert secret not in json.dumps(event)


def _event_of(**members: Any) -> dict[str, Any]:
    stored = Leaf(**{"activity_id": "act_1", "by": "key_1", "time_ms": 1_790_000_000_000, "v": 2, **members})
    text = message_of(LogEntry(0, leaf.encode(stored).decode())).text
    read: dict[str, Any] = json.loads(text.split(b"data: ")[1])
    return read
