"""What happens around decisions: each part refused when the world has moved on, or kept whole and seen at once."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from qwed.store import parts
from qwed.store.agent import AgentStatus
from qwed.store.changes import HANDLING
from qwed.store.parts import (
    AgentAdded,
    AgentChanged,
    AgentStands,
    Approval,
    Conflict,
    ElevationRequested,
    Executed,
    KeyAdded,
    KeyRevoked,
    OrganisationAdded,
    OrganisationHalted,
    ToolChanged,
    Webhook,
    WebhookChanged,
)
from qwed.store.protocol import Notice, StoreError
from qwed.store.usage import Charge
from qwed.words import Decision, Trust
from qwed.words.clock import DAY
from tests.support.clock import NOON, HandClock
from tests.support.stores import CENT, KINDS, ORGANISATION, Shop, agent_of, owner_key

SECOND = owner_key("key_2", prefix="qwed_live_b")
HOOK = Webhook(ORGANISATION, "https://example.com/", ("pending",), "s", 1.0)
ELEVATION = Approval("apr_up", "", 0, 0, 0, 1.0, 2.0, "key_1", "trust_elevation", '{"to_level":2}')


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    opened = Shop(request.param, tmp_path / "data", HandClock())
    opened.register(agent_of())
    yield opened
    opened.store.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Shop]:
    opened = Shop("file", tmp_path / "data", HandClock())
    opened.register(agent_of())
    yield opened
    opened.store.close()


def _agent(shop: Shop) -> Any:
    return shop.store.find_agent("agent_1")


class Kind(NamedTuple):
    """A part, what must be there before it, and how it is seen."""

    made: Callable[[Shop], tuple[parts.Part, ...]]
    seen: Callable[[Shop], Any]
    expected: Any
    before: Callable[[Shop], Any] = lambda _shop: None
    activity_id: str | None = None


def _changed(**fields: Any) -> Callable[[Shop], tuple[parts.Part, ...]]:
    return lambda shop: (AgentChanged(_agent(shop), replace(_agent(shop), **fields)),)


def _state(shop: Shop, approval_id: str = "apr_up") -> Any:
    found = shop.store.find_approval(approval_id)
    return found and (found.state, found.kind, found.requested_by)


_KINDS: dict[str, Kind] = {
    "organisation": Kind(
        lambda _shop: (
            OrganisationAdded("org_2", "second", NOON + 1),
            KeyAdded(owner_key("key_3", "org_2", "qwed_live_c")),
        ),
        lambda shop: (shop.store.find_key("qwed_live_c") is not None, shop.store.first_organisation()),
        (True, ORGANISATION),
    ),
    "agent": Kind(
        lambda _shop: (AgentAdded(agent_of("agent_2")),), lambda s: s.store.find_agent("agent_2"), agent_of("agent_2")
    ),
    "trust": Kind(_changed(trust=Trust.TRUSTED), lambda shop: _agent(shop).trust, Trust.TRUSTED),
    "suspension": Kind(_changed(status=AgentStatus.SUSPENDED), lambda shop: _agent(shop).status, AgentStatus.SUSPENDED),
    "token": Kind(
        _changed(token_prefix="qwed_agent_new", token_digest=b"2" * 32),
        lambda shop: (_agent(shop).token_prefix, _agent(shop).token_digest),
        ("qwed_agent_new", b"2" * 32),
    ),
    "standing": Kind(lambda shop: (AgentStands(_agent(shop)),), _agent, agent_of()),
    "elevation": Kind(
        lambda _shop: (ElevationRequested(ORGANISATION, "agent_1", "act_up", ELEVATION),),
        _state,
        ("pending", "trust_elevation", "key_1"),
        activity_id="act_up",
    ),
    "execution": Kind(
        lambda _shop: (Executed("act_done", False, "sha256:1", 5.0),),
        lambda shop: shop.store.find_activity("agent_1", "act_done")[5:8],
        (0, "sha256:1", 5.0),
        before=lambda shop: shop.settle(_agent(shop), None, Decision.DENIED, activity_id="act_done"),
    ),
    "key": Kind(lambda _shop: (KeyAdded(SECOND),), lambda shop: shop.store.find_key("qwed_live_b"), SECOND),
    "revocation": Kind(
        lambda _shop: (KeyRevoked(owner_key(), 9.0),),
        lambda shop: (shop.store.find_key("qwed_live_a"), [key.revoked_at for key in shop.store.list_keys("org_1")]),
        (None, [9.0, None]),
        before=lambda shop: shop.change(KeyAdded(SECOND)),
    ),
    "halt": Kind(
        lambda _shop: (OrganisationHalted(ORGANISATION, 9.0),), lambda shop: shop.store.halted(ORGANISATION), True
    ),
    "end of a halt": Kind(
        lambda _shop: (OrganisationHalted(ORGANISATION, None),),
        lambda shop: shop.store.halted(ORGANISATION),
        False,
        before=lambda shop: shop.change(OrganisationHalted(ORGANISATION, 9.0)),
    ),
    "tool": Kind(
        lambda _shop: (ToolChanged(ORGANISATION, "t", b"1"),), lambda s: s.store.tool_rows(ORGANISATION), {"t": b"1"}
    ),
    "webhook": Kind(
        lambda _shop: (WebhookChanged(ORGANISATION, HOOK),), lambda shop: shop.store.webhook(ORGANISATION), HOOK
    ),
    "end of a webhook": Kind(
        lambda _shop: (WebhookChanged(ORGANISATION, None),),
        lambda shop: (shop.store.webhook(ORGANISATION), shop.store.undelivered(ORGANISATION)),
        (None, 0),
        before=lambda shop: shop.change(WebhookChanged(ORGANISATION, HOOK), notices=(Notice("n", "pending", "{}"),)),
    ),
}
kinds = pytest.mark.parametrize("kind", _KINDS.values(), ids=_KINDS)


def test_every_kind_of_part_has_a_row_and_a_test() -> None:
    assert set(HANDLING) == set(get_args(parts.Part))
    made = {type(part) for kind in _KINDS.values() for part in _made(kind)}
    assert made | {parts.ApprovalResolved} == set(HANDLING)


def _made(kind: Kind) -> tuple[parts.Part, ...]:
    shop = Shop("memory", Path(), HandClock())
    shop.register(agent_of())
    made = kind.made(shop)
    shop.store.close()
    return made


@kinds
def test_what_is_changed_is_seen_at_once(shop: Shop, kind: Kind) -> None:
    kind.before(shop)
    kind.seen(shop)  # so that what is remembered of before is there to be wrong
    index = shop.store._next(ORGANISATION)
    assert shop.change(*kind.made(shop), activity_id=kind.activity_id) == index
    assert kind.seen(shop) == kind.expected
    assert shop.store._next(ORGANISATION) == index + 1


@kinds
def test_what_is_changed_is_seen_after_a_restart(disk: Shop, kind: Kind) -> None:
    kind.before(disk)
    disk.change(*kind.made(disk), activity_id=kind.activity_id)
    disk.reopened()
    assert kind.seen(disk) == kind.expected


@kinds
def test_what_could_not_be_written_is_not_seen_and_can_be_changed_afterwards(disk: Shop, kind: Kind) -> None:
    kind.before(disk)
    made = kind.made(disk)
    before, index = kind.seen(disk) if kind.activity_id is None else None, disk.store._next(ORGANISATION)
    with _broken(disk), pytest.raises(StoreError):
        disk.change(*made, activity_id=kind.activity_id)
    assert (kind.seen(disk), disk.store._next(ORGANISATION)) == (before, index)
    assert disk.change(*made, activity_id=kind.activity_id) == index
    assert kind.seen(disk) == kind.expected


class _broken:  # noqa: N801 - reads as a word in `with`
    """The database can only be read."""

    def __init__(self, shop: Shop) -> None:
        self._connection = shop.store._writer._connection

    def __enter__(self) -> None:
        self._connection.execute("PRAGMA query_only = ON")

    def __exit__(self, *_: object) -> None:
        self._connection.execute("PRAGMA query_only = OFF")


class _stopped:  # noqa: N801 - reads as a word in `with`
    """Keeps the writer from committing: it waits for the write lock that another connection holds."""

    def __init__(self, shop: Shop) -> None:
        self._other = sqlite3.connect(shop.directory / "qwed.db", isolation_level=None)

    def __enter__(self) -> None:
        self._other.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        self._other.execute("ROLLBACK")
        self._other.close()


# When the world has moved on


def test_a_change_of_an_agent_that_has_changed_is_refused(shop: Shop) -> None:
    before = _agent(shop)
    shop.change(AgentChanged(before, replace(before, trust=Trust.UNTRUSTED)))
    for part in (AgentChanged(before, replace(before, trust=Trust.TRUSTED)), AgentStands(before)):
        assert shop.change(part) is Conflict.STALE
    assert _agent(shop).trust is Trust.UNTRUSTED


def test_an_agent_that_equals_what_was_looked_at_has_not_changed(disk: Shop) -> None:
    before = _agent(disk)
    disk.reopened()
    assert disk.change(AgentStands(before)) == 0
    assert disk.change(AgentChanged(before, replace(before, trust=Trust.TRUSTED))) == 1


def test_a_change_of_an_agent_that_is_not_there_is_refused(shop: Shop) -> None:
    ghost = agent_of("agent_9")
    assert shop.change(AgentStands(ghost)) is Conflict.STALE
    assert shop.change(AgentChanged(ghost, replace(ghost, trust=Trust.TRUSTED))) is Conflict.STALE


@pytest.mark.parametrize("stop", ["agent", "organisation"])
def test_an_agent_that_is_stopped_does_not_stand(shop: Shop, stop: str) -> None:
    agent = _agent(shop)
    suspended = replace(agent, status=AgentStatus.SUSPENDED)
    shop.change(AgentChanged(agent, suspended) if stop == "agent" else OrganisationHalted(ORGANISATION, 1.0))
    assert shop.change(AgentStands(_agent(shop))) is Conflict.STALE


def test_an_agent_has_one_request_for_trust_at_a_time(shop: Shop) -> None:
    def request(name: str) -> Any:
        approval = ELEVATION._replace(approval_id=f"apr_{name}")
        part = ElevationRequested(ORGANISATION, "agent_1", f"act_{name}", approval)
        return shop.change(part, activity_id=f"act_{name}")

    assert request("a") == 0
    assert request("b") is Conflict.REQUESTED
    assert shop.change(shop.resolved(ELEVATION._replace(approval_id="apr_a"), "rejected")) == 1
    assert request("b") == 2
    assert [_state(shop, f"apr_{name}")[0] for name in "ab"] == ["rejected", "pending"]


def test_one_request_at_a_time_is_still_the_rule_after_a_restart(disk: Shop) -> None:
    part = ElevationRequested(ORGANISATION, "agent_1", "act_up", ELEVATION)
    disk.change(part, activity_id="act_up")
    disk.reopened()
    assert disk.change(part) is Conflict.REQUESTED


@pytest.mark.parametrize("first", ["approved", "rejected", "expired"])
@pytest.mark.parametrize("second", ["approved", "rejected", "expired"])
def test_an_approval_is_settled_once(shop: Shop, first: str, second: str) -> None:
    approval = shop.pending(_agent(shop), 1)
    shop.change(shop.resolved(approval, first))
    spent = shop.spent(_agent(shop))
    assert shop.change(shop.resolved(approval, second)) is Conflict.RESOLVED
    assert shop.spent(_agent(shop)) == spent
    assert shop.store.find_approval(approval.approval_id).state == first


def test_an_approval_that_does_not_exist_cannot_be_settled(shop: Shop) -> None:
    assert shop.change(shop.resolved(ELEVATION)) is Conflict.RESOLVED


def test_an_execution_is_told_once(shop: Shop) -> None:
    shop.settle(_agent(shop), None, Decision.DENIED, activity_id="act_told")
    assert shop.change(Executed("act_told", True, None, 1.0)) == 1
    assert shop.change(Executed("act_told", False, "sha256:2", 2.0)) is Conflict.EXECUTED
    assert shop.store.find_activity("agent_1", "act_told").success == 1


def test_the_last_owner_key_stays_and_other_roles_do_not_count(shop: Shop) -> None:
    shop.change(KeyAdded(owner_key("key_4", prefix="qwed_live_d", role="approver")))
    assert shop.change(KeyRevoked(owner_key(), 1.0)) is Conflict.LAST_OWNER
    shop.change(KeyAdded(SECOND))
    assert shop.change(KeyRevoked(owner_key(), 1.0)) == 2
    assert shop.change(KeyRevoked(owner_key(), 2.0)) is Conflict.REVOKED
    assert shop.change(KeyRevoked(SECOND, 2.0)) is Conflict.LAST_OWNER
    assert shop.change(KeyRevoked(owner_key("key_4", prefix="qwed_live_d", role="approver"), 2.0)) == 3


def test_an_owner_of_another_organisation_does_not_count_either(shop: Shop) -> None:
    shop.store.add_organisation("org_2", "second", 1.0, owner_key("key_3", "org_2", "qwed_live_c")).block(30)
    assert shop.change(KeyRevoked(owner_key(), 1.0)) is Conflict.LAST_OWNER


def test_a_clock_that_was_wrong_makes_no_later_organisation_the_first_one(shop: Shop) -> None:
    part = OrganisationAdded("org_2", "second", 1.0)
    shop.change(part, KeyAdded(owner_key("key_3", "org_2", "qwed_live_c")))
    assert shop.store.first_organisation() == ORGANISATION


# All parts or nothing


def test_one_part_that_is_refused_refuses_the_others(shop: Shop) -> None:
    agent, approval = _agent(shop), shop.pending(_agent(shop), 1)
    shop.change(shop.resolved(approval, "rejected"))
    raised = AgentChanged(agent, replace(agent, trust=Trust.TRUSTED))
    index = shop.store._next(ORGANISATION)
    for wanted in ((raised, shop.resolved(approval)), (shop.resolved(approval), raised)):
        assert shop.change(*wanted, ToolChanged(ORGANISATION, "t", b"1")) is Conflict.RESOLVED
    assert _agent(shop) == agent
    assert (shop.store.tool_rows(ORGANISATION), shop.store._next(ORGANISATION)) == ({}, index)


def test_one_part_that_cannot_be_written_takes_the_others_along(disk: Shop) -> None:
    agent, approval = _agent(disk), disk.pending(_agent(disk), 1)
    held = disk.spent(agent)
    wanted = (
        disk.resolved(approval),
        AgentChanged(agent, replace(agent, trust=Trust.TRUSTED)),
        OrganisationHalted(ORGANISATION, 1.0),
        WebhookChanged(ORGANISATION, HOOK),
        KeyAdded(owner_key("key_5")),  # its prefix is taken
    )
    with pytest.raises(StoreError, match="UNIQUE"):
        disk.change(*wanted, notices=(Notice("n", "pending", "{}"),))
    for _ in range(2):
        assert _agent(disk) == agent
        assert disk.spent(agent) == held
        assert disk.store.find_approval(approval.approval_id).state == "pending"
        assert (disk.store.halted(ORGANISATION), disk.store.webhook(ORGANISATION)) == (False, None)
        assert (disk.store.undelivered(ORGANISATION), disk.store._next(ORGANISATION)) == (0, 1)
        disk.reopened()
    assert disk.change(*wanted[:-1]) == 1


# What waits holds its cost; what is settled does not


def test_what_was_held_is_used_when_approved_and_free_when_not(shop: Shop) -> None:
    agent = _agent(shop)
    dear = Charge(cost=70_000, tokens=30, requests=1, high_risk_calls=1)
    approvals = [shop.pending(agent, step, charge=dear) for step in (1, 2, 3)]
    spent = shop.spent(agent)
    assert (spent.pending_cost, spent.pending_tokens, spent.pending_high_risk, spent.open_approvals) == (
        210_000,
        90,
        3,
        3,
    )
    for approval, state in zip(approvals, ("approved", "rejected", "expired"), strict=True):
        shop.change(shop.resolved(approval, state), cost=dear.cost if state == "approved" else 0)
    spent = shop.spent(agent)
    assert (spent.pending_cost, spent.pending_tokens, spent.pending_high_risk, spent.open_approvals) == (0, 0, 0, 0)
    assert (spent.cost_day, spent.tokens_day, spent.high_risk_day, spent.requests_day) == (70_000, 30, 1, 3)
    assert shop.store.tally("agent_1", None, None)[:5] == (3, 0, 0, 0, 3)
    assert shop.store.tally("agent_1", None, None).cost == 70_000


def test_what_is_approved_the_next_day_is_charged_to_that_day(shop: Shop) -> None:
    agent = _agent(shop)
    approval = shop.pending(agent, 1)
    shop.commit(agent, 2)
    shop.hands.turn(DAY)
    shop.change(shop.resolved(approval), cost=CENT.cost)
    spent = shop.spent(agent)
    assert (spent.cost_day, spent.requests_day, spent.pending_cost, spent.open_approvals) == (10_000, 0, 0, 0)


def test_a_decision_and_an_approval_in_one_batch_leave_the_counters_of_both(disk: Shop) -> None:
    agent = _agent(disk)
    approval = disk.pending(agent, 1)
    with _stopped(disk):
        ticket = disk.store.change(disk.change_of(disk.resolved(approval), cost=CENT.cost))
        reservation = disk.reserve(agent, 2)
        disk.store.hold(reservation, CENT, disk.hands.now)
        other = disk.store.settle(disk.settlement(agent, reservation, charge=CENT))  # type: ignore[arg-type]  # held
    assert [ticket.block(30), other.block(30).log_index] == [1, 2]
    spent = disk.spent(agent)
    assert (spent.cost_day, spent.pending_cost, spent.open_approvals) == (20_000, 0, 0)
    disk.reopened()
    assert disk.spent(agent) == spent


def test_no_more_wait_for_one_agent_than_there_may(tmp_path: Path) -> None:
    shop = Shop("file", tmp_path / "data", HandClock(), max_open_approvals=2)
    agent, other = shop.register(agent_of()), shop.register(agent_of("agent_2"))
    first, _second = (shop.pending(agent, step) for step in (1, 2))
    with pytest.raises(AssertionError, match="APPROVALS_FULL"):
        shop.pending(agent, 3, "c2")
    shop.pending(other, 1)
    shop.reopened()
    with pytest.raises(AssertionError, match="APPROVALS_FULL"):
        shop.pending(agent, 3, "c3")
    shop.change(shop.resolved(first, "rejected"))
    shop.pending(agent, 3, "c4")
    shop.store.close()


def test_what_has_run_out_is_looked_for_once_a_second_and_settled_once(shop: Shop) -> None:
    approval = shop.pending(_agent(shop), 1)
    shop.hands.turn(59)
    assert shop.store.expired_approvals(shop.hands.now, 10) == []
    shop.hands.turn(1)
    found = shop.store.expired_approvals(shop.hands.now, 10)
    assert [one.approval_id for one in found] == [approval.approval_id]
    assert list(shop.store.expired_approvals(shop.hands.now + 0.5, 10)) == []
    shop.change(shop.resolved(approval, "expired"))
    shop.hands.turn(1)
    assert list(shop.store.expired_approvals(shop.hands.now, 10)) == []


def test_what_has_run_out_is_found_however_much_it_is(shop: Shop) -> None:
    agent = _agent(shop)
    approvals = [shop.pending(agent, step) for step in range(1, 8)]
    shop.hands.turn(60)
    for _ in range(4):
        for found in shop.store.expired_approvals(shop.hands.now, 2):
            shop.change(shop.resolved(approvals.pop(0), "expired"))
            assert found.state_at(shop.hands.now) == "expired"
    assert (approvals, shop.spent(agent).open_approvals) == ([], 0)


def test_a_clock_that_goes_back_does_not_end_the_look_for_what_has_run_out(shop: Shop) -> None:
    shop.store.expired_approvals(shop.hands.now + 10 * DAY, 10)
    shop.pending(_agent(shop), 1)
    shop.hands.turn(61)
    assert len(shop.store.expired_approvals(shop.hands.now, 10)) == 1


# Races


def _both(*calls: Callable[[], Any]) -> list[Any]:
    """What calls say that begin at the same moment."""
    together = threading.Barrier(len(calls))

    def begin(call: Callable[[], Any]) -> Any:
        together.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [running.result(30) for running in [threads.submit(begin, call) for call in calls]]


@pytest.mark.parametrize("states", [("approved", "approved"), ("approved", "rejected"), ("approved", "expired")])
def test_of_two_threads_that_settle_one_approval_one_wins(shop: Shop, states: tuple[str, str]) -> None:
    agent = _agent(shop)
    for step in range(1, 21):
        approval = shop.pending(agent, step)
        heard = _both(*(partial(shop.change, shop.resolved(approval, state)) for state in states))
        lost = [one is Conflict.RESOLVED for one in heard]
        assert lost.count(True) == 1
        assert shop.store.find_approval(approval.approval_id).state == states[lost.index(False)]
    assert (shop.spent(agent).pending_cost, shop.spent(agent).open_approvals) == (0, 0)


def test_an_approval_whose_settlement_is_still_on_its_way_is_settled(disk: Shop) -> None:
    agent = _agent(disk)
    approval = disk.pending(agent, 1)
    disk.hands.turn(61)
    with _stopped(disk):
        ticket = disk.store.change(disk.change_of(disk.resolved(approval)))
        assert disk.change(disk.resolved(approval, "rejected")) is Conflict.RESOLVED
        assert disk.store.expired_approvals(disk.hands.now, 10) == []
    assert ticket.block(30) == 1
    assert disk.change(disk.resolved(approval, "rejected")) is Conflict.RESOLVED
    assert disk.spent(agent).cost_day == 10_000


def test_what_is_remembered_as_settled_is_forgotten_once_it_is_on_disk(disk: Shop) -> None:
    agent = _agent(disk)
    for step in range(1, 31):
        disk.change(disk.resolved(disk.pending(agent, step)))
    assert len(disk.store._known._taken) <= 1


def test_an_approval_whose_settlement_failed_is_open_again_and_holds_its_cost_once(disk: Shop) -> None:
    agent = _agent(disk)
    approval = disk.pending(agent, 1)
    for state in ("approved", "rejected", "expired"):
        with _broken(disk), pytest.raises(StoreError):
            disk.change(disk.resolved(approval, state))
        spent = disk.spent(agent)
        assert (spent.pending_cost, spent.open_approvals, spent.cost_day) == (10_000, 1, 0)
        assert disk.store.find_approval(approval.approval_id).state == "pending"
    assert disk.change(disk.resolved(approval)) == 1
    spent = disk.spent(agent)
    assert (spent.pending_cost, spent.open_approvals, spent.cost_day) == (0, 0, 10_000)


def test_what_queued_behind_a_change_that_failed_fails_with_it(disk: Shop) -> None:
    agent = _agent(disk)
    approvals = [disk.pending(agent, step) for step in (1, 2, 3)]
    raised = AgentChanged(agent, replace(agent, trust=Trust.TRUSTED))
    with _broken(disk):
        with disk.store._lock:  # what fails waits for this lock, so the next ones queue up behind it
            wanted: list[parts.Part] = [*(disk.resolved(approval) for approval in approvals), raised]
            tickets = [disk.store.change(disk.change_of(part)) for part in wanted]
        for ticket in tickets:
            with pytest.raises(StoreError):
                ticket.block(30)
    assert _agent(disk) == agent
    assert disk.spent(agent).pending_cost == 30_000
    assert [disk.change(disk.resolved(approval)) for approval in approvals] == [3, 4, 5]


def test_of_an_approval_and_a_suspension_that_race_the_later_one_sees_the_first(shop: Shop) -> None:
    for step in range(1, 21):
        agent = _agent(shop)
        approval = shop.pending(agent, step)
        suspended = replace(agent, status=AgentStatus.SUSPENDED)
        heard = _both(
            partial(shop.change, shop.resolved(approval), AgentStands(agent)),
            partial(shop.change, AgentChanged(agent, suspended)),
        )
        state = shop.store.find_approval(approval.approval_id).state
        assert (heard[0], state) == (Conflict.STALE, "pending") or (state == "approved" and heard[0] < heard[1])
        if state == "pending":
            shop.change(shop.resolved(approval, "rejected"))
        shop.change(AgentChanged(suspended, agent))


def test_of_two_owners_who_revoke_each_other_at_once_one_stays(shop: Shop) -> None:
    keys = [owner_key(), SECOND]
    shop.change(KeyAdded(SECOND))
    heard = _both(*(partial(shop.change, KeyRevoked(key, 5.0)) for key in keys))
    assert [one is Conflict.LAST_OWNER for one in heard].count(True) == 1
    assert [key.revoked_at for key in shop.store.list_keys(ORGANISATION)].count(None) == 1


def test_an_owner_is_the_last_one_while_the_revocation_of_the_other_is_on_its_way(disk: Shop) -> None:
    disk.change(KeyAdded(SECOND))
    with _stopped(disk):
        ticket = disk.store.change(disk.change_of(KeyRevoked(SECOND, 5.0)))
        assert disk.change(KeyRevoked(owner_key(), 5.0)) is Conflict.LAST_OWNER
        assert disk.store.find_key("qwed_live_b") is None, "revoked from the moment it is submitted"
    assert ticket.block(30) == 1


def test_a_key_on_its_way_opens_nothing_until_it_is_kept(disk: Shop) -> None:
    with _stopped(disk):
        ticket = disk.store.change(disk.change_of(KeyAdded(SECOND)))
        assert disk.store.find_key("qwed_live_b") is None
        assert disk.change(KeyRevoked(owner_key(), 5.0)) is Conflict.LAST_OWNER
    ticket.block(30)
    assert disk.store.find_key("qwed_live_b") == SECOND


def test_a_revocation_that_failed_leaves_the_key_open(disk: Shop) -> None:
    disk.change(KeyAdded(SECOND))
    with _broken(disk), pytest.raises(StoreError):
        disk.change(KeyRevoked(SECOND, 5.0))
    assert disk.store.find_key("qwed_live_b") == SECOND


def test_of_many_threads_that_change_one_agent_each_starts_from_where_the_one_before_it_ended(shop: Shop) -> None:
    first = _agent(shop)
    change = partial(shop.change, AgentChanged(first, replace(first, trust=Trust.TRUSTED)))
    heard = _both(*[change] * 8)
    assert [one is Conflict.STALE for one in heard].count(False) == 1


def test_log_indexes_of_decisions_and_changes_that_race_have_no_gap(shop: Shop) -> None:
    agent = _agent(shop)

    def decide() -> None:
        for step in range(1, 31):
            shop.commit(agent, step)

    def change() -> None:
        for number in range(30):
            shop.change(ToolChanged(ORGANISATION, f"t{number}", b"1"))

    _both(decide, change)
    indexes = shop.store._all("SELECT log_index FROM activities WHERE organisation_id = 'org_1' ORDER BY sequence", ())
    assert [index for (index,) in indexes] == list(range(60))
