"""Sliding window in Redis: the guarantees of the one in memory, for several processes."""

import asyncio
from collections.abc import Iterator

import pytest
import redis

from qwed.ratelimit.limit_status import RateLimitStatus
from qwed.ratelimit.memory_limiter import WINDOW_SECONDS
from qwed.ratelimit.redis_limiter import RedisSlidingWindow
from tests.support.redis_manual_clock import NOON, RedisManualClock, long_reply_timeout, run
from tests.support.redis_server import RedisServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    with long_reply_timeout():
        yield


@pytest.fixture
def manual_clock(server: RedisServer) -> Iterator[RedisManualClock]:
    hands_here = RedisManualClock(server)
    yield hands_here
    hands_here.client.close()


async def hits(limiter: RedisSlidingWindow, times: int, key: str = "a") -> list[bool]:
    return [(await limiter.hit(key)).allowed for _ in range(times)]


def test_as_many_as_the_limit_pass_and_what_is_left_is_said_after_each(manual_clock: RedisManualClock) -> None:
    async def act() -> None:
        async with manual_clock.limiter(2) as limiter:
            assert await limiter.hit("a") == RateLimitStatus(2, 1, 61, True)
            assert await limiter.hit("a") == RateLimitStatus(2, 0, 61, True)
            assert await limiter.hit("a") == RateLimitStatus(2, 0, 61, False)
            assert await limiter.hit("b") == RateLimitStatus(2, 1, 61, True)

    run(act())


def test_a_request_counts_for_a_minute_and_less_than_a_second_more(manual_clock: RedisManualClock) -> None:
    async def act() -> None:
        async with manual_clock.limiter(1) as limiter:
            await limiter.hit("a")
            manual_clock.advance(WINDOW_SECONDS)
            assert await limiter.hit("a") == RateLimitStatus(1, 0, 1, False)
            manual_clock.advance(1)
            assert await limiter.hit("a") == RateLimitStatus(1, 0, 61, True)

    run(act())


def test_the_window_slides_and_a_refused_request_is_not_counted(manual_clock: RedisManualClock) -> None:
    async def act() -> None:
        async with manual_clock.limiter(60) as limiter:
            for _ in range(60):
                assert await hits(limiter, 1) == [True]
                manual_clock.advance(1)
            assert await hits(limiter, 3) == [False] * 3
            manual_clock.advance(1)
            # A second later, the requests of one second are free again, not those of the whole minute.
            assert await hits(limiter, 3) == [True, False, False]

    run(act())


@pytest.mark.parametrize("seconds", [61, 62, 121, 122, 10_000, 10_000_000])
def test_after_any_silence_the_window_is_empty(manual_clock: RedisManualClock, seconds: float) -> None:
    async def act() -> None:
        async with manual_clock.limiter(5) as limiter:
            await hits(limiter, 5)
            manual_clock.advance(seconds)
            assert await limiter.hit("a") == RateLimitStatus(5, 4, 61, True)

    run(act())


def test_a_clock_that_goes_back_gives_nothing_away_and_is_over_after_a_minute(manual_clock: RedisManualClock) -> None:
    async def act() -> None:
        async with manual_clock.limiter(3) as limiter:
            await hits(limiter, 2)
            manual_clock.advance(-3_600)
            assert await hits(limiter, 2) == [True, False]
            manual_clock.advance(WINDOW_SECONDS)
            assert await hits(limiter, 1) == [False]
            manual_clock.advance(1)
            assert await limiter.hit("a") == RateLimitStatus(3, 2, 61, True)

    run(act())


def test_a_full_window_stays_full_when_the_clock_goes_back(manual_clock: RedisManualClock) -> None:
    async def act() -> None:
        async with manual_clock.limiter(2) as limiter:
            await hits(limiter, 2)
            manual_clock.advance(-5)
            assert await limiter.hit("a") == RateLimitStatus(2, 0, 61, False)
            manual_clock.advance(WINDOW_SECONDS)
            assert await limiter.hit("a") == RateLimitStatus(2, 0, 1, False)
            manual_clock.advance(1)
            assert await hits(limiter, 3) == [True, True, False]

    run(act())


def test_a_limit_that_was_lowered_holds_and_what_has_left_is_not_forgotten_twice(
    manual_clock: RedisManualClock,
) -> None:
    async def act() -> None:
        async with manual_clock.limiter(10) as high, manual_clock.limiter(3) as low:
            await hits(high, 4)
            manual_clock.advance(30)
            await hits(high, 4)
            assert await low.hit("a") == RateLimitStatus(3, 0, 31, False)
            manual_clock.advance(31)
            assert await hits(low, 2) == [False, False]
            assert await high.hit("a") == RateLimitStatus(10, 5, 30, True)
            manual_clock.advance(30)
            assert await low.hit("a") == RateLimitStatus(3, 1, 31, True)

    run(act())


def test_several_processes_together_do_not_pass_the_limit(manual_clock: RedisManualClock) -> None:
    async def act() -> int:
        async with (
            manual_clock.limiter(500) as one,
            manual_clock.limiter(500) as two,
            manual_clock.limiter(500) as three,
        ):
            heard = await asyncio.gather(*(limiter.hit("a") for _ in range(250) for limiter in (one, two, three)))
        assert len({allowance.remaining for allowance in heard}) == 500
        return sum(allowance.allowed for allowance in heard)

    assert run(act()) == 500


def test_all_that_is_asked_at_once_is_one_command_over_one_connection(manual_clock: RedisManualClock) -> None:
    async def act() -> None:
        async with manual_clock.limiter(1_000) as limiter:
            await limiter.hit("a")
            before, _ = manual_clock.client.info("commandstats")["cmdstat_evalsha"]["calls"], manual_clock.client.ping()
            await asyncio.gather(*(limiter.hit(f"agent {number}") for number in range(256)))
            assert manual_clock.client.info("commandstats")["cmdstat_evalsha"]["calls"] - before <= 2
            # The limiter's connection and the client that lists them.
            assert len(manual_clock.client.client_list()) == 2

    run(act())


def test_a_window_is_small_however_much_is_counted_and_goes_by_itself(manual_clock: RedisManualClock) -> None:
    async def act() -> None:
        async with manual_clock.limiter(60_000) as limiter:
            for _ in range(70):
                await asyncio.gather(*(limiter.hit("a") for _ in range(20)))
                manual_clock.advance(1)

    run(act())
    window = manual_clock.window("a")
    assert int(manual_clock.client.hget(window, "used") or 0) == 1_220
    assert manual_clock.client.hlen(window) == 64
    assert (manual_clock.client.memory_usage(window) or 0) <= 700
    assert WINDOW_SECONDS < manual_clock.client.ttl(window) <= WINDOW_SECONDS + 2


def test_the_time_is_that_of_the_redis(manual_clock: RedisManualClock) -> None:
    async def act() -> None:
        limiter = RedisSlidingWindow(5, manual_clock.server.url, manual_clock.installation)
        await limiter.hit("a")
        await limiter.connection.close()

    run(act())
    second = int(manual_clock.client.hget(manual_clock.window("a"), "newest") or 0)
    assert abs(int(manual_clock.client.time()[0]) - second) < 60
    assert second != NOON


def test_two_installations_on_one_redis_are_apart(manual_clock: RedisManualClock) -> None:
    other = RedisManualClock(manual_clock.server)

    async def act() -> None:
        async with manual_clock.limiter(1) as here, other.limiter(1) as there:
            assert await hits(here, 2) == [True, False]
            assert await hits(there, 2) == [True, False]

    run(act())
    other.client.close()


def test_a_script_that_the_redis_forgot_is_sent_again_with_the_same_request(manual_clock: RedisManualClock) -> None:
    async def act() -> None:
        async with manual_clock.limiter(5) as limiter:
            await limiter.hit("a")
            manual_clock.client.script_flush()
            heard = await asyncio.gather(*(limiter.hit("a") for _ in range(3)))
            assert [allowance.remaining for allowance in heard] == [3, 2, 1]
            assert (await limiter.hit("a")).remaining == 0
            assert limiter.connection.up

    run(act())


def test_foreign_values_in_a_window_cannot_keep_the_redis_busy(manual_clock: RedisManualClock) -> None:
    manual_clock.client.hset(manual_clock.window("a"), mapping={"used": 10**9, "oldest": 1, "newest": NOON - 1})

    async def act() -> None:
        async with manual_clock.limiter(5) as limiter:
            assert await limiter.hit("a") == RateLimitStatus(5, 0, 61, False)
            assert (await limiter.hit("b")).allowed

    run(act())


def test_a_limiter_goes_from_one_event_loop_to_the_next(manual_clock: RedisManualClock) -> None:
    limiter = RedisSlidingWindow(3, manual_clock.server.url, manual_clock.installation)

    async def act() -> bool:
        return (await limiter.hit("a")).allowed

    assert [run(act()) for _ in range(4)] == [True, True, True, False]


def test_a_caller_that_leaves_early_takes_nothing_from_the_others(manual_clock: RedisManualClock) -> None:
    async def act() -> None:
        async with manual_clock.limiter(5) as limiter:
            leaving, staying = (asyncio.ensure_future(limiter.hit("a")) for _ in range(2))
            await asyncio.sleep(0)
            leaving.cancel()
            assert (await staying).remaining == 3

    run(act())


def test_a_password_and_a_database_of_the_address_are_used(manual_clock: RedisManualClock) -> None:
    manual_clock.client.config_set("requirepass", "h/unter 2")
    try:
        place = f"redis://:h%2Funter%202@127.0.0.1:{manual_clock.server.port}/3"
        limiter = RedisSlidingWindow(5, place, manual_clock.installation)

        async def act() -> None:
            assert (await limiter.hit("a")).allowed
            await limiter.connection.close()

        run(act())
        third = redis.Redis.from_url(place)
        assert third.exists(manual_clock.window("a"))
        third.close()
    finally:
        manual_clock.client.config_set("requirepass", "")
