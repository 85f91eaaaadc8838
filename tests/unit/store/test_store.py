"""DESIGN 6: one suite for every store. What is asked here of the one in memory is asked of the one on disk."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qwed.store.conversation import MAX_REPEATS
from qwed.store.parts import Approval, ToolChanged
from qwed.store.protocol import ActivityQuery, KeyClaim, Memory, Reservation, Settled, StoreError, Tally
from qwed.store.usage import Charge, Exceeded
from qwed.words import Decision, ErrorCode
from qwed.words.clock import DAY, HOUR
from tests.support.stores import CENT, KINDS, LASTING, ORGANISATION, Shop, agent_of, opened, owner_key, place_of


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    yield from opened(request.param, place_of(request.param, request))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Shop]:
    yield from opened("file", tmp_path)


@pytest.fixture(params=LASTING)
def disk(request: pytest.FixtureRequest) -> Iterator[Shop]:
    yield from opened(request.param, place_of(request.param, request))


# Who there is


def test_an_agent_comes_back_as_it_was_kept(shop: Shop) -> None:
    agent = shop.register(agent_of(daily_cost=5, tokens_per_day=7))
    found = shop.store.find_agent("agent_1")
    assert found == agent
    assert (found.limits.daily_cost, found.permissions.allowed_tools) == (5, ("a", "b"))
    assert shop.store.find_agent("agent_2") is None


def test_a_key_comes_back_until_it_is_revoked(shop: Shop) -> None:
    assert shop.store.find_key("qwed_live_a") == owner_key()
    assert shop.store.find_key("qwed_live_b") is None


def test_the_organisation_and_its_owner_come_together_or_not_at_all(shop: Shop) -> None:
    taken = owner_key(key_id="key_2", organisation_id="org_2")
    if shop.kind == "file":
        with pytest.raises(StoreError, match="could not write"):
            shop.store.add_organisation("org_2", "second", 1.0, taken).block(30)
        assert shop.store._one("SELECT count(*) FROM organisations", ()) == (1,)
    assert shop.store.first_organisation() == ORGANISATION


def test_agents_are_listed_by_id_in_pages(shop: Shop) -> None:
    for number in (3, 1, 2):
        shop.register(agent_of(f"agent_{number}"))
    assert [agent.agent_id for agent in shop.store.list_agents(ORGANISATION, 2, "")] == ["agent_1", "agent_2"]
    assert [agent.agent_id for agent in shop.store.list_agents(ORGANISATION, 2, "agent_2")] == ["agent_3"]
    assert shop.store.list_agents("org_2", 10, "") == []


def test_a_tool_row_replaces_the_one_before_and_is_seen_at_once(shop: Shop) -> None:
    assert shop.store.tool_rows(ORGANISATION) == {}
    before = shop.store.tool_rows(ORGANISATION)
    shop.change(ToolChanged(ORGANISATION, "t", b"1"))
    shop.change(ToolChanged(ORGANISATION, "t", b"2"))
    assert shop.store.tool_rows(ORGANISATION) == {"t": b"2"}
    assert before == {}, "what a judgement was made under does not change under it"


# Steps


def test_a_reserved_step_is_held_until_it_is_released(shop: Shop) -> None:
    agent = shop.register(agent_of())
    first = shop.reserve(agent, 1)
    assert isinstance(first, Reservation)
    assert shop.reserve(agent, 1) is ErrorCode.REPLAY
    assert isinstance(shop.reserve(agent, 2), Reservation)
    shop.store.release(first)
    shop.store.release(first)
    assert isinstance(shop.reserve(agent, 1), Reservation)


def test_steps_of_other_agents_and_conversations_are_other_steps(shop: Shop) -> None:
    one, other = shop.register(agent_of()), shop.register(agent_of("agent_2"))
    assert isinstance(shop.reserve(one, 1), Reservation)
    assert isinstance(shop.reserve(other, 1), Reservation)
    assert isinstance(shop.reserve(one, 1, "another"), Reservation)


def test_a_committed_step_and_every_one_before_it_are_replays(shop: Shop) -> None:
    agent = shop.register(agent_of())
    shop.commit(agent, 5)
    assert [shop.reserve(agent, step) for step in (1, 4, 5)] == [ErrorCode.REPLAY] * 3
    assert isinstance(shop.reserve(agent, 6), Reservation)


def test_a_denied_step_is_not_used_up(shop: Shop) -> None:
    agent = shop.register(agent_of())
    shop.commit(agent, 1, decision=Decision.DENIED)
    assert shop.commit(agent, 1).log_index == 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_is_past_the_limit_and_no_conversation_is_longer(kind: str, request: pytest.FixtureRequest) -> None:
    for shop in opened(kind, place_of(kind, request), max_steps=3):
        agent = shop.register(agent_of())
        assert shop.reserve(agent, 4) is ErrorCode.STEP_LIMIT
        assert [shop.commit(agent, step).log_index for step in (1, 2, 3)] == [0, 1, 2]
        assert shop.reserve(agent, 3) is ErrorCode.STEP_LIMIT


def test_an_earlier_step_that_was_reserved_first_cannot_commit_after_a_later_one(shop: Shop) -> None:
    agent = shop.register(agent_of())
    early, late = shop.reserve(agent, 1), shop.reserve(agent, 2)
    assert isinstance(early, Reservation)
    assert isinstance(late, Reservation)
    shop.settle(agent, late)
    assert shop.settle(agent, early) is shop.late(ErrorCode.REPLAY)


def test_three_reserved_at_once_with_one_action_commit_only_two(shop: Shop) -> None:
    agent = shop.register(agent_of())
    held = [shop.reserve(agent, step, fingerprint="same") for step in (1, 2, 3)]
    outcomes = [shop.settle(agent, one) for one in held if isinstance(one, Reservation)]
    assert outcomes[MAX_REPEATS] is shop.late(ErrorCode.REPETITION)
    assert all(isinstance(outcome, Settled) for outcome in outcomes[:MAX_REPEATS])


def test_the_third_of_one_state_is_no_progress_even_when_all_were_reserved_before(shop: Shop) -> None:
    agent = shop.register(agent_of())
    held = [shop.reserve(agent, step, fingerprint=f"f{step}", state_fingerprint="s") for step in (1, 2, 3)]
    outcomes = [shop.settle(agent, one) for one in held if isinstance(one, Reservation)]
    assert outcomes[2] is shop.late(ErrorCode.NO_PROGRESS)


def test_a_lease_that_ran_out_commits_nothing_and_its_step_goes_to_the_next(shop: Shop) -> None:
    agent = shop.register(agent_of())
    first = shop.reserve(agent, 1)
    assert isinstance(first, Reservation)
    shop.hands.turn(30)
    second = shop.reserve(agent, 1)
    assert isinstance(second, Reservation)
    assert shop.settle(agent, first) is ErrorCode.LEASE_EXPIRED
    shop.store.release(first)
    assert shop.reserve(agent, 1) is ErrorCode.REPLAY, "releasing the first must not free the second"
    assert not isinstance(shop.settle(agent, second), ErrorCode)


def test_a_lease_that_ran_out_gives_back_what_it_held_with_the_next_reservation(shop: Shop) -> None:
    agent = shop.register(agent_of(daily_cost=10_000))
    first = shop.reserve(agent, 1)
    assert isinstance(first, Reservation)
    assert shop.store.hold(first, CENT, shop.hands.now) is None
    assert isinstance(shop.store.hold(first, CENT, shop.hands.now), Exceeded)
    shop.hands.turn(31)
    assert shop.commit(agent, 1, "elsewhere").spent.cost_day == 10_000


def test_conversations_whose_names_begin_alike_are_kept_apart_across_a_restart(file: Shop) -> None:
    """PostgreSQL holds no such name, and the kernel files conversations under keyed ones."""
    agent = file.register(agent_of())
    file.commit(agent, 5, "v")
    file.commit(agent, 1, "v\x00w")
    file.reopened()
    assert [file.reserve(agent, 5, "v"), file.reserve(agent, 1, "v\x00w")] == [ErrorCode.REPLAY] * 2


def test_what_commits_needs_a_step(shop: Shop) -> None:
    agent = shop.register(agent_of())
    with pytest.raises(ValueError, match="needs a reserved step"):
        shop.settle(agent, None)
    assert shop.settle(agent, None, Decision.DENIED).log_index == 0  # type: ignore[union-attr]


# Money


def test_what_is_approved_is_charged_and_what_is_denied_counts_as_a_request_only(shop: Shop) -> None:
    agent = shop.register(agent_of())
    shop.commit(agent, 1)
    shop.commit(agent, 2, decision=Decision.DENIED)
    shop.commit(agent, 2, decision=Decision.CORRECTED)
    shop.commit(agent, 3, decision=Decision.PENDING)
    spent = shop.spent(agent)
    assert (spent.cost_day, spent.tokens_day, spent.requests_hour, spent.requests_day) == (20_000, 20, 4, 4)
    assert (spent.pending_cost, spent.pending_tokens) == (10_000, 10)


LIMITS = {
    "daily_cost": (Charge(cost=4), 10, ErrorCode.COST_EXCEEDED),
    "tokens_per_day": (Charge(tokens=4), 10, ErrorCode.TOKENS_EXCEEDED),
    "requests_per_hour": (Charge(requests=1), 2, ErrorCode.RATE_EXCEEDED),
    "requests_per_day": (Charge(requests=1), 2, ErrorCode.RATE_EXCEEDED),
    "tool_calls_per_hour": (Charge(tool_calls=1), 2, ErrorCode.RATE_EXCEEDED),
    "high_risk_calls_per_day": (Charge(high_risk_calls=1), 2, ErrorCode.RATE_EXCEEDED),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_third_charge_passes_a_limit_that_holds_two_whether_held_or_spent(shop: Shop, name: str) -> None:
    charge, limit, code = LIMITS[name]
    agent = shop.register(agent_of("agent_1", **{name: limit}))
    held = [shop.reserve(agent, step) for step in (1, 2, 3)]
    outcomes = [shop.store.hold(one, charge, shop.hands.now) for one in held]
    assert outcomes[:2] == [None, None]
    assert outcomes[2].code is code
    assert (outcomes[2].limit, outcomes[2].current) == (limit, 2 * max(charge))
    for one in held[:2]:
        assert isinstance(one, Reservation)
        shop.settle(agent, one, charge=charge)
    assert shop.store.hold(held[2], charge, shop.hands.now).code is code


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_released_can_be_spent_by_another(shop: Shop, name: str) -> None:
    charge, limit, _code = LIMITS[name]
    agent = shop.register(agent_of("agent_1", **{name: limit}))
    for step in range(1, 20):
        reservation = shop.reserve(agent, step)
        assert isinstance(reservation, Reservation)
        assert shop.store.hold(reservation, charge, shop.hands.now) is None
        shop.store.release(reservation)


def test_a_limit_of_zero_lets_nothing_through(shop: Shop) -> None:
    agent = shop.register(agent_of(daily_cost=0))
    assert shop.commit(agent, 1).code is ErrorCode.COST_EXCEEDED


def test_windows_open_with_the_hour_and_the_day_in_utc(shop: Shop) -> None:
    agent = shop.register(agent_of(requests_per_hour=1, daily_cost=20_000))
    shop.hands.now = 100 * DAY - HOUR - 0.001
    assert shop.commit(agent, 1).spent.requests_hour == 1
    refused = shop.commit(agent, 2)
    assert (refused.code, refused.reset_at) == (ErrorCode.RATE_EXCEEDED, 100 * DAY - HOUR)
    shop.hands.turn(0.001)
    spent = shop.commit(agent, 2).spent
    assert (spent.requests_hour, spent.requests_day, spent.cost_day) == (1, 2, 20_000)
    shop.hands.turn(HOUR - 0.001)
    refused = shop.commit(agent, 3)
    assert (refused.code, refused.reset_at) == (ErrorCode.COST_EXCEEDED, 100 * DAY)
    shop.hands.turn(0.001)
    spent = shop.commit(agent, 3).spent
    assert (spent.requests_hour, spent.requests_day, spent.cost_day) == (1, 1, 10_000)


def test_a_clock_that_goes_back_gives_nothing_away(shop: Shop) -> None:
    agent = shop.register(agent_of(requests_per_hour=1))
    shop.commit(agent, 1)
    shop.hands.now -= 3 * DAY
    assert shop.commit(agent, 2).code is ErrorCode.RATE_EXCEEDED
    shop.hands.now += 3 * DAY + HOUR
    assert shop.commit(agent, 2).spent.requests_hour == 1


def test_what_is_held_across_the_turn_of_an_hour_is_charged_to_the_new_one_and_never_above_it(shop: Shop) -> None:
    agent = shop.register(agent_of(requests_per_hour=2))
    held = [shop.reserve(agent, step) for step in (1, 2)]
    for one in held:
        assert shop.store.hold(one, CENT, shop.hands.now) is None
    shop.hands.turn(HOUR)
    shop.hands.monotonic -= HOUR
    assert shop.commit(agent, 3).code is ErrorCode.RATE_EXCEEDED
    for one in held:
        assert isinstance(one, Reservation)
        shop.settle(agent, one, charge=CENT)
    assert shop.spent(agent).requests_hour == 2


def test_what_is_pending_stays_held_the_next_day(shop: Shop) -> None:
    agent = shop.register(agent_of(daily_cost=10_000))
    shop.commit(agent, 1, decision=Decision.PENDING)
    shop.hands.turn(DAY)
    assert shop.commit(agent, 2).code is ErrorCode.COST_EXCEEDED
    assert shop.spent(agent).pending_cost == 10_000


# The log


def test_every_organisation_has_its_own_log_without_a_gap(shop: Shop) -> None:
    shop.store.add_organisation("org_2", "second", 1.0, owner_key("key_2", "org_2", "qwed_live_b")).block(30)
    mine = shop.register(agent_of())
    theirs = shop.register(replace(agent_of("agent_2"), organisation_id="org_2"))
    indexes = [shop.commit(agent, step).log_index for step in range(1, 4) for agent in (mine, theirs)]
    assert indexes == [0, 0, 1, 1, 2, 2]


def test_activities_are_found_by_id_for_their_own_agent_only(shop: Shop) -> None:
    agent, other = shop.register(agent_of()), shop.register(agent_of("agent_2"))
    shop.settle(agent, None, Decision.DENIED, activity_id="act_mine")
    found = shop.store.find_activity(agent.agent_id, "act_mine")
    assert (found.log_index, found.leaf, found.payload) == (0, '{"leaf":1}', '{"payload":1}')
    assert shop.store.find_activity(other.agent_id, "act_mine") is None


def test_activities_are_paged_newest_first_and_narrowed(shop: Shop) -> None:
    agent = shop.register(agent_of())
    for step in range(1, 6):
        shop.commit(agent, step, decision=Decision.APPROVED if step % 2 else Decision.DENIED)
        shop.hands.turn(10)
    start = shop.hands.now - 50
    indexes = [entry.log_index for entry in shop.store.activities(ActivityQuery(agent.agent_id, 2))]
    assert indexes == [4, 3]
    last = shop.store.activities(ActivityQuery(agent.agent_id, 2))[-1]
    older = shop.store.activities(ActivityQuery(agent.agent_id, 10, before=last.log_index))
    assert [entry.log_index for entry in older] == [2, 1, 0]
    denied = shop.store.activities(ActivityQuery(agent.agent_id, 10, decision="DENIED"))
    assert [entry.log_index for entry in denied] == [3, 1]
    middle = shop.store.activities(ActivityQuery(agent.agent_id, 10, since=start + 10, until=start + 30))
    assert [entry.log_index for entry in middle] == [2, 1]


def test_the_tally_sums_decisions_and_money_by_day(shop: Shop) -> None:
    agent = shop.register(agent_of())
    shop.commit(agent, 1)
    shop.commit(agent, 2, decision=Decision.DENIED)
    today = int(shop.hands.now // DAY)
    shop.hands.turn(DAY)
    shop.commit(agent, 2, decision=Decision.PENDING)
    shop.commit(agent, 3)
    assert shop.store.tally(agent.agent_id, None, None) == Tally(4, 2, 1, 0, 1, 0, 20_000)
    assert shop.store.tally(agent.agent_id, today * 86_400, (today + 1) * 86_400) == Tally(2, 1, 1, 0, 0, 0, 10_000)
    assert shop.store.tally("agent_2", None, None) == Tally()


# Retries


def _memory(key: str, body: str, expires_at: float) -> Memory:
    return Memory(key, body, lambda settled: f"answer {settled.log_index}".encode(), expires_at)


def test_a_key_is_ours_until_released_then_free_or_remembered(shop: Shop) -> None:
    agent = shop.register(agent_of())
    now = shop.hands.now
    assert shop.store.claim_key("agent_1", "k", "body", now) == KeyClaim()
    assert "still being decided" in shop.store.claim_key("agent_1", "k", "body", now).refusal
    assert shop.store.claim_key("agent_2", "k", "body", now) == KeyClaim()
    shop.store.release_key("agent_1", "k")
    assert shop.store.claim_key("agent_1", "k", "body", now) == KeyClaim()
    shop.settle(agent, None, Decision.DENIED, memory=_memory("k", "body", now + 60), activity_id="act_k")
    shop.store.release_key("agent_1", "k")
    remembered = shop.store.claim_key("agent_1", "k", "body", now).remembered
    assert (bytes(remembered.answer), remembered.activity_id) == (b"answer 0", "act_k")
    assert "another request" in shop.store.claim_key("agent_1", "k", "other body", now).refusal
    assert shop.store.claim_key("agent_1", "k", "other body", now + 60) == KeyClaim()


def test_a_key_whose_holder_vanished_is_free_after_its_lease(shop: Shop) -> None:
    assert shop.store.claim_key("agent_1", "k", "body", shop.hands.now) == KeyClaim()
    shop.hands.turn(30)
    assert shop.store.claim_key("agent_1", "k", "body", shop.hands.now) == KeyClaim()


# What lives through a restart


def test_a_commit_reaches_the_disk_before_it_is_told(file: Shop) -> None:
    connection = file.store._writer._connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL: a commit waits for the disk"


def test_everything_settled_is_there_after_a_restart_and_nothing_reserved_is(disk: Shop) -> None:
    agent = disk.register(agent_of(daily_cost=30_000))
    disk.commit(agent, 1, fingerprint="same", state_fingerprint="s")
    disk.commit(agent, 2, fingerprint="same", state_fingerprint="s")
    approval = Approval("apr_1", 1, 2, 3, 4.0, 5.0)
    reservation = disk.reserve(agent, 3)
    assert isinstance(reservation, Reservation)
    disk.settle(agent, reservation, Decision.PENDING, CENT, approval=approval)
    held = disk.reserve(agent, 4, fingerprint="same")
    disk.store.hold(held, Charge(), disk.hands.now)
    before = disk.spent(agent)
    disk.reopened()
    assert disk.spent(agent) == before
    assert disk.reserve(agent, 3) is ErrorCode.REPLAY
    assert disk.store._one("SELECT approval_id, state FROM approvals", ()) == ("apr_1", "pending")
    assert disk.commit(agent, 4).code is ErrorCode.COST_EXCEEDED
    assert disk.commit(agent, 4, charge=Charge(requests=1)).log_index == 3


def test_loops_are_still_seen_after_a_restart(disk: Shop) -> None:
    agent = disk.register(agent_of())
    for step in (1, 2):
        disk.commit(agent, step, fingerprint="same", state_fingerprint="s")
    disk.reopened()
    reservation = disk.reserve(agent, 3, fingerprint="same")
    assert isinstance(reservation, Reservation)
    assert disk.settle(agent, reservation) is disk.late(ErrorCode.REPETITION)
    disk.store.release(reservation)
    other = disk.reserve(agent, 3, fingerprint="other", state_fingerprint="s")
    assert isinstance(other, Reservation)
    assert disk.settle(agent, other) is disk.late(ErrorCode.NO_PROGRESS)
