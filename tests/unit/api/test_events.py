"""Following a log, in process: heartbeats, waking, sharing, and how many may listen."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from qwed.api import events
from qwed.api.events import Following, Listeners
from qwed.gate import Gate
from qwed.kernel.people.events import PAGE, TYPES, TYPES_OF, message_of
from qwed.kernel.wiring import close_services, open_services
from qwed.ledger import leaf
from qwed.ledger.leaf import Leaf
from qwed.settings import Settings
from qwed.store.agent import Key
from qwed.store.protocol import LogEntry, StoreError
from qwed.words import Event
from tests.support.failing import Failing, Listening

ALL = frozenset(TYPES)


class House:
    """A store in memory, a gate to it, and those who listen there."""

    def __init__(self) -> None:
        self.opened = open_services(Settings(), in_memory=True)
        self.store: Any = self.opened.services.store
        self.gate = Gate(self.opened)
        self.organisation_id = self.opened.organisation_id
        (self.key,) = self.store.list_keys(self.organisation_id)
        self.listeners = self.listened_to(self.store)
        self._made = 0

    def listened_to(self, store: Any) -> Listeners:
        """Listeners that read through `store`."""
        self.listeners = Listeners(store)
        self.store.on_commit = self.listeners.rung
        return self.listeners

    def act(self, count: int = 1) -> None:
        """So many leaves."""
        for _ in range(count):
            self._made += 1
            self.gate.register_agent(name=f"agent {self._made}", principal_id="p")

    def follow(self, last: int = -1, types: frozenset[str] = ALL, key: Key | None = None) -> Following:
        return Following(key or self.key, last, types, self.listeners)


@pytest.fixture
def house() -> Iterator[House]:
    made = House()
    yield made
    assert made.listeners.count == 0
    made.gate.close()
    close_services(made.opened.services)


def play(act: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(30):
            await act()

    asyncio.run(run())


@asynccontextmanager
async def heard_by(following: Following) -> AsyncIterator[Any]:
    """The texts of a stream, after the one it begins with."""
    told = aiter(following)
    try:
        yield told
    finally:
        await following.aclose()


async def asleep(house: House) -> None:
    """Until nobody looks at the log any more, and everybody waits."""
    await asyncio.sleep(0)
    while house.listeners._reading:  # noqa: ASYNC110 - a look in a thread has no event to wait for
        # Not 0: who only ever asks keeps the interpreter from that thread.
        await asyncio.sleep(0.001)
    for _ in range(10):
        await asyncio.sleep(0)


def ids_of(text: bytes) -> list[int]:
    return [int(line[4:]) for line in text.decode().splitlines() if line.startswith("id: ")]


def test_a_stream_says_first_how_soon_to_come_back_and_where_it_stands(house: House) -> None:
    async def act() -> None:
        async with heard_by(house.follow()) as told:
            assert await anext(told) == b"retry: 1000\nid: -1\n\n"
            assert house.listeners.count == 1

    play(act)


def test_what_was_kept_before_comes_in_pages_and_what_is_kept_then_as_it_comes(house: House) -> None:
    house.act(PAGE + 5)

    async def act() -> None:
        async with heard_by(house.follow(last=1)) as told:
            await anext(told)
            assert ids_of(await anext(told)) == list(range(2, PAGE + 2))
            assert ids_of(await anext(told)) == [PAGE + 2, PAGE + 3, PAGE + 4]
            later = asyncio.ensure_future(anext(told))
            await asyncio.sleep(0)
            house.act()
            assert ids_of(await later) == [PAGE + 5]

    play(act)


def test_who_hears_nothing_hears_a_heartbeat_that_is_no_event(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.01)

    async def act() -> None:
        async with heard_by(house.follow()) as told:
            await anext(told)
            assert [await anext(told) for _ in range(3)] == [b":\n"] * 3

    play(act)


def test_who_asked_for_little_is_told_how_far_the_log_has_come(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.01)

    async def act() -> None:
        async with heard_by(house.follow(types=frozenset({"decision"}))) as told:
            await anext(told)
            assert await anext(told) == b":\n"
            house.act(3)
            while (text := await anext(told)) == b":\n":
                pass
            assert text == b"id: 2\n\n"
            assert await anext(told) == b":\n"

    play(act)


def test_a_heart_beats_while_much_is_read_of_which_nothing_was_asked_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.0)
    house.act(3 * PAGE)

    async def act() -> None:
        async with heard_by(house.follow(types=frozenset({"decision"}))) as told:
            await anext(told)
            texts = [await anext(told) for _ in range(3)]
            assert texts == [b"id: %d\n\n" % (PAGE * page - 1) for page in (1, 2, 3)]

    play(act)


def test_a_hundred_at_the_same_place_look_once(house: House) -> None:
    store = Listening(house.store)
    house.listened_to(store)

    async def act() -> None:
        streams = [house.follow() for _ in range(60)]
        told = [aiter(each) for each in streams]
        await asyncio.gather(*map(anext, told))
        house.act(2)
        texts = await asyncio.gather(*map(anext, told))
        assert set(map(tuple, map(ids_of, texts))) == {(0, 1)}
        assert store.called.count("entries") == 1
        for each in streams:
            await each.aclose()

    play(act)


def test_many_who_come_back_look_at_the_log_two_at_a_time(house: House) -> None:
    house.act(30)
    looking = Looking(house.store)
    house.listened_to(looking)

    async def act() -> None:
        streams = [house.follow(last=place) for place in range(20)]
        told = [aiter(each) for each in streams]
        await asyncio.gather(*map(anext, told))
        texts = await asyncio.gather(*map(anext, told))
        assert [ids_of(text)[0] for text in texts] == list(range(1, 21))
        assert looking.most == 2
        for each in streams:
            await each.aclose()

    play(act)


class Looking:
    """A store that knows how many look at its log at once."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self._now = 0
        self.most = 0
        self._lock = threading.Lock()
        self._two = threading.Barrier(2, timeout=60)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def entries(self, *given: Any) -> Any:
        """What is there, once a second one looks too."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self._two.wait()
        with self._lock:
            self._now -= 1
        return self._real.entries(*given)


def test_many_commits_wake_a_listener_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAUSE_SECONDS", 3600.0)
    # On a busy machine a heartbeat may be due before the acts are done.
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 3600.0)

    async def act() -> None:
        async with heard_by(house.follow()) as told:
            await anext(told)
            waiting = asyncio.ensure_future(anext(told))
            await asleep(house)
            house.act(3)
            assert ids_of(await waiting) == [0, 1, 2]
            again = asyncio.ensure_future(anext(told))
            await asleep(house)
            house.act(3)
            await asleep(house)
            # Woken a moment ago: whoever comes so soon after waits for the next time.
            assert not again.done()
            house.listeners._ring(house.organisation_id)
            assert ids_of(await again) == [3, 4, 5]

    play(act)


def test_where_nobody_listens_a_commit_wakes_nobody(house: House) -> None:
    async def act() -> None:
        stream = house.follow()
        house.listeners.rung(["org_other"])
        assert house.listeners._rung == set()
        await stream.aclose()
        house.act(2)
        assert (house.listeners._rung, house.listeners._ears) == (set(), {})

    play(act)


def test_one_who_leaves_a_shared_look_does_not_take_it_from_the_others(house: House) -> None:
    house.act(1)

    async def act() -> None:
        leaving, staying = house.follow(), house.follow()
        told = [aiter(each) for each in (leaving, staying)]
        await asyncio.gather(*map(anext, told))
        looks = [asyncio.ensure_future(anext(each)) for each in told]
        await asyncio.sleep(0)
        looks[0].cancel()
        assert ids_of(await looks[1]) == [0]
        for each in (leaving, staying):
            await each.aclose()

    play(act)


def test_a_store_that_fails_is_a_failure_of_the_stream(house: House) -> None:
    house.act(1)
    house.listened_to(Failing(house.store, "entries", StoreError("gone")))

    async def act() -> None:
        async with heard_by(house.follow()) as told:
            await anext(told)
            with pytest.raises(StoreError):
                await anext(told)

    play(act)


def test_a_failed_look_that_nobody_waits_for_any_more_is_nobodys(house: House) -> None:
    house.listened_to(Failing(house.store, "entries", StoreError("gone")))

    async def act() -> None:
        look = asyncio.ensure_future(house.listeners.page(house.organisation_id, 0))
        await asyncio.sleep(0)
        look.cancel()
        await asleep(house)

    play(act)


def test_a_node_has_so_many_streams_and_an_organisation_its_share(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST", 3)
    monkeypatch.setattr(events, "MOST_EACH", 2)
    other = Key(**{**{name: getattr(house.key, name) for name in _FIELDS}, "organisation_id": "org_other"})

    async def act() -> None:
        refuse = house.listeners.refuse
        streams = [house.follow(), house.follow(), house.follow(key=other)]
        assert [getattr(refuse(name), "code", None) for name in (house.organisation_id, "org_other")] == [
            "QWED-SYS-001",
            "QWED-SYS-003",
        ]
        await streams[0].aclose()
        assert refuse("org_other") is None
        await streams[0].aclose()
        assert house.listeners.count == 2
        for each in streams[1:]:
            await each.aclose()

    play(act)


_FIELDS = ("key_id", "organisation_id", "name", "role", "prefix", "digest", "created_at")


def test_a_stream_ends_when_the_node_stops_and_none_begins_after_that(house: House) -> None:
    async def act() -> None:
        async with heard_by(house.follow()) as told:
            await anext(told)
            waiting = asyncio.ensure_future(anext(told))
            await asleep(house)
            house.listeners.close()
            with pytest.raises(StopAsyncIteration):
                await waiting
        found = house.listeners.refuse(house.organisation_id)
        assert found is not None
        assert (found.code, found.message) == ("QWED-SYS-003", "the server is about to stop")

    play(act)


def test_a_stream_that_never_began_gives_its_place_back(house: House) -> None:
    async def act() -> None:
        stream = house.follow()
        assert house.listeners.count == 1
        await stream.aclose()
        assert house.listeners.count == 0

    play(act)


def test_listeners_of_one_loop_are_woken_after_those_of_another_were_left_asleep(house: House) -> None:
    async def begin() -> None:
        stream = house.follow()
        house.act(1)
        # The loop ends before it has woken anybody.
        await stream.aclose()

    async def again() -> None:
        async with heard_by(house.follow(last=0)) as told:
            await anext(told)
            waiting = asyncio.ensure_future(anext(told))
            await asleep(house)
            house.act(1)
            assert ids_of(await waiting) == [1]

    play(begin)
    play(again)


# What a leaf tells


def test_every_change_there_is_has_a_type() -> None:
    assert set(TYPES_OF) == set(Event)
    assert {kind for kinds in TYPES_OF.values() for kind in kinds} | {"decision"} == set(TYPES)


def test_a_change_that_is_not_known_yet_is_the_organisations() -> None:
    told = _told(event="something_new")
    assert (told["type"], told["event"]) == ("organisation", "something_new")


def test_an_event_is_one_line_whatever_stands_in_it() -> None:
    kept = Leaf(activity_id="act_1", by="key_1", event="tool_changed", about="a\nb\r\u2028c", time_ms=1, v=2)
    text = message_of(LogEntry(7, leaf.encode(kept).decode())).text
    assert text.count(b"\n") == 4
    assert text.count(b"\r") == 0
    assert text.startswith(b"id: 7\nevent: organisation\ndata: {")


@pytest.mark.parametrize(("version", "told"), [(1, None), (2, "calculate")])
def test_of_old_leaves_which_may_name_any_type_of_action_none_is_told(version: int, told: str | None) -> None:
    assert _told(v=version, action_type="calculate", decision="APPROVED").get("action_type") == told


def test_nothing_of_a_leaf_is_told_that_could_be_about_its_content() -> None:
    secret = "f" * 64
    told = _told(
        decision="APPROVED",
        commitment=secret,
        action_hash=secret,
        result_hash=secret,
        policy_hash=secret,
        sub=secret,
        conversation_id=secret,
    )
    assert secret not in json.dumps(told)


def _told(**members: Any) -> dict[str, Any]:
    kept = Leaf(**{"activity_id": "act_1", "by": "key_1", "time_ms": 1_790_000_000_000, "v": 2, **members})
    text = message_of(LogEntry(0, leaf.encode(kept).decode())).text
    read: dict[str, Any] = json.loads(text.split(b"data: ")[1])
    return read
