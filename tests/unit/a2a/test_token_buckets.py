"""Token buckets: their capacity, their refill, and their bounded memory."""

import threading

import pytest

from qwed_a2a.token_buckets import PairTokenBuckets

PAIR, OTHER = ("a", "b"), ("b", "a")


class ManualMonotonic:
    """Manual monotonic clock."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def hand() -> ManualMonotonic:
    return ManualMonotonic()


def count_taken(buckets: PairTokenBuckets, tries: int, pair: tuple[str, str] = PAIR) -> int:
    return sum(buckets.take(pair) for _ in range(tries))


@pytest.mark.parametrize("rate", [1, 2, 7, 59, 60, 61, 999, 9_973])
def test_a_full_bucket_holds_a_minute_of_tokens_and_no_more(hand: ManualMonotonic, rate: int) -> None:
    assert count_taken(PairTokenBuckets(rate, hand), rate + 10) == rate


@pytest.mark.parametrize("rate", [1, 7, 60, 600])
def test_tokens_come_back_one_by_one(hand: ManualMonotonic, rate: int) -> None:
    buckets = PairTokenBuckets(rate, hand)
    count_taken(buckets, rate)
    hand.seconds += 60 / rate - 0.001
    assert not buckets.take(PAIR)
    hand.seconds += 0.002
    assert count_taken(buckets, 5) == 1
    hand.seconds += 60
    assert count_taken(buckets, rate + 5) == rate


def test_a_refusal_takes_nothing(hand: ManualMonotonic) -> None:
    buckets = PairTokenBuckets(60, hand)
    count_taken(buckets, 1000)
    hand.seconds += 1
    assert count_taken(buckets, 5) == 1


def test_each_pair_has_a_bucket_and_the_way_back_is_another(hand: ManualMonotonic) -> None:
    buckets = PairTokenBuckets(3, hand)
    assert (count_taken(buckets, 5), count_taken(buckets, 5, OTHER), count_taken(buckets, 5, ("a", "c"))) == (3, 3, 3)


def test_where_one_name_ends_and_the_next_begins_matters(hand: ManualMonotonic) -> None:
    buckets = PairTokenBuckets(1, hand)
    assert all(buckets.take(pair) for pair in [("ab", "c"), ("a", "bc"), ("", "abc"), ("1:a", ""), ("\ud800", "a")])


def test_a_clock_that_goes_back_gives_nothing_back(hand: ManualMonotonic) -> None:
    buckets = PairTokenBuckets(3, hand)
    count_taken(buckets, 3)
    hand.seconds -= 500
    assert not buckets.take(PAIR)
    hand.seconds += 500 + 20
    assert count_taken(buckets, 3) == 1


def test_a_million_invented_pairs_fill_no_more_than_was_agreed_upon(hand: ManualMonotonic) -> None:
    buckets = PairTokenBuckets(60, hand, most_pairs=100)
    passed = 0
    for number in range(20_000):
        passed += buckets.take((f"agent {number}", "b"))
        hand.seconds += 0.0001
        assert len(buckets) <= 100
    assert passed == 200  # a hundred in each of the two seconds that it took


def test_where_no_more_pairs_are_remembered_the_known_ones_go_on_and_others_do_not(hand: ManualMonotonic) -> None:
    buckets = PairTokenBuckets(60, hand, most_pairs=2)
    assert buckets.take(PAIR)
    assert buckets.take(OTHER)
    assert not buckets.take(("c", "d"))
    assert count_taken(buckets, 100) == 59
    hand.seconds += 1.5
    assert buckets.take(("c", "d")), "the bucket of one pair is full again and forgotten"
    assert not buckets.take(("e", "f"))


def test_a_bucket_is_forgotten_only_when_it_is_full_again(hand: ManualMonotonic) -> None:
    buckets = PairTokenBuckets(60, hand, most_pairs=1)
    assert count_taken(buckets, 60) == 60
    for _ in range(59):
        hand.seconds += 1
        assert not buckets.take(OTHER)
    assert count_taken(buckets, 100) == 59, "nobody made it forget what was taken"
    hand.seconds += 60
    assert buckets.take(OTHER)
    assert len(buckets) == 1


def test_full_buckets_are_forgotten_though_there_is_room(hand: ManualMonotonic) -> None:
    buckets = PairTokenBuckets(60, hand)
    for number in range(50):
        buckets.take((str(number), "b"))
    hand.seconds += 2
    for number in range(10):
        buckets.take((f"new {number}", "b"))
    assert len(buckets) <= 10


def test_many_threads_take_exactly_as_many_as_there_are(hand: ManualMonotonic) -> None:
    buckets, counts = PairTokenBuckets(1000, hand), list[int]()
    begin = threading.Barrier(8)

    def work() -> None:
        begin.wait()
        counts.append(count_taken(buckets, 500))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 1000
