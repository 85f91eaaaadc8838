"""`durable` completes when everything submitted before is on disk."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.domain.change_parts import AgentChanged
from qwed.model import Trust
from qwed.store.protocol import StoreError
from tests.support.stores import StoreFixture, agent_of, open_fixture


def _raise(store_fixture: StoreFixture) -> Any:
    agent: Any = store_fixture.store.find_agent("agent_1")
    return store_fixture.submit(AgentChanged(agent, replace(agent, trust=Trust.TRUSTED)))


def test_where_nothing_waits_everything_is_durable(store_fixture: StoreFixture) -> None:
    assert store_fixture.store.durable().wait_result(30) is None


def test_it_completes_after_what_came_before_it(disk: StoreFixture) -> None:
    with disk.stopped():
        ticket, durable = _raise(disk), disk.store.durable()
        with pytest.raises(TimeoutError):
            durable.wait_result(0)
        assert (ticket.done, durable.done) == (False, False)
    durable.wait_result(30)
    assert ticket.result().log_index == 0


def test_it_fails_when_what_came_before_it_failed(file: StoreFixture) -> None:
    """PostgreSQL caches nothing before it is written, so it is not affected."""
    with file.broken():
        with file.held():  # the failing write waits for this lock, so the next one queues behind it
            ticket, durable = _raise(file), file.store.durable()
        for one in (ticket, durable):
            with pytest.raises(StoreError, match=r"could not write|an earlier write failed"):
                one.wait_result(30)
    assert file.store.find_agent("agent_1").trust is Trust.SUPERVISED


def test_it_fails_with_everything_that_is_asked_behind_the_failure(file: StoreFixture) -> None:
    with file.broken():
        with file.held():
            ticket = _raise(file)
            futures = [file.store.durable() for _ in range(5)]
        for one in (ticket, *futures):
            with pytest.raises(StoreError):
                one.wait_result(30)
    file.store.durable().wait_result(30)


def test_it_leaves_no_row_and_no_place_in_the_log(disk: StoreFixture) -> None:
    before = disk.next_index("org_1")
    disk.store.durable().wait_result(30)
    assert disk.next_index("org_1") == before
    assert disk.rows("SELECT * FROM activities") == []


def test_of_a_closed_store_nothing_is_durable(tmp_path: Path) -> None:
    store_fixture = next(open_fixture("file", tmp_path, agent_of()))
    store_fixture.store.close()
    with pytest.raises(StoreError, match="closed"):
        store_fixture.store.durable()
