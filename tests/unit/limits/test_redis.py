"""The sliding window in a Redis: the promises of the one in memory, kept for several processes at once."""

import asyncio
from collections.abc import Iterator

import pytest
import redis

from qwed.limits.allowance import Allowance
from qwed.limits.memory import WINDOW
from qwed.limits.redis import RedisLimiter
from tests.support.redis_hands import NOON, Hands, patient, run
from tests.support.redis_server import RedisServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    with patient():
        yield


@pytest.fixture
def hands(server: RedisServer) -> Iterator[Hands]:
    made = Hands(server)
    yield made
    made.client.close()


async def asked(limiter: RedisLimiter, times: int, key: str = "a") -> list[bool]:
    return [(await limiter.hit(key)).allowed for _ in range(times)]


def test_as_many_as_the_limit_pass_and_what_is_left_is_said_after_each(hands: Hands) -> None:
    async def act() -> None:
        async with hands.limiter(2) as limiter:
            assert await limiter.hit("a") == Allowance(2, 1, 61, True)
            assert await limiter.hit("a") == Allowance(2, 0, 61, True)
            assert await limiter.hit("a") == Allowance(2, 0, 61, False)
            assert await limiter.hit("b") == Allowance(2, 1, 61, True)

    run(act())


def test_a_request_counts_for_a_minute_and_less_than_a_second_more(hands: Hands) -> None:
    async def act() -> None:
        async with hands.limiter(1) as limiter:
            await limiter.hit("a")
            hands.turn(WINDOW)
            assert await limiter.hit("a") == Allowance(1, 0, 1, False)
            hands.turn(1)
            assert await limiter.hit("a") == Allowance(1, 0, 61, True)

    run(act())


def test_the_window_slides_and_a_refused_request_is_not_counted(hands: Hands) -> None:
    async def act() -> None:
        async with hands.limiter(60) as limiter:
            for _ in range(60):
                assert await asked(limiter, 1) == [True]
                hands.turn(1)
            assert await asked(limiter, 3) == [False] * 3
            hands.turn(1)
            # One second's worth is free a second later, not the whole minute's.
            assert await asked(limiter, 3) == [True, False, False]

    run(act())


@pytest.mark.parametrize("seconds", [61, 62, 121, 122, 10_000, 10_000_000])
def test_after_any_silence_the_window_is_empty(hands: Hands, seconds: float) -> None:
    async def act() -> None:
        async with hands.limiter(5) as limiter:
            await asked(limiter, 5)
            hands.turn(seconds)
            assert await limiter.hit("a") == Allowance(5, 4, 61, True)

    run(act())


def test_a_clock_that_goes_back_gives_nothing_away_and_is_over_after_a_minute(hands: Hands) -> None:
    async def act() -> None:
        async with hands.limiter(3) as limiter:
            await asked(limiter, 2)
            hands.turn(-3_600)
            assert await asked(limiter, 2) == [True, False]
            hands.turn(WINDOW)
            assert await asked(limiter, 1) == [False]
            hands.turn(1)
            assert await limiter.hit("a") == Allowance(3, 2, 61, True)

    run(act())


def test_a_full_window_stays_full_when_the_clock_goes_back(hands: Hands) -> None:
    async def act() -> None:
        async with hands.limiter(2) as limiter:
            await asked(limiter, 2)
            hands.turn(-5)
            assert await limiter.hit("a") == Allowance(2, 0, 61, False)
            hands.turn(WINDOW)
            assert await limiter.hit("a") == Allowance(2, 0, 1, False)
            hands.turn(1)
            assert await asked(limiter, 3) == [True, True, False]

    run(act())


def test_a_limit_that_was_lowered_holds_and_what_has_left_is_not_forgotten_twice(hands: Hands) -> None:
    async def act() -> None:
        async with hands.limiter(10) as high, hands.limiter(3) as low:
            await asked(high, 4)
            hands.turn(30)
            await asked(high, 4)
            assert await low.hit("a") == Allowance(3, 0, 31, False)
            hands.turn(31)
            assert await asked(low, 2) == [False, False]
            assert await high.hit("a") == Allowance(10, 5, 30, True)
            hands.turn(30)
            assert await low.hit("a") == Allowance(3, 1, 31, True)

    run(act())


def test_several_processes_together_do_not_pass_the_limit(hands: Hands) -> None:
    async def act() -> int:
        async with hands.limiter(500) as one, hands.limiter(500) as two, hands.limiter(500) as three:
            heard = await asyncio.gather(*(each.hit("a") for _ in range(250) for each in (one, two, three)))
        assert len({allowance.remaining for allowance in heard}) == 500
        return sum(allowance.allowed for allowance in heard)

    assert run(act()) == 500


def test_all_that_is_asked_at_once_is_one_command_over_one_connection(hands: Hands) -> None:
    async def act() -> None:
        async with hands.limiter(1_000) as limiter:
            await limiter.hit("a")
            before, _ = hands.client.info("commandstats")["cmdstat_evalsha"]["calls"], hands.client.ping()
            await asyncio.gather(*(limiter.hit(f"agent {number}") for number in range(256)))
            assert hands.client.info("commandstats")["cmdstat_evalsha"]["calls"] - before <= 2
            # Ours and the one that asks.
            assert len(hands.client.client_list()) == 2

    run(act())


def test_a_window_is_small_however_much_is_counted_and_goes_by_itself(hands: Hands) -> None:
    async def act() -> None:
        async with hands.limiter(60_000) as limiter:
            for _ in range(70):
                await asyncio.gather(*(limiter.hit("a") for _ in range(20)))
                hands.turn(1)

    run(act())
    window = hands.window("a")
    assert int(hands.client.hget(window, "used") or 0) == 1_220
    assert hands.client.hlen(window) == 64
    assert (hands.client.memory_usage(window) or 0) <= 700
    assert WINDOW < hands.client.ttl(window) <= WINDOW + 2


def test_the_time_is_that_of_the_redis(hands: Hands) -> None:
    async def act() -> None:
        limiter = RedisLimiter(5, hands.server.url, hands.installation)
        await limiter.hit("a")
        await limiter.line.close()

    run(act())
    second = int(hands.client.hget(hands.window("a"), "newest") or 0)
    assert abs(int(hands.client.time()[0]) - second) < 60
    assert second != NOON


def test_two_installations_on_one_redis_are_apart(hands: Hands) -> None:
    other = Hands(hands.server)

    async def act() -> None:
        async with hands.limiter(1) as here, other.limiter(1) as there:
            assert await asked(here, 2) == [True, False]
            assert await asked(there, 2) == [True, False]

    run(act())
    other.client.close()


def test_a_script_that_the_redis_forgot_is_sent_again_with_the_same_request(hands: Hands) -> None:
    async def act() -> None:
        async with hands.limiter(5) as limiter:
            await limiter.hit("a")
            hands.client.script_flush()
            heard = await asyncio.gather(*(limiter.hit("a") for _ in range(3)))
            assert [allowance.remaining for allowance in heard] == [3, 2, 1]
            assert (await limiter.hit("a")).remaining == 0
            assert limiter.line.up

    run(act())


def test_what_somebody_else_wrote_into_a_window_is_no_way_to_keep_the_redis_busy(hands: Hands) -> None:
    hands.client.hset(hands.window("a"), mapping={"used": 10**9, "oldest": 1, "newest": NOON - 1})

    async def act() -> None:
        async with hands.limiter(5) as limiter:
            assert await limiter.hit("a") == Allowance(5, 0, 61, False)
            assert (await limiter.hit("b")).allowed

    run(act())


def test_a_limiter_goes_from_one_event_loop_to_the_next(hands: Hands) -> None:
    limiter = RedisLimiter(3, hands.server.url, hands.installation)

    async def act() -> bool:
        return (await limiter.hit("a")).allowed

    assert [run(act()) for _ in range(4)] == [True, True, True, False]


def test_whoever_leaves_before_the_answer_takes_nothing_from_the_others(hands: Hands) -> None:
    async def act() -> None:
        async with hands.limiter(5) as limiter:
            leaving, staying = (asyncio.ensure_future(limiter.hit("a")) for _ in range(2))
            await asyncio.sleep(0)
            leaving.cancel()
            assert (await staying).remaining == 3

    run(act())


def test_a_password_and_a_database_of_the_address_are_used(hands: Hands) -> None:
    hands.client.config_set("requirepass", "h/unter 2")
    try:
        place = f"redis://:h%2Funter%202@127.0.0.1:{hands.server.port}/3"
        limiter = RedisLimiter(5, place, hands.installation)

        async def act() -> None:
            assert (await limiter.hit("a")).allowed
            await limiter.line.close()

        run(act())
        third = redis.Redis.from_url(place)
        assert third.exists(hands.window("a"))
        third.close()
    finally:
        hands.client.config_set("requirepass", "")
