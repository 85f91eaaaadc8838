"""How fast a pair may write: taken once whatever races, refused without a trace on disk, known after a restart."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from qwed.store import buckets
from qwed.store.boundary import Entry, ListName
from qwed.store.parts import ListChanged
from qwed.store.postgres import pairs
from tests.support.stores import ORGANISATION, Shop

PAIR = "keyed name of a pair"


in_memory = pytest.mark.parametrize("shop", ["memory"], indirect=True)
"""What is computed alike, whatever it is kept in."""


def _take(shop: Shop, pair: str = PAIR, per_minute: int = 60, organisation_id: str = ORGANISATION) -> float:
    wait: float = shop.store.take_token(organisation_id, pair, per_minute, shop.hands.now)
    return wait


def _spend(shop: Shop, times: int, **more: Any) -> list[float]:
    return [_take(shop, **more) for _ in range(times)]


def _rows(shop: Shop) -> list[Any]:
    found: list[Any] = shop.store._all("SELECT pair, tokens FROM buckets ORDER BY pair", ())
    return found


def _write_something(shop: Shop, name: str = "eve") -> None:
    assert isinstance(shop.change(ListChanged(ORGANISATION, Entry(ListName.BLOCKS, name), there=True)), int)


@in_memory
def test_a_bucket_holds_a_minute_of_messages_and_fills_by_itself(shop: Shop) -> None:
    assert _spend(shop, 60) == [0.0] * 60
    assert _take(shop) == 1.0
    shop.hands.turn(0.5)
    assert _take(shop) == pytest.approx(0.5)
    shop.hands.turn(0.5)
    assert [_take(shop), _take(shop)] == [0.0, 1.0]
    shop.hands.turn(3600)
    assert _spend(shop, 61) == [0.0] * 60 + [1.0]


@in_memory
@pytest.mark.parametrize("per_minute", [1, 7, 13, 59])
def test_whoever_waits_as_long_as_is_said_may_send(shop: Shop, per_minute: int) -> None:
    _spend(shop, per_minute, per_minute=per_minute)
    for _ in range(100):
        wait = _take(shop, per_minute=per_minute)
        assert wait > 0
        shop.hands.turn(wait)
        assert _take(shop, per_minute=per_minute) == 0.0


@in_memory
def test_each_pair_of_each_organisation_has_its_own(shop: Shop) -> None:
    _spend(shop, 2, per_minute=2)
    assert _take(shop, per_minute=2) > 0
    assert _take(shop, pair="another", per_minute=2) == 0.0
    assert _take(shop, per_minute=2, organisation_id="org_2") == 0.0


def test_of_thirty_two_that_take_at_once_as_many_get_one_as_there_are(shop: Shop) -> None:
    together = threading.Barrier(32)

    def take(_caller: int) -> list[float]:
        together.wait()
        return _spend(shop, 10, per_minute=100)

    with ThreadPoolExecutor(32) as pool:
        waits = [wait for taken in pool.map(take, range(32)) for wait in taken]
    assert (waits.count(0.0), len(waits)) == (100, 320)


def test_what_was_taken_is_written_with_whatever_is_written_next_and_known_after_a_restart(disk: Shop) -> None:
    _spend(disk, 60)
    # Where others take from it as well, it is written at once.
    assert _rows(disk) == ([] if disk.kind == "file" else [(PAIR, 0.0)])
    _write_something(disk)
    assert _rows(disk) == [(PAIR, 0.0)]
    disk.reopened()
    assert _take(disk) == 1.0
    disk.hands.turn(30)
    assert _spend(disk, 31) == [0.0] * 30 + [1.0]


def test_a_flood_of_refusals_writes_nothing(file: Shop) -> None:
    _spend(file, 60)
    _write_something(file)
    assert set(_spend(file, 1000)) == {1.0}
    assert file.store._buckets._changed == {}


def test_a_bucket_that_is_full_again_is_as_good_as_none_and_leaves_the_table(disk: Shop) -> None:
    for number in range(20):
        _take(disk, pair=f"pair {number:02}")
    _write_something(disk)
    assert len(_rows(disk)) == 20
    disk.hands.turn(60)
    for name in ("a", "b"):
        _take(disk, pair="later")
        _write_something(disk, name)
    assert [pair for pair, _tokens in _rows(disk)] == ["later"]


def test_no_more_buckets_are_kept_in_mind_than_there_may_be(disk: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "REMEMBERED", 5)
    monkeypatch.setattr(pairs, "REMEMBERED", 5)
    for number in range(12):
        _spend(disk, 3, pair=f"pair {number}", per_minute=3)
        _write_something(disk, f"agent {number}")
    known = disk.store._buckets._known if disk.kind == "file" else disk.store._pairs._seen
    assert len(known) <= 6
    assert {_take(disk, pair=f"pair {number}", per_minute=3) for number in range(12)} == {20.0}


def test_what_a_failed_write_carried_is_written_with_the_next(file: Shop) -> None:
    _spend(file, 60)
    with file.broken(), pytest.raises(Exception, match="could not write"):
        _write_something(file)
    assert _take(file) == 1.0
    _write_something(file)
    assert _rows(file) == [(PAIR, 0.0)]


@in_memory
def test_a_clock_that_is_put_back_neither_gives_anything_away_nor_stops_the_pair(shop: Shop) -> None:
    _spend(shop, 60)
    shop.hands.turn(-86_400)
    assert _take(shop) == 1.0
    shop.hands.turn(1)
    assert [_take(shop), _take(shop)] == [0.0, 1.0]


def test_two_clocks_that_differ_a_little_count_one_stream_of_messages(shop: Shop) -> None:
    """Two machines: whichever is asked, nothing fills up twice."""
    passed, skew = 0, 5
    for _ in range(250):
        passed += _take(shop) == 0.0
        shop.hands.turn(skew)
        passed += _take(shop) == 0.0
        shop.hands.turn(0.04 - skew)
    assert 60 <= passed <= 60 + 10 + skew + 1


def test_a_lower_limit_holds_from_the_start_on(disk: Shop, tmp_path: Path) -> None:
    _take(disk, per_minute=600)
    _write_something(disk)
    disk.reopened()
    assert _spend(disk, 4, per_minute=3) == [0.0, 0.0, 0.0, 20.0]
