"""Token buckets: a token is taken once, a refusal writes nothing, and a restart keeps them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from qwed.domain.access_lists import ListEntry, ListName
from qwed.domain.change_parts import ListChanged
from qwed.store import token_buckets
from qwed.store.postgres import token_buckets as postgres_token_buckets
from tests.support.store_caches import cached_buckets
from tests.support.store_parts import StoreParts
from tests.support.stores import ORGANISATION, StoreFixture

PAIR = "keyed name of a pair"


in_memory = pytest.mark.parametrize("store_fixture", ["memory"], indirect=True)
"""Store in memory, for calculations that are the same in every store."""


def _take(
    store_fixture: StoreFixture, pair: str = PAIR, per_minute: int = 60, organisation_id: str = ORGANISATION
) -> float:
    wait: float = store_fixture.store.take_token(organisation_id, pair, per_minute, store_fixture.manual_clock.now)
    return wait


def _spend(store_fixture: StoreFixture, times: int, **more: Any) -> list[float]:
    return [_take(store_fixture, **more) for _ in range(times)]


def _rows(store_fixture: StoreFixture) -> list[Any]:
    rows: list[Any] = store_fixture.rows("SELECT pair, tokens FROM token_buckets ORDER BY pair")
    return rows


def _write_something(store_fixture: StoreFixture, name: str = "eve") -> None:
    assert isinstance(
        store_fixture.change(ListChanged(ORGANISATION, ListEntry(ListName.BLOCKS, name), present=True)), int
    )


@in_memory
def test_a_bucket_holds_a_minute_of_messages_and_fills_by_itself(store_fixture: StoreFixture) -> None:
    assert _spend(store_fixture, 60) == [0.0] * 60
    assert _take(store_fixture) == 1.0
    store_fixture.manual_clock.advance(0.5)
    assert _take(store_fixture) == pytest.approx(0.5)
    store_fixture.manual_clock.advance(0.5)
    assert [_take(store_fixture), _take(store_fixture)] == [0.0, 1.0]
    store_fixture.manual_clock.advance(3600)
    assert _spend(store_fixture, 61) == [0.0] * 60 + [1.0]


@in_memory
@pytest.mark.parametrize("per_minute", [1, 7, 13, 59])
def test_whoever_waits_as_long_as_is_said_may_send(store_fixture: StoreFixture, per_minute: int) -> None:
    _spend(store_fixture, per_minute, per_minute=per_minute)
    for _ in range(100):
        wait = _take(store_fixture, per_minute=per_minute)
        assert wait > 0
        store_fixture.manual_clock.advance(wait)
        assert _take(store_fixture, per_minute=per_minute) == 0.0


@in_memory
def test_each_pair_of_each_organisation_has_its_own(store_fixture: StoreFixture) -> None:
    _spend(store_fixture, 2, per_minute=2)
    assert _take(store_fixture, per_minute=2) > 0
    assert _take(store_fixture, pair="another", per_minute=2) == 0.0
    assert _take(store_fixture, per_minute=2, organisation_id="org_2") == 0.0


def test_of_thirty_two_that_take_at_once_as_many_get_one_as_there_are(store_fixture: StoreFixture) -> None:
    together = threading.Barrier(32)

    def take(_caller: int) -> list[float]:
        together.wait()
        return _spend(store_fixture, 10, per_minute=100)

    with ThreadPoolExecutor(32) as pool:
        waits = [wait for taken in pool.map(take, range(32)) for wait in taken]
    assert (waits.count(0.0), len(waits)) == (100, 320)


def test_what_was_taken_is_written_with_whatever_is_written_next_and_known_after_a_restart(disk: StoreFixture) -> None:
    _spend(disk, 60)
    # A shared bucket is written at once.
    assert _rows(disk) == ([] if disk.kind == "file" else [(PAIR, 0.0)])
    _write_something(disk)
    assert _rows(disk) == [(PAIR, 0.0)]
    disk.reopened()
    assert _take(disk) == 1.0
    disk.manual_clock.advance(30)
    assert _spend(disk, 31) == [0.0] * 30 + [1.0]


def test_a_flood_of_refusals_writes_nothing(file: StoreFixture) -> None:
    _spend(file, 60)
    _write_something(file)
    assert set(_spend(file, 1000)) == {1.0}
    statements: list[str] = []
    file.writer_connection.set_trace_callback(statements.append)
    _write_something(file, "after the flood")
    assert [text for text in statements if "INTO message_lists" in text]
    assert not [text for text in statements if "token_buckets" in text]


def test_a_bucket_that_is_full_again_is_as_good_as_none_and_leaves_the_table(disk: StoreFixture) -> None:
    for number in range(20):
        _take(disk, pair=f"pair {number:02}")
    _write_something(disk)
    assert len(_rows(disk)) == 20
    disk.manual_clock.advance(60)
    for name in ("a", "b"):
        _take(disk, pair="later")
        _write_something(disk, name)
    assert [pair for pair, _tokens in _rows(disk)] == ["later"]


def test_no_more_buckets_are_kept_in_mind_than_there_may_be(
    disk: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_buckets, "MAX_CACHED_BUCKETS", 5)
    monkeypatch.setattr(postgres_token_buckets, "MAX_CACHED_BUCKETS", 5)
    for number in range(12):
        _spend(disk, 3, pair=f"pair {number}", per_minute=3)
        _write_something(disk, f"agent {number}")
    reads: list[str] = []
    if disk.kind == "file":
        StoreParts(disk.store).reader.set_trace_callback(reads.append)
    else:
        assert cached_buckets(disk.store) <= 6
    assert {_take(disk, pair=f"pair {number}", per_minute=3) for number in range(12)} == {20.0}
    # What is not kept is read again.
    assert disk.kind != "file" or len([text for text in reads if "FROM token_buckets" in text]) >= 12 - 6


def test_what_a_failed_write_carried_is_written_with_the_next(file: StoreFixture) -> None:
    _spend(file, 60)
    with file.broken(), pytest.raises(Exception, match="could not write"):
        _write_something(file)
    assert _take(file) == 1.0
    _write_something(file)
    assert _rows(file) == [(PAIR, 0.0)]


@in_memory
def test_a_clock_that_is_put_back_neither_gives_anything_away_nor_stops_the_pair(store_fixture: StoreFixture) -> None:
    _spend(store_fixture, 60)
    store_fixture.manual_clock.advance(-86_400)
    assert _take(store_fixture) == 1.0
    store_fixture.manual_clock.advance(1)
    assert [_take(store_fixture), _take(store_fixture)] == [0.0, 1.0]


def test_two_clocks_that_differ_a_little_count_one_stream_of_messages(store_fixture: StoreFixture) -> None:
    """On two machines nothing refills twice."""
    passed, skew = 0, 5
    for _ in range(250):
        passed += _take(store_fixture) == 0.0
        store_fixture.manual_clock.advance(skew)
        passed += _take(store_fixture) == 0.0
        store_fixture.manual_clock.advance(0.04 - skew)
    assert 60 <= passed <= 60 + 10 + skew + 1


def test_a_lower_limit_holds_from_the_start_on(disk: StoreFixture, tmp_path: Path) -> None:
    _take(disk, per_minute=600)
    _write_something(disk)
    disk.reopened()
    assert _spend(disk, 4, per_minute=3) == [0.0, 0.0, 0.0, 20.0]
