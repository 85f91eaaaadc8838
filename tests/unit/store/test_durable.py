"""Whoever is told that something holds already is told so when it is on disk, and not before."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.store.parts import AgentChanged
from qwed.store.protocol import StoreError
from qwed.words import Trust
from tests.support.stores import Shop, agent_of, opened


def _raise(shop: Shop) -> Any:
    agent: Any = shop.store.find_agent("agent_1")
    return shop.store.change(shop.change_of(AgentChanged(agent, replace(agent, trust=Trust.TRUSTED))))


def test_where_nothing_waits_everything_is_durable(shop: Shop) -> None:
    assert shop.store.durable().block(30) is None


def test_it_completes_after_what_came_before_it(disk: Shop) -> None:
    with disk.stopped():
        ticket, durable = _raise(disk), disk.store.durable()
        with pytest.raises(TimeoutError):
            durable.block(0)
        assert (ticket.done, durable.done) == (False, False)
    durable.block(30)
    assert ticket.result().log_index == 0


def test_it_fails_when_what_came_before_it_failed(file: Shop) -> None:
    """Where nothing is in mind before it is written, nothing has to be asked for."""
    with file.broken():
        with file.store._lock:  # what fails waits for this lock, so the question queues up behind it
            ticket, durable = _raise(file), file.store.durable()
        for one in (ticket, durable):
            with pytest.raises(StoreError, match=r"could not write|an earlier write failed"):
                one.block(30)
    assert file.store.find_agent("agent_1").trust is Trust.SUPERVISED


def test_it_fails_with_everything_that_is_asked_behind_the_failure(file: Shop) -> None:
    with file.broken():
        with file.store._lock:
            ticket = _raise(file)
            asked = [file.store.durable() for _ in range(5)]
        for one in (ticket, *asked):
            with pytest.raises(StoreError):
                one.block(30)
    file.store.durable().block(30)


def test_it_leaves_no_row_and_no_place_in_the_log(disk: Shop) -> None:
    before = disk.next_index("org_1")
    disk.store.durable().block(30)
    assert disk.next_index("org_1") == before
    assert disk.store._all("SELECT * FROM activities", ()) == []


def test_of_a_closed_store_nothing_is_durable(tmp_path: Path) -> None:
    shop = next(opened("file", tmp_path, agent_of()))
    shop.store.close()
    with pytest.raises(StoreError, match="closed"):
        shop.store.durable()
