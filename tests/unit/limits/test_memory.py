"""The sliding window: what passes, what does not, and for how long."""

import sys
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.limits.allowance import Allowance
from qwed.limits.memory import WINDOW, MemoryLimiter
from tests.support.clock import HandClock


def limiter_of(limit: int, hands: HandClock, **more: int) -> MemoryLimiter:
    return MemoryLimiter(limit, hands.clock().monotonic, **more)


@pytest.fixture
def hands() -> HandClock:
    return HandClock()


def test_as_many_as_the_limit_pass_and_not_one_more(hands: HandClock) -> None:
    limiter = limiter_of(3, hands)
    assert [limiter.hit("a").allowed for _ in range(5)] == [True, True, True, False, False]


def test_what_is_left_is_said_after_each(hands: HandClock) -> None:
    limiter = limiter_of(2, hands)
    assert limiter.hit("a") == Allowance(2, 1, 61, True)
    assert limiter.hit("a") == Allowance(2, 0, 61, True)
    assert limiter.hit("a") == Allowance(2, 0, 61, False)


def test_two_keys_are_apart(hands: HandClock) -> None:
    limiter = limiter_of(1, hands)
    assert limiter.hit("a").allowed
    assert limiter.hit("b").allowed
    assert not limiter.hit("a").allowed


def test_a_request_counts_for_a_minute_and_less_than_a_second_more(hands: HandClock) -> None:
    limiter = limiter_of(1, hands)
    hands.turn(0.25)
    limiter.hit("a")
    hands.turn(WINDOW)
    assert not limiter.hit("a").allowed
    hands.turn(0.75)
    assert limiter.hit("a").allowed


def test_whoever_comes_back_after_the_seconds_it_was_told_passes(hands: HandClock) -> None:
    limiter = limiter_of(2, hands)
    limiter.hit("a")
    hands.turn(10)
    limiter.hit("a")
    refused = limiter.hit("a")
    hands.turn(refused.reset_seconds)
    assert limiter.hit("a") == Allowance(2, 0, 10, True)


def test_a_refused_request_is_not_counted(hands: HandClock) -> None:
    limiter = limiter_of(1, hands)
    limiter.hit("a")
    for _ in range(61):
        assert not limiter.hit("a").allowed
        hands.turn(1)
    assert limiter.hit("a").allowed


def test_the_window_slides_and_does_not_start_anew(hands: HandClock) -> None:
    limiter = limiter_of(60, hands)
    for _ in range(60):
        assert limiter.hit("a").allowed
        hands.turn(1)
    # One second's worth is free a second later, not the whole minute's.
    hands.turn(1)
    assert [limiter.hit("a").allowed for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize("seconds", [61, 62, 121, 122, 10_000, 10_000_000])
def test_after_any_silence_the_window_is_empty(hands: HandClock, seconds: float) -> None:
    limiter = limiter_of(5, hands)
    for _ in range(5):
        limiter.hit("a")
    hands.turn(seconds)
    assert limiter.hit("a") == Allowance(5, 4, 61, True)


def test_a_limit_of_nothing_lets_nothing_through(hands: HandClock) -> None:
    assert not limiter_of(0, hands).hit("a").allowed


def test_the_largest_window_takes_no_more_room_than_the_smallest(hands: HandClock) -> None:
    limiter = limiter_of(1_000_000_000, hands)
    for _ in range(70):
        limiter.hit("quiet")
        hands.turn(1)
    small = sys.getsizeof(limiter._windows["quiet"]._counts)
    for _ in range(10_000):
        limiter.hit("busy")
        hands.turn(0.01)
    assert sys.getsizeof(limiter._windows["busy"]._counts) == small


def test_there_are_never_more_windows_than_there_is_room_for(hands: HandClock) -> None:
    limiter = limiter_of(20, hands, most_keys=10)
    for number in range(100):
        assert limiter.hit(f"key {number}").allowed
    assert len(limiter) == 10


def test_a_window_that_had_to_make_room_is_not_a_way_around_the_limit(hands: HandClock) -> None:
    limiter = limiter_of(3, hands, most_keys=2)
    assert [limiter.hit("a").allowed for _ in range(4)] == [True, True, True, False]
    for other in ("b", "c"):
        limiter.hit(other)
    assert not limiter.hit("a").allowed
    hands.turn(61)
    assert limiter.hit("a").allowed


def test_many_quiet_keys_do_not_shut_out_a_new_one(hands: HandClock) -> None:
    limiter = limiter_of(100, hands, most_keys=10)
    for number in range(1_000):
        assert limiter.hit(f"agent {number % 50}").allowed
        hands.turn(0.2)


def test_threads_together_do_not_pass_the_limit(hands: HandClock) -> None:
    limiter, passed = limiter_of(1_000, hands), []

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
    steps: list[tuple[float, str, int]], limit: int, start: float, most_keys: int
) -> None:
    hands = HandClock()
    hands.monotonic = start
    limiter = limiter_of(limit, hands, most_keys=most_keys)
    passed: dict[str, list[float]] = {}
    for pause, key, times in steps:
        hands.turn(pause)
        for _ in range(times):
            if limiter.hit(key).allowed:
                passed.setdefault(key, []).append(hands.monotonic)
    for moments in passed.values():
        assert all(later - earlier >= WINDOW for earlier, later in zip(moments, moments[limit:], strict=False))


@given(STEPS, st.integers(1, 7), st.floats(0, 1e6))
@settings(max_examples=200, deadline=None)
def test_nobody_is_refused_who_had_fewer_in_the_last_minute_and_a_second(
    steps: list[tuple[float, str, int]], limit: int, start: float
) -> None:
    hands = HandClock()
    hands.monotonic = start
    limiter = limiter_of(limit, hands)
    passed: dict[str, list[float]] = {}
    for pause, key, times in steps:
        hands.turn(pause)
        for _ in range(times):
            before = passed.setdefault(key, [])
            recent = sum(moment > hands.monotonic - WINDOW - 1 for moment in before)
            got = limiter.hit(key)
            assert got.allowed or recent >= limit
            assert 0 <= got.remaining <= limit
            assert 1 <= got.reset_seconds <= WINDOW + 1
            if got.allowed:
                before.append(hands.monotonic)


@given(STEPS, st.integers(1, 7))
@settings(max_examples=100, deadline=None)
def test_what_is_left_only_falls_while_time_stands_still(steps: list[tuple[float, str, int]], limit: int) -> None:
    hands = HandClock()
    limiter = limiter_of(limit, hands)
    for pause, key, times in steps:
        hands.turn(pause)
        left = [limiter.hit(key).remaining for _ in range(times)]
        assert all(later in (earlier - 1, 0) for earlier, later in pairwise(left))
