"""Rolling usage in the store: windows, holds, races, restarts, retention; the same on SQLite and PostgreSQL."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from qwed.domain.change_parts import ApprovalRequest, Conflict
from qwed.domain.usage_window import CountedCall, SeriesKey, UsageKey, UsageValues, Use, uses_of
from qwed.domain.write_set import Committed, Reservation, UsageEffects
from qwed.model import Decision
from qwed.model.clock import DAY, HOUR
from qwed.store import series_cache
from qwed.store.protocol import StoreError
from tests.support.manual_clock import ManualClock
from tests.support.stores import (
    DURABLE_KINDS,
    KINDS,
    ORGANISATION,
    PostgresStoreFixture,
    StoreFixture,
    agent_of,
    location_of,
    open_fixture,
)

MAILS = UsageKey("agent", "count", "send_email", "", HOUR)
ALL_MAILS = MAILS._replace(scope="organisation")
SENT = UsageKey("agent", "sum", "send_email", "cost", DAY)
ALL_SENT = SENT._replace(scope="organisation")
KEYS = (MAILS, ALL_MAILS, SENT, ALL_SENT)
SETTINGS = {"max_steps": 100_000, "max_open_approvals": 1_000}


@pytest.fixture(params=KINDS)
def store_fixture(request: pytest.FixtureRequest) -> Iterator[StoreFixture]:
    agents = [agent_of(), agent_of("agent_2")]
    yield from open_fixture(request.param, location_of(request.param, request), *agents, **SETTINGS)


@pytest.fixture(params=DURABLE_KINDS)
def disk(request: pytest.FixtureRequest) -> Iterator[StoreFixture]:
    yield from open_fixture(request.param, location_of(request.param, request), agent_of(), **SETTINGS)


def _uses(agent_id: str = "agent_1", cost: str = "0.1", keys: tuple[UsageKey, ...] = KEYS) -> tuple[Use, ...]:
    call = CountedCall(agent_id, ORGANISATION, frozenset(["send_email"]), {"cost": Decimal(cost)})
    uses = uses_of(keys, call)
    assert isinstance(uses, tuple)
    return uses


def _values(store_fixture: StoreFixture, agent_id: str = "agent_1", *keys: UsageKey) -> UsageValues:
    return store_fixture.load(agent_id, None, usage=keys or KEYS).usage_values


def _send(
    store_fixture: StoreFixture,
    step: int,
    decision: Decision = Decision.APPROVED,
    agent_id: str = "agent_1",
    **more: Any,
) -> Any:
    """Commit a call that was decided on the values it finds."""
    agent = store_fixture.store.find_agent(agent_id)
    usage = UsageEffects(uses=_uses(agent_id, more.pop("cost", "0.1")), values=_values(store_fixture, agent_id))
    reservation = store_fixture.reserve(agent, step) if decision.commits else None
    return store_fixture.settle(agent, reservation, decision, usage=more.pop("usage", usage), **more)


def _hold(store_fixture: StoreFixture, step: int) -> ApprovalRequest:
    now = store_fixture.manual_clock.now
    approval = ApprovalRequest(f"apr_{step:06}", 0, 0, 0, now, now + 60, "key_9")
    assert isinstance(_send(store_fixture, step, Decision.PENDING, approval=approval), Committed)
    return approval


def test_nothing_was_used_before_the_first_call(store_fixture: StoreFixture) -> None:
    assert _values(store_fixture) == {MAILS: 0, ALL_MAILS: 0, SENT: 0, ALL_SENT: 0}
    assert store_fixture.load().usage_values == {}, "and nothing is read that no policy reads"


def test_every_committed_call_counts_from_the_next_load(store_fixture: StoreFixture) -> None:
    for step in (1, 2, 3):
        assert isinstance(_send(store_fixture, step), Committed)
    assert _values(store_fixture) == {MAILS: 3, ALL_MAILS: 3, SENT: Decimal("0.3"), ALL_SENT: Decimal("0.3")}
    assert isinstance(_values(store_fixture)[MAILS], int)


def test_agents_count_for_themselves_and_together_for_their_organisation(store_fixture: StoreFixture) -> None:
    _send(store_fixture, 1)
    _send(store_fixture, 1, agent_id="agent_2", cost="2")
    assert _values(store_fixture) == {MAILS: 1, ALL_MAILS: 2, SENT: Decimal("0.1"), ALL_SENT: Decimal("2.1")}
    assert _values(store_fixture, "agent_2", MAILS, SENT) == {MAILS: 1, SENT: 2}


def test_a_use_leaves_a_window_when_it_is_as_old_as_the_window_is_long(store_fixture: StoreFixture) -> None:
    clock = store_fixture.manual_clock
    _send(store_fixture, 1)
    clock.now += HOUR - 1
    _send(store_fixture, 2)
    assert _values(store_fixture)[MAILS] == 2
    clock.now += 1
    assert _values(store_fixture)[MAILS] == 1
    assert _values(store_fixture)[SENT] == Decimal("0.2"), "of a day"
    clock.now += HOUR - 1
    assert _values(store_fixture)[MAILS] == 0


def test_a_clock_that_jumps_back_frees_nothing(store_fixture: StoreFixture) -> None:
    _send(store_fixture, 1)
    store_fixture.manual_clock.now -= 10 * HOUR
    assert _values(store_fixture)[MAILS] == 1
    _send(store_fixture, 2)
    store_fixture.manual_clock.now += 10 * HOUR
    assert _values(store_fixture)[MAILS] == 2


@pytest.mark.parametrize("decision", [Decision.DENIED, Decision.BUDGET_EXCEEDED])
def test_a_refused_call_counts_nowhere(store_fixture: StoreFixture, decision: Decision) -> None:
    assert isinstance(_send(store_fixture, 1, decision), Committed)
    assert set(_values(store_fixture).values()) == {0}
    store_fixture.store.durable().wait_result(30)
    assert store_fixture.rows("SELECT * FROM usage_series") == []


def test_a_denial_is_recorded_although_the_usage_has_changed(store_fixture: StoreFixture) -> None:
    stale = UsageEffects(uses=_uses(), values=_values(store_fixture))
    _send(store_fixture, 1)
    assert isinstance(_send(store_fixture, 2, Decision.DENIED, usage=stale), Committed)


def test_a_call_that_waits_holds_its_use_however_old_it_is(store_fixture: StoreFixture) -> None:
    _hold(store_fixture, 1)
    store_fixture.manual_clock.now += 2 * HOUR
    assert _values(store_fixture)[MAILS] == 1


def test_an_approved_call_counts_from_its_approval(store_fixture: StoreFixture) -> None:
    approval = _hold(store_fixture, 1)
    store_fixture.manual_clock.now += 2 * HOUR
    assert isinstance(store_fixture.change(store_fixture.resolved(approval)), int)
    assert _values(store_fixture) == {MAILS: 1, ALL_MAILS: 1, SENT: Decimal("0.1"), ALL_SENT: Decimal("0.1")}
    store_fixture.manual_clock.now += HOUR
    assert _values(store_fixture)[MAILS] == 0


@pytest.mark.parametrize("state", ["rejected", "expired"])
def test_a_call_that_is_not_approved_frees_what_it_held(store_fixture: StoreFixture, state: str) -> None:
    approval = _hold(store_fixture, 1)
    _send(store_fixture, 2)
    assert _values(store_fixture)[ALL_MAILS] == 2
    store_fixture.change(store_fixture.resolved(approval, state))
    assert _values(store_fixture) == {MAILS: 1, ALL_MAILS: 1, SENT: Decimal("0.1"), ALL_SENT: Decimal("0.1")}
    store_fixture.store.durable().wait_result(30)
    assert store_fixture.rows("SELECT * FROM usage_holds") == []


def test_what_an_approval_holds_is_read_until_it_is_resolved(store_fixture: StoreFixture) -> None:
    approval = _hold(store_fixture, 1)
    store_fixture.store.durable().wait_result(30)
    assert store_fixture.store.held_uses(approval.approval_id) == tuple(sorted(_uses()))
    store_fixture.change(store_fixture.resolved(approval))
    store_fixture.store.durable().wait_result(30)
    assert store_fixture.store.held_uses(approval.approval_id) == ()


def test_a_second_resolution_changes_nothing(store_fixture: StoreFixture) -> None:
    approval = _hold(store_fixture, 1)
    store_fixture.change(store_fixture.resolved(approval))
    assert store_fixture.change(store_fixture.resolved(approval, "rejected")) is Conflict.RESOLVED
    assert _values(store_fixture)[MAILS] == 1


def test_values_can_be_read_without_a_decision(store_fixture: StoreFixture) -> None:
    _send(store_fixture, 1)
    store_fixture.store.durable().wait_result(30)
    values = store_fixture.store.usage_values("agent_1", ORGANISATION, KEYS, store_fixture.manual_clock.now)
    assert values == _values(store_fixture)


def test_a_decision_conflicts_where_the_values_it_read_have_changed(store_fixture: StoreFixture) -> None:
    read = UsageEffects(uses=_uses(), values=_values(store_fixture))
    _send(store_fixture, 1)
    assert _send(store_fixture, 2, usage=read) is Conflict.STALE
    assert _values(store_fixture)[MAILS] == 1


def test_a_decision_that_would_be_the_same_on_the_newest_values_commits(store_fixture: StoreFixture) -> None:
    seen: list[UsageValues] = []

    def is_below_two(values: UsageValues) -> bool:
        seen.append(values)
        return values[MAILS] < 2

    read = UsageEffects(uses=_uses(), values=_values(store_fixture), is_same_on=is_below_two)
    outcomes = [_send(store_fixture, step, usage=read) for step in (1, 2, 3)]
    assert [isinstance(outcome, Committed) for outcome in outcomes] == [True, True, False]
    assert [values[MAILS] for values in seen] == [1, 2], "not asked while the values are those it read"


def test_the_value_of_the_organisation_is_checked_although_another_agent_changed_it(
    store_fixture: StoreFixture,
) -> None:
    read = UsageEffects(uses=_uses(), values=_values(store_fixture, "agent_1", ALL_MAILS))
    _send(store_fixture, 1, agent_id="agent_2")
    assert _send(store_fixture, 1, usage=read) is Conflict.STALE


def test_decisions_of_one_batch_are_checked_one_after_the_other(disk: StoreFixture) -> None:
    agent = disk.store.find_agent("agent_1")
    read = UsageEffects(uses=_uses(), values=_values(disk), is_same_on=lambda values: values[MAILS] < 3)
    reservations = [disk.reserve(agent, step) for step in range(1, 7)]
    assert all(isinstance(reservation, Reservation) for reservation in reservations)
    with disk.stopped():
        # The writer is busy with this one, so that the others are one batch.
        disk.store.commit(disk.write_set(agent, None, Decision.DENIED))
        waiting = []
        for number, reservation in enumerate(reservations):
            # One decision has an earlier time than the one before it.
            disk.manual_clock.now += -2 if number == 2 else 1
            waiting.append(disk.store.commit(disk.write_set(agent, reservation, usage=read)))
    outcomes = [outcome.wait_result(30) for outcome in waiting]
    assert [isinstance(outcome, Committed) for outcome in outcomes] == [True, True, True, False, False, False]
    assert _values(disk) == {MAILS: 3, ALL_MAILS: 3, SENT: Decimal("0.3"), ALL_SENT: Decimal("0.3")}


def test_a_restart_changes_no_value(disk: StoreFixture) -> None:
    _send(disk, 1)
    _hold(disk, 2)
    values = _values(disk)
    assert values[ALL_MAILS] == 2
    assert _values(disk.reopened()) == values


def test_a_failed_write_uses_nothing(disk: StoreFixture) -> None:
    _send(disk, 1)
    agent = disk.store.find_agent("agent_1")
    usage = UsageEffects(uses=_uses(), values=_values(disk))
    disk.manual_clock.now += 1
    write_set = disk.write_set(agent, disk.reserve(agent, 2), usage=usage)
    with disk.failing_inserts("usage_entries"), pytest.raises(StoreError):
        disk.store.commit(write_set).wait_result(30)
    assert _values(disk.reopened())[MAILS] == 1


def test_uses_in_no_window_are_deleted_and_the_others_stay(disk: StoreFixture) -> None:
    _send(disk, 1)
    disk.manual_clock.now += 32 * DAY
    _send(disk, 2)
    disk.store.drop_expired(disk.manual_clock.now, 100).wait_result(30)
    assert disk.rows("SELECT DISTINCT total_before FROM usage_entries ORDER BY 1") == [("0.1",), ("1",)]
    assert disk.store.drop_expired(disk.manual_clock.now, 100) is None
    month = MAILS._replace(seconds=31 * DAY)
    assert _values(disk, "agent_1", month)[month] == 1
    assert _values(disk.reopened(), "agent_1", month)[month] == 1


def test_more_uses_than_memory_keeps_are_counted(file: StoreFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_cache, "MAX_CACHED_USES", 4)
    monkeypatch.setattr(series_cache, "MAX_CACHED_SERIES", 2)
    file.settings["max_steps"] = 1_000
    file.reopened()
    for step in range(1, 30):
        _send(file, step)
        file.manual_clock.now += 1
        for seconds in (3, 10, HOUR):
            key = MAILS._replace(seconds=seconds)
            assert _values(file, "agent_1", key)[key] == min(step, seconds - 1)
    assert _values(file.reopened())[MAILS] == 29


def test_a_name_that_the_database_cannot_store_was_never_used(store_fixture: StoreFixture) -> None:
    strange = MAILS._replace(tool="send\x00email")
    assert _values(store_fixture, "agent_1", strange) == {strange: 0}
    usage = UsageEffects(uses=_uses(), values={strange: 0})
    assert isinstance(_send(store_fixture, 1, usage=usage), Committed)


@pytest.fixture
def two(empty: str) -> Iterator[tuple[PostgresStoreFixture, PostgresStoreFixture]]:
    """Two processes on one database."""
    one = PostgresStoreFixture(empty, ManualClock(), **SETTINGS)
    for agent in (agent_of(), agent_of("agent_2")):
        one.register(agent)
    other = one.open_second()
    yield one, other
    one.store.close()
    other.store.close()


def test_what_one_process_commits_the_other_counts(two: tuple[PostgresStoreFixture, PostgresStoreFixture]) -> None:
    one, other = two
    read = UsageEffects(uses=_uses("agent_2"), values=_values(other, "agent_2", ALL_MAILS))
    assert isinstance(_send(one, 1), Committed)
    assert _send(other, 1, agent_id="agent_2", usage=read) is Conflict.STALE
    assert _values(other) == _values(one)
    assert _values(one)[ALL_MAILS] == 1


def test_of_two_processes_only_one_resolves_what_an_approval_holds(
    two: tuple[PostgresStoreFixture, PostgresStoreFixture],
) -> None:
    one, other = two
    approval = _hold(one, 1)
    assert isinstance(other.change(other.resolved(approval, "rejected")), int)
    assert one.change(one.resolved(approval)) is Conflict.RESOLVED
    assert set(_values(one).values()) == {0}


def test_a_series_is_named_by_owner_tool_and_argument(store_fixture: StoreFixture) -> None:
    _send(store_fixture, 1)
    store_fixture.store.durable().wait_result(30)
    rows = store_fixture.rows("SELECT owner_id, tool, argument FROM usage_series ORDER BY owner_id, argument")
    assert [SeriesKey(*row) for row in rows] == sorted(use.series for use in _uses())
