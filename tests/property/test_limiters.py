"""The limiter in memory, the one in a Redis and a list of all that ever passed say the same of every request."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.limits.allowance import Allowance
from qwed.limits.memory import MemoryLimiter
from qwed.limits.redis import RedisLimiter
from tests.support.clock import HandClock
from tests.support.figures import Figure, campaign
from tests.support.redis_hands import NOON, Hands, patient
from tests.support.redis_server import RedisServer

PAUSES = st.one_of(
    st.just(0.0),
    st.floats(0, 1.5),
    st.sampled_from([0.5, 1.0, 29.75, 58.5, 59.0, 59.5, 59.99, 60.0, 60.01, 60.5, 61.0, 61.5, 62.0, 300.0]),
    st.floats(0, 130),
)
STEPS = st.lists(st.tuples(PAUSES, st.sampled_from("abc"), st.integers(1, 6)), max_size=40)
Steps = list[tuple[float, str, int]]


class Model:
    """Everything that passed, and when."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._passed: defaultdict[str, list[int]] = defaultdict(list)

    def hit(self, key: str, second: int) -> Allowance:
        counted = [moment for moment in self._passed[key] if moment >= second - 60]
        allowed = len(counted) < self.limit
        if allowed:
            self._passed[key].append(second)
            counted.append(second)
        oldest = min(counted, default=second)
        return Allowance(self.limit, max(0, self.limit - len(counted)), oldest + 61 - second, allowed)


class Three:
    """The three of them, at one time."""

    def __init__(self, hands: Hands, runner: asyncio.Runner) -> None:
        self._hands = hands
        self._runner = runner
        self._shared = RedisLimiter(1, hands.server.url, hands.installation, second=hands.second)
        self._rounds = itertools.count()
        self.compared = 0

    def compare(self, steps: Steps, limit: int, fraction: float) -> None:
        """What each says of the same requests; a round has keys of its own."""
        hands, prefix = HandClock(), f"round {next(self._rounds)}"
        hands.monotonic = NOON + fraction
        memory, model = MemoryLimiter(limit, hands.clock().monotonic), Model(limit)
        self._shared.limit = limit
        for pause, name, times in steps:
            hands.turn(pause)
            self._hands.set(hands.monotonic)
            key = f"{prefix} {name}"
            expected = [model.hit(key, int(hands.monotonic)) for _ in range(times)]
            assert [memory.hit(key) for _ in range(times)] == expected
            assert self._runner.run(self._ask(key, times)) == expected
            self.compared += times

    async def _ask(self, key: str, times: int) -> list[Allowance]:
        return await asyncio.gather(*(self._shared.hit(key) for _ in range(times)))

    async def close(self) -> None:
        await self._shared.line.close()


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    with patient(), RedisServer(tmp_path_factory.mktemp("redis")) as server, asyncio.Runner() as runner:
        hands = Hands(server)
        made = Three(hands, runner)
        yield made
        runner.run(made.close())
        hands.client.close()


@given(steps=STEPS, limit=st.integers(1, 7), fraction=st.floats(0, 0.999))
@settings(max_examples=40)
def test_memory_and_redis_and_a_list_of_all_that_passed_agree(
    three: Three, steps: Steps, limit: int, fraction: float
) -> None:
    three.compare(steps, limit, fraction)


@pytest.mark.drill
@campaign("P6", "two limiters beside a model")
def test_they_agree_at_length(three: Three, figure: Figure) -> None:
    before = three.compared

    @given(steps=STEPS, limit=st.integers(1, 7), fraction=st.floats(0, 0.999))
    @settings(max_examples=3_000)
    def agree(steps: Steps, limit: int, fraction: float) -> None:
        three.compare(steps, limit, fraction)

    agree()
    figure("requests compared", three.compared - before)
