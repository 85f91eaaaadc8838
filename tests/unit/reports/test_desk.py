"""How many reports are made at a time."""

import threading

import pytest

from qwed.kernel.answer import Problem
from qwed.kernel.report.desk import MOST, MOST_EACH, Place, ReportDesk


def _take(desk: ReportDesk, organisation_id: str = "org_1") -> Place:
    place = desk.take(organisation_id)
    assert isinstance(place, Place)
    return place


def test_an_organisation_has_so_many_at_a_time_and_no_more() -> None:
    desk = ReportDesk()
    first, *_ = [_take(desk) for _ in range(MOST_EACH)]
    refused = desk.take("org_1")
    assert isinstance(refused, Problem)
    assert (refused.code, refused.retry_after is not None, refused.final) == ("QWED-SYS-001", True, False)
    _take(desk, "org_2")
    first.leave()
    _take(desk)


def test_leaving_twice_frees_one_place() -> None:
    desk = ReportDesk()
    places = [_take(desk) for _ in range(MOST_EACH)]
    places[0].leave()
    places[0].leave()
    _take(desk)
    assert isinstance(desk.take("org_1"), Problem)


def test_the_server_has_so_many_at_a_time_whoever_asks() -> None:
    desk = ReportDesk()
    for number in range(MOST):
        _take(desk, f"org_{number}")
    refused = desk.take("org_new")
    assert isinstance(refused, Problem)
    assert refused.code == "QWED-SYS-003"


def test_nothing_is_remembered_of_who_is_gone() -> None:
    desk = ReportDesk()
    for number in range(1_000):
        _take(desk, f"org_{number}").leave()
    assert len(desk._made) == 0


def test_a_refusal_leaves_nothing_behind() -> None:
    desk = ReportDesk()
    places = [_take(desk) for _ in range(MOST_EACH)]
    assert isinstance(desk.take("org_1"), Problem)
    for place in places:
        place.leave()
    assert len(desk._made) == 0


def test_many_threads_never_hold_more_than_there_are_places() -> None:
    desk, held, most = ReportDesk(), [0], [0]
    lock = threading.Lock()

    def work() -> None:
        for _ in range(500):
            place = desk.take("org_1")
            if isinstance(place, Problem):
                continue
            with lock:
                held[0] += 1
                most[0] = max(most[0], held[0])
            with lock:
                held[0] -= 1
            place.leave()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most[0] <= MOST_EACH
    assert len(desk._made) == 0


def test_a_closed_desk_begins_nothing() -> None:
    desk = ReportDesk()
    threads = desk.threads
    desk.close()
    with pytest.raises(RuntimeError):
        threads.submit(print)
