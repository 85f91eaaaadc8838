"""One test suite for every store (DESIGN 6)."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import astuple

from qwed.domain.budget import NO_COST, LimitExceeded, RequestCost
from qwed.domain.change_parts import ApprovalRequest, Conflict, ToolChanged
from qwed.domain.conversation import MAX_REPEATS, ConversationStep
from qwed.domain.write_set import Committed, IdempotentAnswer, Reservation
from qwed.model import Decision, ErrorCode
from qwed.model.clock import DAY, HOUR
from qwed.store.protocol import ActivityQuery, ActivitySummary, StoreError
from tests.support.stores import (
    CENT,
    DURABLE_KINDS,
    KINDS,
    ORGANISATION,
    StoreFixture,
    agent_of,
    location_of,
    open_fixture,
    owner_key,
)


@pytest.fixture(params=KINDS)
def store_fixture(request: pytest.FixtureRequest) -> Iterator[StoreFixture]:
    yield from open_fixture(request.param, location_of(request.param, request))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[StoreFixture]:
    yield from open_fixture("file", tmp_path)


@pytest.fixture(params=DURABLE_KINDS)
def disk(request: pytest.FixtureRequest) -> Iterator[StoreFixture]:
    yield from open_fixture(request.param, location_of(request.param, request))


# Entities


def test_an_agent_comes_back_as_it_was_kept(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of(daily_cost=5, tokens_per_day=7))
    stored = store_fixture.store.find_agent("agent_1")
    assert stored == agent
    assert (stored.limits.daily_cost, stored.permissions.allowed_tools) == (5, ("a", "b"))
    assert store_fixture.store.find_agent("agent_2") is None


def test_a_key_comes_back_until_it_is_revoked(store_fixture: StoreFixture) -> None:
    assert store_fixture.store.find_key("qwed_live_a") == owner_key()
    assert store_fixture.store.find_key("qwed_live_b") is None


def test_the_organisation_and_its_owner_come_together_or_not_at_all(store_fixture: StoreFixture) -> None:
    taken = owner_key(key_id="key_2", organisation_id="org_2")
    if store_fixture.kind == "file":
        with pytest.raises(StoreError, match="could not write"):
            store_fixture.store.add_organisation("org_2", "second", 1.0, taken).wait_result(30)
        assert store_fixture.rows("SELECT count(*) FROM organisations")[0] == (1,)
    assert store_fixture.store.first_organisation() == ORGANISATION


def test_agents_are_listed_by_id_in_pages(store_fixture: StoreFixture) -> None:
    for number in (3, 1, 2):
        store_fixture.register(agent_of(f"agent_{number}"))
    assert [agent.agent_id for agent in store_fixture.store.list_agents(ORGANISATION, 2, "")] == ["agent_1", "agent_2"]
    assert [agent.agent_id for agent in store_fixture.store.list_agents(ORGANISATION, 2, "agent_2")] == ["agent_3"]
    assert store_fixture.store.list_agents("org_2", 10, "") == []


def test_a_tool_row_replaces_the_one_before_and_is_seen_at_once(store_fixture: StoreFixture) -> None:
    assert store_fixture.store.tool_rows(ORGANISATION) == {}
    before = store_fixture.store.tool_rows(ORGANISATION)
    store_fixture.change(ToolChanged(ORGANISATION, "t", b"1"))
    store_fixture.change(ToolChanged(ORGANISATION, "t", b"2"))
    assert store_fixture.store.tool_rows(ORGANISATION) == {"t": b"2"}
    assert before == {}, "what a judgement was made under does not change under it"


# Steps


def test_a_reserved_step_is_held_until_it_is_released(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    first = store_fixture.reserve(agent, 1)
    assert isinstance(first, Reservation)
    assert store_fixture.reserve(agent, 1) is ErrorCode.REPLAY
    assert isinstance(store_fixture.reserve(agent, 2), Reservation)
    store_fixture.store.release(first)
    store_fixture.store.release(first)
    assert isinstance(store_fixture.reserve(agent, 1), Reservation)


def test_steps_of_other_agents_and_conversations_are_other_steps(store_fixture: StoreFixture) -> None:
    one, other = store_fixture.register(agent_of()), store_fixture.register(agent_of("agent_2"))
    assert isinstance(store_fixture.reserve(one, 1), Reservation)
    assert isinstance(store_fixture.reserve(other, 1), Reservation)
    assert isinstance(store_fixture.reserve(one, 1, "another"), Reservation)


def test_a_committed_step_and_every_one_before_it_are_replays(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    store_fixture.commit(agent, 5)
    assert [store_fixture.reserve(agent, step) for step in (1, 4, 5)] == [ErrorCode.REPLAY] * 3
    assert isinstance(store_fixture.reserve(agent, 6), Reservation)


def test_a_denied_step_is_not_used_up(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    store_fixture.commit(agent, 1, decision=Decision.DENIED)
    assert store_fixture.commit(agent, 1).log_index == 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_is_past_the_limit_and_no_conversation_is_longer(kind: str, request: pytest.FixtureRequest) -> None:
    for store_fixture in open_fixture(kind, location_of(kind, request), max_steps=3):
        agent = store_fixture.register(agent_of())
        assert store_fixture.reserve(agent, 4) is ErrorCode.STEP_LIMIT
        assert [store_fixture.commit(agent, step).log_index for step in (1, 2, 3)] == [0, 1, 2]
        assert store_fixture.reserve(agent, 3) is ErrorCode.STEP_LIMIT


def test_an_earlier_step_that_was_reserved_first_cannot_commit_after_a_later_one(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    early, late = store_fixture.reserve(agent, 1), store_fixture.reserve(agent, 2)
    assert isinstance(early, Reservation)
    assert isinstance(late, Reservation)
    store_fixture.settle(agent, late)
    assert store_fixture.settle(agent, early) is Conflict.STALE


def test_three_reserved_at_once_with_one_action_commit_only_two(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    reservations = [store_fixture.reserve(agent, step, fingerprint="same") for step in (1, 2, 3)]
    outcomes = [store_fixture.settle(agent, one) for one in reservations if isinstance(one, Reservation)]
    assert outcomes[MAX_REPEATS] is Conflict.STALE
    assert all(isinstance(outcome, Committed) for outcome in outcomes[:MAX_REPEATS])


def test_the_third_of_one_state_is_no_progress_even_when_all_were_reserved_before(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    reservations = [
        store_fixture.reserve(agent, step, fingerprint=f"f{step}", state_fingerprint="s") for step in (1, 2, 3)
    ]
    outcomes = [store_fixture.settle(agent, one) for one in reservations if isinstance(one, Reservation)]
    assert outcomes[2] is Conflict.STALE


def test_a_lease_that_ran_out_commits_nothing_and_its_step_goes_to_the_next(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    first = store_fixture.reserve(agent, 1)
    assert isinstance(first, Reservation)
    store_fixture.manual_clock.advance(30)
    second = store_fixture.reserve(agent, 1)
    assert isinstance(second, Reservation)
    assert store_fixture.settle(agent, first) is Conflict.LEASE_EXPIRED
    store_fixture.store.release(first)
    assert store_fixture.reserve(agent, 1) is ErrorCode.REPLAY, "releasing the first must not free the second"
    assert isinstance(store_fixture.settle(agent, second), Committed)


def test_a_lease_that_ran_out_gives_back_what_it_held_with_the_next_reservation(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of(daily_cost=10_000))
    assert isinstance(store_fixture.reserve(agent, 1, charge=CENT), Reservation)
    assert isinstance(store_fixture.reserve(agent, 2, charge=CENT), LimitExceeded)
    store_fixture.manual_clock.advance(31)
    assert store_fixture.commit(agent, 1, "elsewhere").usage.cost_day == 10_000


def test_conversations_whose_names_begin_alike_are_kept_apart_across_a_restart(file: StoreFixture) -> None:
    """Not for PostgreSQL, which cannot store such a name; the kernel uses keyed names."""
    agent = file.register(agent_of())
    file.commit(agent, 5, "v")
    file.commit(agent, 1, "v\x00w")
    file.reopened()
    assert [file.reserve(agent, 5, "v"), file.reserve(agent, 1, "v\x00w")] == [ErrorCode.REPLAY] * 2


def test_what_commits_needs_a_step(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    with pytest.raises(ValueError, match="needs a reserved step"):
        store_fixture.settle(agent, None)
    assert store_fixture.settle(agent, None, Decision.DENIED).log_index == 0  # type: ignore[union-attr]


# Budget


def test_what_is_approved_is_charged_and_what_is_denied_counts_as_a_request_only(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    store_fixture.commit(agent, 1)
    store_fixture.commit(agent, 2, decision=Decision.DENIED)
    store_fixture.commit(agent, 2, decision=Decision.CORRECTED)
    store_fixture.commit(agent, 3, decision=Decision.PENDING)
    usage = store_fixture.spent(agent)
    assert (usage.cost_day, usage.tokens_day, usage.requests_hour, usage.requests_day) == (20_000, 20, 4, 4)
    assert (usage.pending_cost, usage.pending_tokens) == (10_000, 10)


LIMITS = {
    "daily_cost": (RequestCost(cost=4), 10, ErrorCode.COST_EXCEEDED),
    "tokens_per_day": (RequestCost(tokens=4), 10, ErrorCode.TOKENS_EXCEEDED),
    "requests_per_hour": (RequestCost(requests=1), 2, ErrorCode.RATE_EXCEEDED),
    "requests_per_day": (RequestCost(requests=1), 2, ErrorCode.RATE_EXCEEDED),
    "tool_calls_per_hour": (RequestCost(tool_calls=1), 2, ErrorCode.RATE_EXCEEDED),
    "high_risk_calls_per_day": (RequestCost(high_risk_calls=1), 2, ErrorCode.RATE_EXCEEDED),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_third_charge_passes_a_limit_that_holds_two_whether_held_or_spent(
    store_fixture: StoreFixture, name: str
) -> None:
    charge, limit, code = LIMITS[name]
    agent = store_fixture.register(agent_of("agent_1", **{name: limit}))
    first, second, third = (store_fixture.reserve(agent, step, charge=charge) for step in (1, 2, 3))
    assert third.code is code
    assert (third.limit, third.current) == (limit, 2 * max(astuple(charge)))
    for reservation in (first, second):
        assert isinstance(store_fixture.settle(agent, reservation, charge=charge), Committed)
    assert store_fixture.reserve(agent, 3, charge=charge).code is code


def test_what_was_free_when_it_was_looked_at_is_a_conflict_once_another_holds_it(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of(daily_cost=CENT.cost))
    snapshot = store_fixture.load()
    held = store_fixture.reserve(agent, 1, charge=CENT)
    for step, conversation, charge in ((1, "c", NO_COST), (2, "c", CENT), (1, "another", CENT)):
        late = Reservation("agent_1", conversation, ConversationStep(step, "f"), charge, store_fixture.manual_clock.now)
        assert store_fixture.store.reserve(late, snapshot) is Conflict.STALE
    store_fixture.store.release(held)
    assert store_fixture.store.reserve(late, snapshot) is None


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_released_can_be_spent_by_another(store_fixture: StoreFixture, name: str) -> None:
    charge, limit, _code = LIMITS[name]
    agent = store_fixture.register(agent_of("agent_1", **{name: limit}))
    for step in range(1, 20):
        reservation = store_fixture.reserve(agent, step, charge=charge)
        assert isinstance(reservation, Reservation)
        store_fixture.store.release(reservation)


def test_a_limit_of_zero_lets_nothing_through(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of(daily_cost=0))
    assert store_fixture.commit(agent, 1).code is ErrorCode.COST_EXCEEDED


def test_windows_open_with_the_hour_and_the_day_in_utc(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of(requests_per_hour=1, daily_cost=20_000))
    store_fixture.manual_clock.now = 100 * DAY - HOUR - 0.001
    assert store_fixture.commit(agent, 1).usage.requests_hour == 1
    refused = store_fixture.commit(agent, 2)
    assert (refused.code, refused.reset_at) == (ErrorCode.RATE_EXCEEDED, 100 * DAY - HOUR)
    store_fixture.manual_clock.advance(0.001)
    usage = store_fixture.commit(agent, 2).usage
    assert (usage.requests_hour, usage.requests_day, usage.cost_day) == (1, 2, 20_000)
    store_fixture.manual_clock.advance(HOUR - 0.001)
    refused = store_fixture.commit(agent, 3)
    assert (refused.code, refused.reset_at) == (ErrorCode.COST_EXCEEDED, 100 * DAY)
    store_fixture.manual_clock.advance(0.001)
    usage = store_fixture.commit(agent, 3).usage
    assert (usage.requests_hour, usage.requests_day, usage.cost_day) == (1, 1, 10_000)


def test_a_clock_that_goes_back_gives_nothing_away(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of(requests_per_hour=1))
    store_fixture.commit(agent, 1)
    store_fixture.manual_clock.now -= 3 * DAY
    assert store_fixture.commit(agent, 2).code is ErrorCode.RATE_EXCEEDED
    store_fixture.manual_clock.now += 3 * DAY + HOUR
    assert store_fixture.commit(agent, 2).usage.requests_hour == 1


def test_what_is_held_across_the_turn_of_an_hour_is_charged_to_the_new_one_and_never_above_it(
    store_fixture: StoreFixture,
) -> None:
    agent = store_fixture.register(agent_of(requests_per_hour=2))
    reservations = [store_fixture.reserve(agent, step, charge=CENT) for step in (1, 2)]
    store_fixture.manual_clock.advance(HOUR)
    store_fixture.manual_clock.monotonic -= HOUR
    assert store_fixture.commit(agent, 3).code is ErrorCode.RATE_EXCEEDED
    for one in reservations:
        assert isinstance(one, Reservation)
        store_fixture.settle(agent, one, charge=CENT)
    assert store_fixture.spent(agent).requests_hour == 2


def test_what_is_pending_stays_held_the_next_day(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of(daily_cost=10_000))
    store_fixture.commit(agent, 1, decision=Decision.PENDING)
    store_fixture.manual_clock.advance(DAY)
    assert store_fixture.commit(agent, 2).code is ErrorCode.COST_EXCEEDED
    assert store_fixture.spent(agent).pending_cost == 10_000


# The log


def test_every_organisation_has_its_own_log_without_a_gap(store_fixture: StoreFixture) -> None:
    store_fixture.store.add_organisation(
        "org_2", "second", 1.0, owner_key("key_2", "org_2", "qwed_live_b")
    ).wait_result(30)
    mine = store_fixture.register(agent_of())
    theirs = store_fixture.register(replace(agent_of("agent_2"), organisation_id="org_2"))
    indexes = [store_fixture.commit(agent, step).log_index for step in range(1, 4) for agent in (mine, theirs)]
    assert indexes == [0, 0, 1, 1, 2, 2]


def test_activities_are_found_by_id_for_their_own_agent_only(store_fixture: StoreFixture) -> None:
    agent, other = store_fixture.register(agent_of()), store_fixture.register(agent_of("agent_2"))
    store_fixture.settle(agent, None, Decision.DENIED, activity_id="act_mine")
    record = store_fixture.store.find_activity(agent.agent_id, "act_mine")
    assert (record.log_index, record.leaf, record.payload) == (0, '{"leaf":1}', '{"payload":1}')
    assert store_fixture.store.find_activity(other.agent_id, "act_mine") is None


def test_activities_are_paged_newest_first_and_narrowed(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    for step in range(1, 6):
        store_fixture.commit(agent, step, decision=Decision.APPROVED if step % 2 else Decision.DENIED)
        store_fixture.manual_clock.advance(10)
    start = store_fixture.manual_clock.now - 50
    indexes = [entry.log_index for entry in store_fixture.store.activities(ActivityQuery(agent.agent_id, 2))]
    assert indexes == [4, 3]
    last = store_fixture.store.activities(ActivityQuery(agent.agent_id, 2))[-1]
    older = store_fixture.store.activities(ActivityQuery(agent.agent_id, 10, before=last.log_index))
    assert [entry.log_index for entry in older] == [2, 1, 0]
    denied = store_fixture.store.activities(ActivityQuery(agent.agent_id, 10, decision="DENIED"))
    assert [entry.log_index for entry in denied] == [3, 1]
    middle = store_fixture.store.activities(ActivityQuery(agent.agent_id, 10, since=start + 10, until=start + 30))
    assert [entry.log_index for entry in middle] == [2, 1]


def test_the_tally_sums_decisions_and_money_by_day(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    store_fixture.commit(agent, 1)
    store_fixture.commit(agent, 2, decision=Decision.DENIED)
    today = int(store_fixture.manual_clock.now // DAY)
    store_fixture.manual_clock.advance(DAY)
    store_fixture.commit(agent, 2, decision=Decision.PENDING)
    store_fixture.commit(agent, 3)
    assert store_fixture.store.activity_summary(agent.agent_id, None, None) == ActivitySummary(4, 2, 1, 0, 1, 0, 20_000)
    assert store_fixture.store.activity_summary(
        agent.agent_id, today * 86_400, (today + 1) * 86_400
    ) == ActivitySummary(2, 1, 1, 0, 0, 0, 10_000)
    assert store_fixture.store.activity_summary("agent_2", None, None) == ActivitySummary()


# Idempotency keys


def _memory(key: str, body: str, expires_at: float) -> IdempotentAnswer:
    return IdempotentAnswer(key, body, lambda receipt: f"answer {receipt.log_index}".encode(), expires_at)


def test_a_key_is_ours_until_released_then_free_or_remembered(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    now = store_fixture.manual_clock.now
    snapshot = store_fixture.load(idempotency_key="k")
    assert (snapshot.key_in_flight, snapshot.stored_answer) == (False, None)
    held = store_fixture.reserve(agent, 1, key="k")
    assert store_fixture.load(idempotency_key="k").key_in_flight
    late = Reservation("agent_1", "c", ConversationStep(2, "f"), NO_COST, now, idempotency_key="k")
    assert store_fixture.store.reserve(late, snapshot) is Conflict.STALE
    assert not store_fixture.load("agent_2", idempotency_key="k").key_in_flight
    store_fixture.store.release(held)
    held = store_fixture.reserve(agent, 1, key="k")
    assert isinstance(held, Reservation)
    store_fixture.settle(agent, held, memory=_memory("k", "body", now + 60), activity_id="act_k")
    store_fixture.store.release(held)
    snapshot = store_fixture.load(idempotency_key="k")
    assert snapshot.stored_answer is not None
    body_hash, answer, activity_id = snapshot.stored_answer
    assert (body_hash, bytes(answer), activity_id) == ("body", b"answer 0", "act_k")
    assert not snapshot.key_in_flight
    store_fixture.manual_clock.now += 60
    assert store_fixture.load(idempotency_key="k").stored_answer is None


def test_a_key_whose_holder_vanished_is_free_after_its_lease(store_fixture: StoreFixture) -> None:
    agent = store_fixture.register(agent_of())
    assert isinstance(store_fixture.reserve(agent, 1, key="k"), Reservation)
    store_fixture.manual_clock.advance(30)
    assert not store_fixture.load(idempotency_key="k").key_in_flight
    assert isinstance(store_fixture.reserve(agent, 1, key="k"), Reservation)


# Restarts


def test_a_commit_reaches_the_disk_before_it_is_told(file: StoreFixture) -> None:
    connection = file.writer_connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL: a commit waits for the disk"


def test_everything_settled_is_there_after_a_restart_and_nothing_reserved_is(disk: StoreFixture) -> None:
    agent = disk.register(agent_of(daily_cost=30_000))
    disk.commit(agent, 1, fingerprint="same", state_fingerprint="s")
    disk.commit(agent, 2, fingerprint="same", state_fingerprint="s")
    approval = ApprovalRequest("apr_1", 1, 2, 3, 4.0, 5.0)
    reservation = disk.reserve(agent, 3)
    assert isinstance(reservation, Reservation)
    disk.settle(agent, reservation, Decision.PENDING, CENT, approval=approval)
    disk.reserve(agent, 4, fingerprint="same")
    before = disk.spent(agent)
    disk.reopened()
    assert disk.spent(agent) == before
    assert disk.reserve(agent, 3) is ErrorCode.REPLAY
    assert disk.rows("SELECT approval_id, state FROM approvals")[0] == ("apr_1", "pending")
    assert disk.commit(agent, 4).code is ErrorCode.COST_EXCEEDED
    assert disk.commit(agent, 4, charge=RequestCost(requests=1)).log_index == 3


def test_loops_are_still_seen_after_a_restart(disk: StoreFixture) -> None:
    agent = disk.register(agent_of())
    for step in (1, 2):
        disk.commit(agent, step, fingerprint="same", state_fingerprint="s")
    disk.reopened()
    reservation = disk.reserve(agent, 3, fingerprint="same")
    assert isinstance(reservation, Reservation)
    assert disk.settle(agent, reservation) is Conflict.STALE
    disk.store.release(reservation)
    other = disk.reserve(agent, 3, fingerprint="other", state_fingerprint="s")
    assert isinstance(other, Reservation)
    assert disk.settle(agent, other) is Conflict.STALE
