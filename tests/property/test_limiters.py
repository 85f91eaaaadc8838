"""The limiter in memory, the one in Redis and a list of all passed requests agree on every request."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.ratelimit.limit_status import RateLimitStatus
from qwed.ratelimit.memory_limiter import MemorySlidingWindow
from qwed.ratelimit.redis_limiter import RedisSlidingWindow
from tests.support.campaign_table import Figure, campaign
from tests.support.manual_clock import ManualClock
from tests.support.redis_manual_clock import NOON, RedisManualClock, long_reply_timeout
from tests.support.redis_server import RedisServer

PAUSES = st.one_of(
    st.just(0.0),
    st.floats(0, 1.5),
    st.sampled_from([0.5, 1.0, 29.75, 58.5, 59.0, 59.5, 59.99, 60.0, 60.01, 60.5, 61.0, 61.5, 62.0, 300.0]),
    st.floats(0, 130),
)
STEPS = st.lists(st.tuples(PAUSES, st.sampled_from("abc"), st.integers(1, 6)), max_size=40)
Steps = list[tuple[float, str, int]]


class LimiterModel:
    """List of the requests that passed, with their times."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._passed: defaultdict[str, list[int]] = defaultdict(list)

    def hit(self, key: str, second: int) -> RateLimitStatus:
        counted = [moment for moment in self._passed[key] if moment >= second - 60]
        allowed = len(counted) < self.limit
        if allowed:
            self._passed[key].append(second)
            counted.append(second)
        oldest = min(counted, default=second)
        return RateLimitStatus(self.limit, max(0, self.limit - len(counted)), oldest + 61 - second, allowed)


class LimiterComparison:
    """The three limiters on one clock."""

    def __init__(self, manual_clock: RedisManualClock, runner: asyncio.Runner) -> None:
        self._hands = manual_clock
        self._runner = runner
        self._shared = RedisSlidingWindow(
            1, manual_clock.server.url, manual_clock.installation, second=manual_clock.second
        )
        self._rounds = itertools.count()
        self.compared = 0

    def compare(self, steps: Steps, limit: int, fraction: float) -> None:
        """Require the same result from all three; each round has its own keys."""
        manual_clock, prefix = ManualClock(), f"round {next(self._rounds)}"
        manual_clock.monotonic = NOON + fraction
        memory, model = MemorySlidingWindow(limit, manual_clock.clock().monotonic), LimiterModel(limit)
        self._shared.limit = limit
        for pause, name, times in steps:
            manual_clock.advance(pause)
            self._hands.set(manual_clock.monotonic)
            key = f"{prefix} {name}"
            expected = [model.hit(key, int(manual_clock.monotonic)) for _ in range(times)]
            assert [memory.hit(key) for _ in range(times)] == expected
            assert self._runner.run(self._ask(key, times)) == expected
            self.compared += times

    async def _ask(self, key: str, times: int) -> list[RateLimitStatus]:
        return await asyncio.gather(*(self._shared.hit(key) for _ in range(times)))

    async def close(self) -> None:
        await self._shared.connection.close()


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimiterComparison]:
    with long_reply_timeout(), RedisServer(tmp_path_factory.mktemp("redis")) as server, asyncio.Runner() as runner:
        manual_clock = RedisManualClock(server)
        made = LimiterComparison(manual_clock, runner)
        yield made
        runner.run(made.close())
        manual_clock.client.close()


@given(steps=STEPS, limit=st.integers(1, 7), fraction=st.floats(0, 0.999))
@settings(max_examples=40)
def test_memory_and_redis_and_a_list_of_all_that_passed_agree(
    three: LimiterComparison, steps: Steps, limit: int, fraction: float
) -> None:
    three.compare(steps, limit, fraction)


@pytest.mark.drill
@campaign("P6", "two limiters beside a model")
def test_they_agree_at_length(three: LimiterComparison, figure: Figure) -> None:
    before = three.compared

    @given(steps=STEPS, limit=st.integers(1, 7), fraction=st.floats(0, 0.999))
    @settings(max_examples=3_000)
    def agree(steps: Steps, limit: int, fraction: float) -> None:
        three.compare(steps, limit, fraction)

    agree()
    figure("requests compared", three.compared - before)
