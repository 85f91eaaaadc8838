"""What happens around decisions: each part refused when the world has moved on, or kept whole and seen at once."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from qwed.store import parts
from qwed.store.agent import AgentStatus
from qwed.store.boundary import Entry, ListName
from qwed.store.changes import HANDLING
from qwed.store.parts import (
    AgentAdded,
    AgentChanged,
    AgentStands,
    Approval,
    AttestationRevoked,
    Conflict,
    ElevationRequested,
    Executed,
    KeyAdded,
    KeyRevoked,
    ListChanged,
    OrganisationAdded,
    OrganisationHalted,
    OrganisationStands,
    SubjectErased,
    ToolChanged,
    Webhook,
    WebhookChanged,
)
from qwed.store.protocol import Notice, StoreError, Subject
from qwed.words import Decision, Trust
from tests.support.clock import NOON, HandClock
from tests.support.stores import ORGANISATION, Shop, agent_of, owner_key

SECOND = owner_key("key_2", prefix="qwed_live_b")
HOOK = Webhook(ORGANISATION, "https://example.com/", ("pending",), "s", 1.0)
REVOKED = AttestationRevoked("att_1", ORGANISATION, "act_revoked", 9.0)
SOMEBODY = Subject("sub_1", ORGANISATION, "keyed name", b"wrapped", 1.0)
EVE = Entry(ListName.BLOCKS, "eve")
ELEVATION = Approval("apr_up", 0, 0, 0, 1.0, 2.0, "key_1", "trust_elevation", '{"to_level":2}')


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
    "an entry put on a list": Kind(
        lambda _shop: (ListChanged(ORGANISATION, EVE, there=True),),
        lambda shop: shop.store.boundary(ORGANISATION).entries,
        {EVE},
    ),
    "an entry taken off a list": Kind(
        lambda _shop: (ListChanged(ORGANISATION, EVE, there=False),),
        lambda shop: shop.store.boundary(ORGANISATION).entries,
        frozenset(),
        before=lambda shop: shop.change(ListChanged(ORGANISATION, EVE, there=True)),
    ),
    "a message between two that are not stopped": Kind(
        lambda _shop: (OrganisationStands(ORGANISATION, "eve", "bob"),),
        lambda shop: shop.store.halted(ORGANISATION),
        False,
    ),
    "end of an attestation": Kind(
        lambda _shop: (REVOKED,), lambda shop: shop.store.revoked("att_1"), REVOKED, activity_id="act_revoked"
    ),
    "erasure": Kind(
        lambda _shop: (SubjectErased(ORGANISATION, "keyed name", 9.0, "user_1"),),
        lambda shop: (shop.store.find_subject(ORGANISATION, "keyed name"), shop.store.subject("sub_1")),
        (None, SOMEBODY._replace(key=None, erased_at=9.0)),
        before=lambda shop: shop.store.add_subject(SOMEBODY).block(30),
    ),
    "webhook": Kind(
        lambda _shop: (WebhookChanged(ORGANISATION, HOOK),), lambda shop: shop.store.webhook(ORGANISATION), HOOK
    ),
    "end of a webhook": Kind(
        lambda _shop: (WebhookChanged(ORGANISATION, None),),
        lambda shop: (
            shop.store.webhook(ORGANISATION) is None,
            shop.store.webhook_record(ORGANISATION),
            shop.store.due_deliveries(shop.hands.now, 10),
        ),
        (True, None, []),
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
    index = shop.next_index(ORGANISATION)
    assert shop.change(*kind.made(shop), activity_id=kind.activity_id) == index
    assert kind.seen(shop) == kind.expected
    assert shop.next_index(ORGANISATION) == index + 1


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
    before, index = kind.seen(disk) if kind.activity_id is None else None, disk.next_index(ORGANISATION)
    with disk.broken(), pytest.raises(StoreError):
        disk.change(*made, activity_id=kind.activity_id)
    assert (kind.seen(disk), disk.next_index(ORGANISATION)) == (before, index)
    assert disk.change(*made, activity_id=kind.activity_id) == index
    assert kind.seen(disk) == kind.expected


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


def test_an_attestation_is_revoked_once(shop: Shop) -> None:
    assert shop.change(REVOKED) == 0
    assert shop.change(REVOKED._replace(activity_id="act_later", at=10.0)) is Conflict.REVOKED
    assert shop.store.revoked("att_1") == REVOKED


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
    index = shop.next_index(ORGANISATION)
    for wanted in ((raised, shop.resolved(approval)), (shop.resolved(approval), raised)):
        assert shop.change(*wanted, ToolChanged(ORGANISATION, "t", b"1")) is Conflict.RESOLVED
    assert _agent(shop) == agent
    assert (shop.store.tool_rows(ORGANISATION), shop.next_index(ORGANISATION)) == ({}, index)


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
    with pytest.raises(StoreError, match=r"(?i)unique"):
        disk.change(*wanted, notices=(Notice("n", "pending", "{}"),))
    for _ in range(2):
        assert _agent(disk) == agent
        assert disk.spent(agent) == held
        assert disk.store.find_approval(approval.approval_id).state == "pending"
        assert (disk.store.halted(ORGANISATION), disk.store.webhook(ORGANISATION)) == (False, None)
        assert disk.store._all("SELECT * FROM outbox", ()) == []
        assert disk.next_index(ORGANISATION) == 1
        disk.reopened()
    assert disk.change(*wanted[:-1]) == 1
