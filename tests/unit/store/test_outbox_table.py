"""The outbox: notices are kept with what they tell of, wait until they are due, and leave with their outcome."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwed.store import changes
from qwed.store.agent import AgentStatus
from qwed.store.parts import AgentChanged, OrganisationAdded, ToolChanged, Webhook, WebhookChanged
from qwed.store.protocol import Delivery, Notice, StoreError
from qwed.words import Decision
from tests.support.clock import HandClock
from tests.support.stores import KINDS, ORGANISATION, Shop, agent_of

HOOK = Webhook(ORGANISATION, "https://example.com/hook", ("pending", "failed"), "secret", 1.0)


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    yield from _opened(request.param, tmp_path)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Shop]:
    yield from _opened("file", tmp_path)


def _opened(kind: str, tmp_path: Path) -> Iterator[Shop]:
    opened = Shop(kind, tmp_path / "data", HandClock())
    opened.register(agent_of())
    opened.change(WebhookChanged(ORGANISATION, HOOK))
    yield opened
    opened.store.close()


def _tell(shop: Shop, *names: str) -> None:
    for name in names:
        shop.change(ToolChanged(ORGANISATION, "t", b"1"), notices=(Notice(name, "pending", f'{{"id":"{name}"}}'),))


def _due(shop: Shop, later: float = 0.0, limit: int = 100) -> list[str]:
    return [delivery.notice_id for delivery in shop.store.due_deliveries(shop.hands.now + later, limit)]


def _waiting(shop: Shop, organisation_id: str = ORGANISATION) -> int:
    record = shop.store.webhook_record(organisation_id)
    assert record.waiting == len([name for name, of in _rows(shop) if of == organisation_id]), "the number is the rows"
    waiting: int = record.waiting
    return waiting


def _rows(shop: Shop) -> list[Any]:
    rows: list[Any] = shop.store._all("SELECT notice_id, organisation_id FROM outbox ORDER BY 1", ())
    return rows


def test_a_notice_waits_with_where_it_goes_and_what_signs_it(shop: Shop) -> None:
    _tell(shop, "n1")
    now = shop.hands.now
    wanted = Delivery("n1", ORGANISATION, HOOK.url, "secret", "pending", '{"id":"n1"}', now, 0)
    assert shop.store.due_deliveries(now, 10) == [wanted]
    assert _waiting(shop) == 1


def test_a_decision_brings_its_notices_with_it(shop: Shop) -> None:
    agent = shop.store.find_agent("agent_1")
    shop.settle(agent, None, Decision.DENIED, notices=(Notice("n1", "failed", "{}"), Notice("n2", "degraded", "{}")))
    assert _due(shop) == ["n1", "n2"]


def test_a_notice_of_a_change_that_failed_is_not_there(disk: Shop) -> None:
    agent = disk.store.find_agent("agent_1")
    stale = AgentChanged(replace(agent, status=AgentStatus.SUSPENDED), agent)
    disk.change(stale, notices=(Notice("n1", "pending", "{}"),))
    connection = disk.store._writer._connection
    connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError):
        _tell(disk, "n2")
    connection.execute("PRAGMA query_only = OFF")
    assert (_due(disk), _waiting(disk)) == ([], 0)


def test_the_longest_due_come_first_and_no_more_than_asked_for(shop: Shop) -> None:
    for name in ("n1", "n2", "n3"):
        _tell(shop, name)
        shop.hands.turn(1)
    assert _due(shop) == ["n1", "n2", "n3"]
    assert _due(shop, limit=2) == ["n1", "n2"]
    assert _due(shop, later=-2) == ["n1", "n2"]
    assert _due(shop, later=-2.5) == ["n1"]


def test_what_was_delivered_is_gone_and_counted(shop: Shop) -> None:
    _tell(shop, "n1", "n2")
    shop.store.postpone("n1", shop.hands.now, "refused").block(30)
    shop.store.delivered("n1", shop.hands.now + 5).block(30)
    assert _due(shop) == ["n2"]
    record = shop.store.webhook_record(ORGANISATION)
    assert (record.delivered, record.given_up, record.delivered_at, record.last_error) == (
        1,
        0,
        shop.hands.now + 5,
        None,
    )


def test_what_is_postponed_waits_and_counts_its_attempts(shop: Shop) -> None:
    _tell(shop, "n1")
    now = shop.hands.now
    shop.store.postpone("n1", now + 5, "timed out").block(30)
    assert (_due(shop), _due(shop, 4.999), _due(shop, 5)) == ([], [], ["n1"])
    shop.store.postpone("n1", now + 30, "refused").block(30)
    assert [one.attempts for one in shop.store.due_deliveries(now + 30, 10)] == [2]
    record = shop.store.webhook_record(ORGANISATION)
    assert (record.delivered, record.last_error, record.waiting) == (0, "refused", 1)


def test_what_is_given_up_is_gone_and_counted_as_lost(shop: Shop) -> None:
    _tell(shop, "n1", "n2")
    shop.store.give_up("n1", "refused").block(30)
    assert _due(shop) == ["n2"]
    record = shop.store.webhook_record(ORGANISATION)
    assert (record.delivered, record.given_up, record.last_error) == (0, 1, "refused")


def test_an_outcome_of_a_notice_that_is_gone_changes_nothing(shop: Shop) -> None:
    _tell(shop, "n1")
    before = shop.store.webhook_record(ORGANISATION)
    for name in ("n9", ""):
        shop.store.delivered(name, shop.hands.now).block(30)
        shop.store.postpone(name, shop.hands.now, "late").block(30)
        shop.store.give_up(name, "late").block(30)
    assert (_due(shop), shop.store.webhook_record(ORGANISATION)) == (["n1"], before)


def test_what_is_told_while_the_webhook_is_removed_waits_for_no_later_one(shop: Shop) -> None:
    shop.change(WebhookChanged(ORGANISATION, None))
    _tell(shop, "n1")
    assert (_due(shop), _rows(shop)) == ([], [])
    shop.change(WebhookChanged(ORGANISATION, HOOK))
    assert (_due(shop), _waiting(shop)) == ([], 0)


def test_a_webhook_that_is_removed_takes_what_waits_along_and_a_new_one_starts_from_nothing(shop: Shop) -> None:
    _tell(shop, "n1", "n2")
    shop.store.give_up("n2", "lost").block(30)
    shop.change(WebhookChanged(ORGANISATION, None))
    assert (_due(shop), _rows(shop)) == ([], [])
    assert shop.store.webhook_record(ORGANISATION) is None
    shop.change(WebhookChanged(ORGANISATION, HOOK))
    assert (_due(shop), shop.store.webhook_record(ORGANISATION)) == ([], HOOK)


def test_the_number_of_what_waits_is_the_number_of_rows_whatever_becomes_of_them(shop: Shop) -> None:
    _tell(shop, *(f"n{number}" for number in range(6)))
    agent = shop.store.find_agent("agent_1")
    shop.settle(agent, None, Decision.DENIED, notices=(Notice("d1", "failed", "{}"), Notice("d2", "degraded", "{}")))
    assert _waiting(shop) == 8
    for _ in range(2):
        shop.store.delivered("n0", shop.hands.now).block(30)
        shop.store.give_up("n1", "lost").block(30)
    shop.store.postpone("n2", shop.hands.now + 9, "refused").block(30)
    assert _waiting(shop) == 6
    shop.change(WebhookChanged(ORGANISATION, HOOK._replace(url="https://elsewhere.example/", waiting=99)))
    assert _waiting(shop) == 6
    _tell(shop, "n9")
    assert _waiting(shop) == 7


def test_a_full_outbox_takes_one_more_for_each_that_leaves_within_one_change(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_UNDELIVERED", 3)
    many = tuple(Notice(f"n{number}", "pending", "{}") for number in range(5))
    shop.change(ToolChanged(ORGANISATION, "t", b"1"), notices=many)
    assert (_due(shop), _waiting(shop)) == (["n0", "n1", "n2"], 3)


def test_what_waits_goes_to_the_place_that_was_set_last_signed_with_its_secret(shop: Shop) -> None:
    _tell(shop, "n1")
    shop.change(WebhookChanged(ORGANISATION, HOOK._replace(url="https://elsewhere.example/", secret="new")))
    found = shop.store.due_deliveries(shop.hands.now, 10)
    assert [(one.notice_id, one.url, one.secret) for one in found] == [("n1", "https://elsewhere.example/", "new")]


def test_each_organisation_has_its_own_outbox(shop: Shop) -> None:
    theirs = HOOK._replace(organisation_id="org_2", url="https://theirs.example/")
    shop.change(OrganisationAdded("org_2", "second", 1.0))
    shop.change(WebhookChanged("org_2", theirs))
    _tell(shop, "mine")
    change = shop.change_of(notices=(Notice("theirs", "pending", "{}"),), organisation_id="org_2", agent_id="agent_2")
    shop.store.change(change).block(30)
    urls = {one.notice_id: one.url for one in shop.store.due_deliveries(shop.hands.now, 10)}
    assert urls == {"mine": HOOK.url, "theirs": theirs.url}
    shop.store.delivered("theirs", shop.hands.now).block(30)
    counts = [shop.store.webhook_record(name).delivered for name in (ORGANISATION, "org_2")]
    assert counts == [0, 1]
    assert [_waiting(shop, name) for name in (ORGANISATION, "org_2")] == [1, 0]
    shop.change(WebhookChanged("org_2", None))
    assert _due(shop) == ["mine"]


def test_no_more_wait_than_there_is_room_for_and_other_organisations_have_their_own(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_UNDELIVERED", 3)
    _tell(shop, *(f"n{number}" for number in range(6)))
    assert (_due(shop), _waiting(shop)) == (["n0", "n1", "n2"], 3)
    shop.store.delivered("n1", shop.hands.now).block(30)
    _tell(shop, "n7", "n8")
    assert (_due(shop), _waiting(shop)) == (["n0", "n2", "n7"], 3)
    shop.change(OrganisationAdded("org_2", "second", 1.0))
    shop.change(WebhookChanged("org_2", HOOK._replace(organisation_id="org_2")))
    shop.store.change(shop.change_of(notices=(Notice("x", "failed", "{}"),), organisation_id="org_2")).block(30)
    assert _waiting(shop, "org_2") == 1


def test_the_outbox_lives_through_a_restart(disk: Shop) -> None:
    _tell(disk, "n1", "n2", "n3")
    disk.store.delivered("n1", disk.hands.now).block(30)
    disk.store.postpone("n2", disk.hands.now + 5, "refused").block(30)
    disk.reopened()
    found = disk.store.due_deliveries(disk.hands.now + 5, 10)
    assert [(one.notice_id, one.attempts) for one in found] == [("n3", 0), ("n2", 1)]
    assert disk.store.webhook_record(ORGANISATION).delivered == 1


def test_whoever_waits_for_notices_is_told_once_they_are_durable_and_of_nothing_else(disk: Shop) -> None:
    seen: list[Any] = []
    told = threading.Event()

    def look() -> None:
        seen.append([row[0] for row in disk.store._writer._connection.execute("SELECT notice_id FROM outbox")])
        told.set()

    disk.store.on_notice = look
    disk.change(ToolChanged(ORGANISATION, "t", b"1"))
    disk.commit(disk.store.find_agent("agent_1"), 1)
    _tell(disk, "n1")
    assert told.wait(30)
    told.clear()
    agent = disk.store.find_agent("agent_1")
    disk.settle(agent, None, Decision.DENIED, notices=(Notice("n2", "failed", "{}"),))
    assert told.wait(30)
    assert seen == [["n1"], ["n1", "n2"]]
