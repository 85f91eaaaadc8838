"""Notices are stored with their change, wait until they are due, and leave with their outcome."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.domain.agent import AgentStatus
from qwed.domain.change_parts import AgentChanged, OrganisationAdded, ToolChanged, Webhook, WebhookChanged
from qwed.domain.write_set import Notice
from qwed.model import Decision
from qwed.store import change_handlers
from qwed.store.protocol import Delivery, StoreError
from tests.support.manual_clock import ManualClock
from tests.support.stores import KINDS, ORGANISATION, StoreFixture, agent_of

HOOK = Webhook(ORGANISATION, "https://example.com/hook", ("pending", "failed"), "secret", 1.0)


@pytest.fixture(params=KINDS)
def store_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreFixture]:
    yield from _opened(request.param, tmp_path)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[StoreFixture]:
    yield from _opened("file", tmp_path)


def _opened(kind: str, tmp_path: Path) -> Iterator[StoreFixture]:
    opened = StoreFixture(kind, tmp_path / "data", ManualClock())
    opened.register(agent_of())
    opened.change(WebhookChanged(ORGANISATION, HOOK))
    yield opened
    opened.store.close()


def _tell(store_fixture: StoreFixture, *names: str) -> None:
    for name in names:
        store_fixture.change(
            ToolChanged(ORGANISATION, "t", b"1"), notices=(Notice(name, "pending", f'{{"id":"{name}"}}'),)
        )


def _due(store_fixture: StoreFixture, later: float = 0.0, limit: int = 100) -> list[str]:
    return [
        delivery.notice_id
        for delivery in store_fixture.store.due_deliveries(store_fixture.manual_clock.now + later, limit)
    ]


def _waiting(store_fixture: StoreFixture, organisation_id: str = ORGANISATION) -> int:
    record = store_fixture.store.webhook_record(organisation_id)
    assert record.waiting == len([name for name, of in _rows(store_fixture) if of == organisation_id]), (
        "the number is the rows"
    )
    waiting: int = record.waiting
    return waiting


def _rows(store_fixture: StoreFixture) -> list[Any]:
    rows: list[Any] = store_fixture.rows("SELECT notice_id, organisation_id FROM outbox ORDER BY 1")
    return rows


def test_a_notice_waits_with_where_it_goes_and_what_signs_it(store_fixture: StoreFixture) -> None:
    _tell(store_fixture, "n1")
    now = store_fixture.manual_clock.now
    expected = Delivery("n1", ORGANISATION, HOOK.url, "secret", "pending", '{"id":"n1"}', now, 0)
    assert store_fixture.store.due_deliveries(now, 10) == [expected]
    assert _waiting(store_fixture) == 1


def test_a_decision_brings_its_notices_with_it(store_fixture: StoreFixture) -> None:
    agent = store_fixture.store.find_agent("agent_1")
    store_fixture.settle(
        agent, None, Decision.DENIED, notices=(Notice("n1", "failed", "{}"), Notice("n2", "degraded", "{}"))
    )
    assert _due(store_fixture) == ["n1", "n2"]


def test_a_notice_of_a_change_that_failed_is_not_there(disk: StoreFixture) -> None:
    agent = disk.store.find_agent("agent_1")
    stale = AgentChanged(replace(agent, status=AgentStatus.SUSPENDED), agent)
    disk.change(stale, notices=(Notice("n1", "pending", "{}"),))
    connection = disk.writer_connection
    connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError):
        _tell(disk, "n2")
    connection.execute("PRAGMA query_only = OFF")
    assert (_due(disk), _waiting(disk)) == ([], 0)


def test_the_longest_due_come_first_and_no_more_than_asked_for(store_fixture: StoreFixture) -> None:
    for name in ("n1", "n2", "n3"):
        _tell(store_fixture, name)
        store_fixture.manual_clock.advance(1)
    assert _due(store_fixture) == ["n1", "n2", "n3"]
    assert _due(store_fixture, limit=2) == ["n1", "n2"]
    assert _due(store_fixture, later=-2) == ["n1", "n2"]
    assert _due(store_fixture, later=-2.5) == ["n1"]


def test_what_was_delivered_is_gone_and_counted(store_fixture: StoreFixture) -> None:
    _tell(store_fixture, "n1", "n2")
    store_fixture.store.postpone("n1", store_fixture.manual_clock.now, "refused").wait_result(30)
    store_fixture.store.delivered("n1", store_fixture.manual_clock.now + 5).wait_result(30)
    assert _due(store_fixture) == ["n2"]
    record = store_fixture.store.webhook_record(ORGANISATION)
    assert (record.delivered, record.given_up, record.delivered_at, record.last_error) == (
        1,
        0,
        store_fixture.manual_clock.now + 5,
        None,
    )


def test_what_is_postponed_waits_and_counts_its_attempts(store_fixture: StoreFixture) -> None:
    _tell(store_fixture, "n1")
    now = store_fixture.manual_clock.now
    store_fixture.store.postpone("n1", now + 5, "timed out").wait_result(30)
    assert (_due(store_fixture), _due(store_fixture, 4.999), _due(store_fixture, 5)) == ([], [], ["n1"])
    store_fixture.store.postpone("n1", now + 30, "refused").wait_result(30)
    assert [one.attempts for one in store_fixture.store.due_deliveries(now + 30, 10)] == [2]
    record = store_fixture.store.webhook_record(ORGANISATION)
    assert (record.delivered, record.last_error, record.waiting) == (0, "refused", 1)


def test_what_is_given_up_is_gone_and_counted_as_lost(store_fixture: StoreFixture) -> None:
    _tell(store_fixture, "n1", "n2")
    store_fixture.store.give_up("n1", "refused").wait_result(30)
    assert _due(store_fixture) == ["n2"]
    record = store_fixture.store.webhook_record(ORGANISATION)
    assert (record.delivered, record.given_up, record.last_error) == (0, 1, "refused")


def test_an_outcome_of_a_notice_that_is_gone_changes_nothing(store_fixture: StoreFixture) -> None:
    _tell(store_fixture, "n1")
    before = store_fixture.store.webhook_record(ORGANISATION)
    for name in ("n9", ""):
        store_fixture.store.delivered(name, store_fixture.manual_clock.now).wait_result(30)
        store_fixture.store.postpone(name, store_fixture.manual_clock.now, "late").wait_result(30)
        store_fixture.store.give_up(name, "late").wait_result(30)
    assert (_due(store_fixture), store_fixture.store.webhook_record(ORGANISATION)) == (["n1"], before)


def test_what_is_told_while_the_webhook_is_removed_waits_for_no_later_one(store_fixture: StoreFixture) -> None:
    store_fixture.change(WebhookChanged(ORGANISATION, None))
    _tell(store_fixture, "n1")
    assert (_due(store_fixture), _rows(store_fixture)) == ([], [])
    store_fixture.change(WebhookChanged(ORGANISATION, HOOK))
    assert (_due(store_fixture), _waiting(store_fixture)) == ([], 0)


def test_a_webhook_that_is_removed_takes_what_waits_along_and_a_new_one_starts_from_nothing(
    store_fixture: StoreFixture,
) -> None:
    _tell(store_fixture, "n1", "n2")
    store_fixture.store.give_up("n2", "lost").wait_result(30)
    store_fixture.change(WebhookChanged(ORGANISATION, None))
    assert (_due(store_fixture), _rows(store_fixture)) == ([], [])
    assert store_fixture.store.webhook_record(ORGANISATION) is None
    store_fixture.change(WebhookChanged(ORGANISATION, HOOK))
    assert (_due(store_fixture), store_fixture.store.webhook_record(ORGANISATION)) == ([], HOOK)


def test_the_number_of_what_waits_is_the_number_of_rows_whatever_becomes_of_them(store_fixture: StoreFixture) -> None:
    _tell(store_fixture, *(f"n{number}" for number in range(6)))
    agent = store_fixture.store.find_agent("agent_1")
    store_fixture.settle(
        agent, None, Decision.DENIED, notices=(Notice("d1", "failed", "{}"), Notice("d2", "degraded", "{}"))
    )
    assert _waiting(store_fixture) == 8
    for _ in range(2):
        store_fixture.store.delivered("n0", store_fixture.manual_clock.now).wait_result(30)
        store_fixture.store.give_up("n1", "lost").wait_result(30)
    store_fixture.store.postpone("n2", store_fixture.manual_clock.now + 9, "refused").wait_result(30)
    assert _waiting(store_fixture) == 6
    store_fixture.change(WebhookChanged(ORGANISATION, HOOK._replace(url="https://elsewhere.example/", waiting=99)))
    assert _waiting(store_fixture) == 6
    _tell(store_fixture, "n9")
    assert _waiting(store_fixture) == 7


def test_a_full_outbox_takes_one_more_for_each_that_leaves_within_one_change(
    store_fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_handlers, "MAX_UNDELIVERED", 3)
    many = tuple(Notice(f"n{number}", "pending", "{}") for number in range(5))
    store_fixture.change(ToolChanged(ORGANISATION, "t", b"1"), notices=many)
    assert (_due(store_fixture), _waiting(store_fixture)) == (["n0", "n1", "n2"], 3)


def test_what_waits_goes_to_the_place_that_was_set_last_signed_with_its_secret(store_fixture: StoreFixture) -> None:
    _tell(store_fixture, "n1")
    store_fixture.change(WebhookChanged(ORGANISATION, HOOK._replace(url="https://elsewhere.example/", secret="new")))
    deliveries = store_fixture.store.due_deliveries(store_fixture.manual_clock.now, 10)
    assert [(one.notice_id, one.url, one.secret) for one in deliveries] == [("n1", "https://elsewhere.example/", "new")]


def test_each_organisation_has_its_own_outbox(store_fixture: StoreFixture) -> None:
    theirs = HOOK._replace(organisation_id="org_2", url="https://theirs.example/")
    store_fixture.change(OrganisationAdded("org_2", "second", 1.0))
    store_fixture.change(WebhookChanged("org_2", theirs))
    _tell(store_fixture, "mine")
    change = store_fixture.change_of(
        notices=(Notice("theirs", "pending", "{}"),), organisation_id="org_2", agent_id="agent_2"
    )
    store_fixture.store.commit(change).wait_result(30)
    urls = {one.notice_id: one.url for one in store_fixture.store.due_deliveries(store_fixture.manual_clock.now, 10)}
    assert urls == {"mine": HOOK.url, "theirs": theirs.url}
    store_fixture.store.delivered("theirs", store_fixture.manual_clock.now).wait_result(30)
    counts = [store_fixture.store.webhook_record(name).delivered for name in (ORGANISATION, "org_2")]
    assert counts == [0, 1]
    assert [_waiting(store_fixture, name) for name in (ORGANISATION, "org_2")] == [1, 0]
    store_fixture.change(WebhookChanged("org_2", None))
    assert _due(store_fixture) == ["mine"]


def test_no_more_wait_than_there_is_room_for_and_other_organisations_have_their_own(
    store_fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_handlers, "MAX_UNDELIVERED", 3)
    _tell(store_fixture, *(f"n{number}" for number in range(6)))
    assert (_due(store_fixture), _waiting(store_fixture)) == (["n0", "n1", "n2"], 3)
    store_fixture.store.delivered("n1", store_fixture.manual_clock.now).wait_result(30)
    _tell(store_fixture, "n7", "n8")
    assert (_due(store_fixture), _waiting(store_fixture)) == (["n0", "n2", "n7"], 3)
    store_fixture.change(OrganisationAdded("org_2", "second", 1.0))
    store_fixture.change(WebhookChanged("org_2", HOOK._replace(organisation_id="org_2")))
    store_fixture.store.commit(
        store_fixture.change_of(notices=(Notice("x", "failed", "{}"),), organisation_id="org_2")
    ).wait_result(30)
    assert _waiting(store_fixture, "org_2") == 1


def test_the_outbox_lives_through_a_restart(disk: StoreFixture) -> None:
    _tell(disk, "n1", "n2", "n3")
    disk.store.delivered("n1", disk.manual_clock.now).wait_result(30)
    disk.store.postpone("n2", disk.manual_clock.now + 5, "refused").wait_result(30)
    disk.reopened()
    deliveries = disk.store.due_deliveries(disk.manual_clock.now + 5, 10)
    assert [(one.notice_id, one.attempts) for one in deliveries] == [("n3", 0), ("n2", 1)]
    assert disk.store.webhook_record(ORGANISATION).delivered == 1


def test_whoever_waits_for_notices_is_told_once_they_are_durable_and_of_nothing_else(disk: StoreFixture) -> None:
    seen: list[Any] = []
    called = threading.Event()

    def look() -> None:
        seen.append([row[0] for row in disk.writer_connection.execute("SELECT notice_id FROM outbox")])
        called.set()

    disk.store.on_notice = look
    disk.change(ToolChanged(ORGANISATION, "t", b"1"))
    disk.commit(disk.store.find_agent("agent_1"), 1)
    _tell(disk, "n1")
    assert called.wait(30)
    called.clear()
    agent = disk.store.find_agent("agent_1")
    disk.settle(agent, None, Decision.DENIED, notices=(Notice("n2", "failed", "{}"),))
    assert called.wait(30)
    assert seen == [["n1"], ["n1", "n2"]]
