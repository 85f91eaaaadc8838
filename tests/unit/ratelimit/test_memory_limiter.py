"""Sliding window in memory: which requests are allowed, and when."""

import sys
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.ratelimit.limit_status import RateLimitStatus
from qwed.ratelimit.memory_limiter import WINDOW_SECONDS, MemorySlidingWindow
from tests.support.manual_clock import ManualClock


def limiter_of(limit: int, manual_clock: ManualClock, **more: int) -> MemorySlidingWindow:
    return MemorySlidingWindow(limit, manual_clock.clock().monotonic, **more)


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


def test_as_many_as_the_limit_pass_and_not_one_more(manual_clock: ManualClock) -> None:
    limiter = limiter_of(3, manual_clock)
    assert [limiter.hit("a").allowed for _ in range(5)] == [True, True, True, False, False]


def test_what_is_left_is_said_after_each(manual_clock: ManualClock) -> None:
    limiter = limiter_of(2, manual_clock)
    assert limiter.hit("a") == RateLimitStatus(2, 1, 61, True)
    assert limiter.hit("a") == RateLimitStatus(2, 0, 61, True)
    assert limiter.hit("a") == RateLimitStatus(2, 0, 61, False)


def test_two_keys_are_apart(manual_clock: ManualClock) -> None:
    limiter = limiter_of(1, manual_clock)
    assert limiter.hit("a").allowed
    assert limiter.hit("b").allowed
    assert not limiter.hit("a").allowed


def test_a_request_counts_for_a_minute_and_less_than_a_second_more(manual_clock: ManualClock) -> None:
    limiter = limiter_of(1, manual_clock)
    manual_clock.advance(0.25)
    limiter.hit("a")
    manual_clock.advance(WINDOW_SECONDS)
    assert not limiter.hit("a").allowed
    manual_clock.advance(0.75)
    assert limiter.hit("a").allowed


def test_a_request_after_the_reset_seconds_is_allowed(manual_clock: ManualClock) -> None:
    limiter = limiter_of(2, manual_clock)
    limiter.hit("a")
    manual_clock.advance(10)
    limiter.hit("a")
    refused = limiter.hit("a")
    manual_clock.advance(refused.reset_seconds)
    assert limiter.hit("a") == RateLimitStatus(2, 0, 10, True)


def test_a_refused_request_is_not_counted(manual_clock: ManualClock) -> None:
    limiter = limiter_of(1, manual_clock)
    limiter.hit("a")
    for _ in range(61):
        assert not limiter.hit("a").allowed
        manual_clock.advance(1)
    assert limiter.hit("a").allowed


def test_the_window_slides_and_does_not_start_anew(manual_clock: ManualClock) -> None:
    limiter = limiter_of(60, manual_clock)
    for _ in range(60):
        assert limiter.hit("a").allowed
        manual_clock.advance(1)
    # A second later, the requests of one second are free again, not those of the whole minute.
    manual_clock.advance(1)
    assert [limiter.hit("a").allowed for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize("seconds", [61, 62, 121, 122, 10_000, 10_000_000])
def test_after_any_silence_the_window_is_empty(manual_clock: ManualClock, seconds: float) -> None:
    limiter = limiter_of(5, manual_clock)
    for _ in range(5):
        limiter.hit("a")
    manual_clock.advance(seconds)
    assert limiter.hit("a") == RateLimitStatus(5, 4, 61, True)


def test_a_limit_of_nothing_lets_nothing_through(manual_clock: ManualClock) -> None:
    assert not limiter_of(0, manual_clock).hit("a").allowed


def test_the_largest_window_takes_no_more_room_than_the_smallest(manual_clock: ManualClock) -> None:
    limiter = limiter_of(1_000_000_000, manual_clock)

    def size_of(key: str) -> int:
        return sys.getsizeof(limiter._windows[key]._counts)

    for _ in range(70):
        limiter.hit("quiet")
        manual_clock.advance(1)
    small = size_of("quiet")
    for _ in range(10_000):
        limiter.hit("busy")
        manual_clock.advance(0.01)
    assert size_of("busy") == small


def test_there_are_never_more_windows_than_there_is_room_for(manual_clock: ManualClock) -> None:
    limiter = limiter_of(20, manual_clock, max_keys=10)
    for number in range(100):
        assert limiter.hit(f"key {number}").allowed
    assert len(limiter) == 10


def test_a_window_that_had_to_make_room_is_not_a_way_around_the_limit(manual_clock: ManualClock) -> None:
    limiter = limiter_of(3, manual_clock, max_keys=2)
    assert [limiter.hit("a").allowed for _ in range(4)] == [True, True, True, False]
    for other in ("b", "c"):
        limiter.hit(other)
    assert not limiter.hit("a").allowed
    manual_clock.advance(61)
    assert limiter.hit("a").allowed


def test_many_quiet_keys_do_not_shut_out_a_new_one(manual_clock: ManualClock) -> None:
    limiter = limiter_of(100, manual_clock, max_keys=10)
    for number in range(1_000):
        assert limiter.hit(f"agent {number % 50}").allowed
        manual_clock.advance(0.2)


def test_threads_together_do_not_pass_the_limit(manual_clock: ManualClock) -> None:
    limiter, passed = limiter_of(1_000, manual_clock), []

    def ask() -> None:
        passed.append(sum(limiter.hit("a").allowed for _ in range(500)))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(passed) == 1_000


PAUSES = st.one_of(
    st.just(0.0),
    st.floats(0, 1.5),
    st.sampled_from([0.5, 1.0, 29.75, 58.5, 59.0, 59.5, 59.99, 60.0, 60.01, 60.5, 61.0, 61.5, 300.0]),
    st.floats(0, 130),
)
STEPS = st.lists(st.tuples(PAUSES, st.sampled_from("abcd"), st.integers(1, 6)), max_size=80)


@given(STEPS, st.integers(1, 7), st.floats(0, 1e6), st.integers(1, 5))
@settings(max_examples=400, deadline=None)
def test_no_minute_ever_holds_more_than_the_limit(
    steps: list[tuple[float, str, int]], limit: int, start: float, max_keys: int
) -> None:
    manual_clock = ManualClock()
    manual_clock.monotonic = start
    limiter = limiter_of(limit, manual_clock, max_keys=max_keys)
    passed: dict[str, list[float]] = {}
    for pause, key, times in steps:
        manual_clock.advance(pause)
        for _ in range(times):
            if limiter.hit(key).allowed:
                passed.setdefault(key, []).append(manual_clock.monotonic)
    for moments in passed.values():
        assert all(later - earlier >= WINDOW_SECONDS for earlier, later in zip(moments, moments[limit:], strict=False))


@given(STEPS, st.integers(1, 7), st.floats(0, 1e6))
@settings(max_examples=200, deadline=None)
def test_no_request_below_the_limit_of_61_seconds_is_refused(
    steps: list[tuple[float, str, int]], limit: int, start: float
) -> None:
    manual_clock = ManualClock()
    manual_clock.monotonic = start
    limiter = limiter_of(limit, manual_clock)
    passed: dict[str, list[float]] = {}
    for pause, key, times in steps:
        manual_clock.advance(pause)
        for _ in range(times):
            before = passed.setdefault(key, [])
            recent = sum(moment > manual_clock.monotonic - WINDOW_SECONDS - 1 for moment in before)
            got = limiter.hit(key)
            assert got.allowed or recent >= limit
            assert 0 <= got.remaining <= limit
            assert 1 <= got.reset_seconds <= WINDOW_SECONDS + 1
            if got.allowed:
                before.append(manual_clock.monotonic)


@given(STEPS, st.integers(1, 7))
@settings(max_examples=100, deadline=None)
def test_what_is_left_only_falls_while_time_stands_still(steps: list[tuple[float, str, int]], limit: int) -> None:
    manual_clock = ManualClock()
    limiter = limiter_of(limit, manual_clock)
    for pause, key, times in steps:
        manual_clock.advance(pause)
        left = [limiter.hit(key).remaining for _ in range(times)]
        assert all(later in (earlier - 1, 0) for earlier, later in pairwise(left))
