"""Each part of a change is refused when the state has changed, or written whole and visible at once."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from qwed.domain import change_parts
from qwed.domain.access_lists import ListEntry, ListName
from qwed.domain.agent import AgentStatus
from qwed.domain.change_parts import (
    AgentAdded,
    AgentChanged,
    AgentUnchanged,
    ApprovalRequest,
    AttestationRevoked,
    Conflict,
    ElevationRequested,
    ExecutionLogged,
    KeyAdded,
    KeyChanged,
    KeyRevoked,
    ListChanged,
    OrganisationActive,
    OrganisationAdded,
    OrganisationHalted,
    PolicySetChanged,
    PolicySetUnchanged,
    SubjectErased,
    ToolChanged,
    ToolRemoved,
    Webhook,
    WebhookChanged,
)
from qwed.domain.policy_set import NO_POLICIES, PolicyDocument
from qwed.domain.write_set import Notice
from qwed.model import Decision, Trust
from qwed.store.change_handlers import PART_HANDLERS
from qwed.store.protocol import DataSubject, StoreError
from tests.support.manual_clock import NOON, ManualClock
from tests.support.stores import ORGANISATION, StoreFixture, agent_of, owner_key

SECOND = owner_key("key_2", prefix="qwed_live_b")
POLICIES = NO_POLICIES.with_documents([PolicyDocument("refunds", "policy: refunds\n")])
HOOK = Webhook(ORGANISATION, "https://example.com/", ("pending",), "s", 1.0)
REVOKED = AttestationRevoked("att_1", ORGANISATION, "act_revoked", 9.0)
SOMEBODY = DataSubject("sub_1", ORGANISATION, "keyed name", b"wrapped", 1.0)
EVE = ListEntry(ListName.BLOCKS, "eve")
ELEVATION = ApprovalRequest("apr_up", 0, 0, 0, 1.0, 2.0, "key_1", "trust_elevation", '{"to_level":2}')


def _agent(store_fixture: StoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


class Kind(NamedTuple):
    """Part, its preconditions, and how its effect is read."""

    made: Callable[[StoreFixture], tuple[change_parts.ChangePart, ...]]
    seen: Callable[[StoreFixture], Any]
    expected: Any
    before: Callable[[StoreFixture], Any] = lambda _shop: None
    activity_id: str | None = None


def _changed(**fields: Any) -> Callable[[StoreFixture], tuple[change_parts.ChangePart, ...]]:
    return lambda store_fixture: (AgentChanged(_agent(store_fixture), replace(_agent(store_fixture), **fields)),)


def _state(store_fixture: StoreFixture, approval_id: str = "apr_up") -> Any:
    approval = store_fixture.store.find_approval(approval_id)
    return approval and (approval.state, approval.kind, approval.requested_by)


_KINDS: dict[str, Kind] = {
    "organisation": Kind(
        lambda _shop: (
            OrganisationAdded("org_2", "second", NOON + 1),
            KeyAdded(owner_key("key_3", "org_2", "qwed_live_c")),
        ),
        lambda store_fixture: (
            store_fixture.store.find_key("qwed_live_c") is not None,
            store_fixture.store.first_organisation(),
        ),
        (True, ORGANISATION),
    ),
    "agent": Kind(
        lambda _shop: (AgentAdded(agent_of("agent_2")),), lambda s: s.store.find_agent("agent_2"), agent_of("agent_2")
    ),
    "trust": Kind(_changed(trust=Trust.TRUSTED), lambda store_fixture: _agent(store_fixture).trust, Trust.TRUSTED),
    "suspension": Kind(
        _changed(status=AgentStatus.SUSPENDED),
        lambda store_fixture: _agent(store_fixture).status,
        AgentStatus.SUSPENDED,
    ),
    "token": Kind(
        _changed(token_prefix="qwed_agent_new", token_digest=b"2" * 32),
        lambda store_fixture: (_agent(store_fixture).token_prefix, _agent(store_fixture).token_digest),
        ("qwed_agent_new", b"2" * 32),
    ),
    "standing": Kind(lambda store_fixture: (AgentUnchanged(_agent(store_fixture)),), _agent, agent_of()),
    "elevation": Kind(
        lambda _shop: (ElevationRequested(ORGANISATION, "agent_1", "act_up", ELEVATION),),
        _state,
        ("pending", "trust_elevation", "key_1"),
        activity_id="act_up",
    ),
    "execution": Kind(
        lambda _shop: (ExecutionLogged("act_done", False, "sha256:1", 5.0),),
        lambda store_fixture: store_fixture.store.find_activity("agent_1", "act_done")[5:8],
        (0, "sha256:1", 5.0),
        before=lambda store_fixture: store_fixture.settle(
            _agent(store_fixture), None, Decision.DENIED, activity_id="act_done"
        ),
    ),
    "key": Kind(
        lambda _shop: (KeyAdded(SECOND),), lambda store_fixture: store_fixture.store.find_key("qwed_live_b"), SECOND
    ),
    "revocation": Kind(
        lambda _shop: (KeyRevoked(owner_key(), 9.0),),
        lambda store_fixture: (
            store_fixture.store.find_key("qwed_live_a"),
            [key.revoked_at for key in store_fixture.store.list_keys("org_1")],
        ),
        (None, [9.0, None]),
        before=lambda store_fixture: store_fixture.change(KeyAdded(SECOND)),
    ),
    "halt": Kind(
        lambda _shop: (OrganisationHalted(ORGANISATION, 9.0),),
        lambda store_fixture: store_fixture.store.halted(ORGANISATION),
        True,
    ),
    "end of a halt": Kind(
        lambda _shop: (OrganisationHalted(ORGANISATION, None),),
        lambda store_fixture: store_fixture.store.halted(ORGANISATION),
        False,
        before=lambda store_fixture: store_fixture.change(OrganisationHalted(ORGANISATION, 9.0)),
    ),
    "tool": Kind(
        lambda _shop: (ToolChanged(ORGANISATION, "t", b"1"),), lambda s: s.store.tool_rows(ORGANISATION), {"t": b"1"}
    ),
    "groups of a key": Kind(
        lambda _shop: (KeyChanged(SECOND, replace(SECOND, approver_groups=("finance",))),),
        lambda s: [key.approver_groups for key in s.store.list_keys(ORGANISATION)],
        [(), ("finance",)],
        before=lambda store_fixture: store_fixture.change(KeyAdded(SECOND)),
    ),
    "policies": Kind(
        lambda _shop: (PolicySetChanged(ORGANISATION, NO_POLICIES, POLICIES, 9.0, "key_1"),),
        lambda s: s.store.policies(ORGANISATION),
        POLICIES,
    ),
    "policies that nobody has changed": Kind(
        lambda _shop: (PolicySetUnchanged(ORGANISATION, NO_POLICIES),),
        lambda s: s.store.policies(ORGANISATION),
        NO_POLICIES,
    ),
    "a removed tool": Kind(
        lambda _shop: (ToolRemoved(ORGANISATION, "t"),),
        lambda s: s.store.tool_rows(ORGANISATION),
        {},
        before=lambda store_fixture: store_fixture.change(ToolChanged(ORGANISATION, "t", b"1")),
    ),
    "an edited agent": Kind(
        _changed(name="renamed", labels={"team": "support"}, max_conversation_steps=7, description=None),
        lambda s: (_agent(s).name, _agent(s).labels, _agent(s).max_conversation_steps, _agent(s).description),
        ("renamed", {"team": "support"}, 7, None),
    ),
    "a retired agent": Kind(
        _changed(status=AgentStatus.RETIRED, retired_at=2.0),
        lambda store_fixture: (_agent(store_fixture).status, _agent(store_fixture).retired_at),
        (AgentStatus.RETIRED, 2.0),
    ),
    "an entry put on a list": Kind(
        lambda _shop: (ListChanged(ORGANISATION, EVE, present=True),),
        lambda store_fixture: store_fixture.store.access_lists(ORGANISATION).entries,
        {EVE},
    ),
    "an entry taken off a list": Kind(
        lambda _shop: (ListChanged(ORGANISATION, EVE, present=False),),
        lambda store_fixture: store_fixture.store.access_lists(ORGANISATION).entries,
        frozenset(),
        before=lambda store_fixture: store_fixture.change(ListChanged(ORGANISATION, EVE, present=True)),
    ),
    "a message between two that are not stopped": Kind(
        lambda _shop: (OrganisationActive(ORGANISATION, "eve", "bob"),),
        lambda store_fixture: store_fixture.store.halted(ORGANISATION),
        False,
    ),
    "end of an attestation": Kind(
        lambda _shop: (REVOKED,),
        lambda store_fixture: store_fixture.store.revoked("att_1"),
        REVOKED,
        activity_id="act_revoked",
    ),
    "erasure": Kind(
        lambda _shop: (SubjectErased(ORGANISATION, "keyed name", 9.0, "user_1"),),
        lambda store_fixture: (
            store_fixture.store.find_subject(ORGANISATION, "keyed name"),
            store_fixture.store.subject("sub_1"),
        ),
        (None, SOMEBODY._replace(key=None, erased_at=9.0)),
        before=lambda store_fixture: store_fixture.store.add_subject(SOMEBODY).wait_result(30),
    ),
    "webhook": Kind(
        lambda _shop: (WebhookChanged(ORGANISATION, HOOK),),
        lambda store_fixture: store_fixture.store.webhook(ORGANISATION),
        HOOK,
    ),
    "end of a webhook": Kind(
        lambda _shop: (WebhookChanged(ORGANISATION, None),),
        lambda store_fixture: (
            store_fixture.store.webhook(ORGANISATION) is None,
            store_fixture.store.webhook_record(ORGANISATION),
            store_fixture.store.due_deliveries(store_fixture.manual_clock.now, 10),
        ),
        (True, None, []),
        before=lambda store_fixture: store_fixture.change(
            WebhookChanged(ORGANISATION, HOOK), notices=(Notice("n", "pending", "{}"),)
        ),
    ),
}
kinds = pytest.mark.parametrize("kind", _KINDS.values(), ids=_KINDS)


def test_every_kind_of_part_has_a_row_and_a_test() -> None:
    assert set(PART_HANDLERS) == set(get_args(change_parts.ChangePart))
    kinds = {type(part) for kind in _KINDS.values() for part in _made(kind)}
    elsewhere = {change_parts.ApprovalResolved, change_parts.GroupApproved}
    assert kinds | elsewhere == set(PART_HANDLERS)


def _made(kind: Kind) -> tuple[change_parts.ChangePart, ...]:
    store_fixture = StoreFixture("memory", Path(), ManualClock())
    store_fixture.register(agent_of())
    part = kind.made(store_fixture)
    store_fixture.store.close()
    return part


@kinds
def test_what_is_changed_is_seen_at_once(store_fixture: StoreFixture, kind: Kind) -> None:
    kind.before(store_fixture)
    kind.seen(store_fixture)  # so that a stale value is cached
    index = store_fixture.next_index(ORGANISATION)
    assert store_fixture.change(*kind.made(store_fixture), activity_id=kind.activity_id) == index
    assert kind.seen(store_fixture) == kind.expected
    assert store_fixture.next_index(ORGANISATION) == index + 1


@kinds
def test_what_is_changed_is_seen_after_a_restart(disk: StoreFixture, kind: Kind) -> None:
    kind.before(disk)
    disk.change(*kind.made(disk), activity_id=kind.activity_id)
    disk.reopened()
    assert kind.seen(disk) == kind.expected


@kinds
def test_what_could_not_be_written_is_not_seen_and_can_be_changed_afterwards(disk: StoreFixture, kind: Kind) -> None:
    kind.before(disk)
    part = kind.made(disk)
    before, index = kind.seen(disk) if kind.activity_id is None else None, disk.next_index(ORGANISATION)
    with disk.broken(), pytest.raises(StoreError):
        disk.change(*part, activity_id=kind.activity_id)
    assert (kind.seen(disk), disk.next_index(ORGANISATION)) == (before, index)
    assert disk.change(*part, activity_id=kind.activity_id) == index
    assert kind.seen(disk) == kind.expected


# Conflicts


def test_a_change_of_an_agent_that_has_changed_is_refused(store_fixture: StoreFixture) -> None:
    before = _agent(store_fixture)
    store_fixture.change(AgentChanged(before, replace(before, trust=Trust.UNTRUSTED)))
    for part in (AgentChanged(before, replace(before, trust=Trust.TRUSTED)), AgentUnchanged(before)):
        assert store_fixture.change(part) is Conflict.STALE
    assert _agent(store_fixture).trust is Trust.UNTRUSTED


def test_an_agent_that_equals_what_was_looked_at_has_not_changed(disk: StoreFixture) -> None:
    before = _agent(disk)
    disk.reopened()
    assert disk.change(AgentUnchanged(before)) == 0
    assert disk.change(AgentChanged(before, replace(before, trust=Trust.TRUSTED))) == 1


def test_a_change_of_an_agent_that_is_not_there_is_refused(store_fixture: StoreFixture) -> None:
    ghost = agent_of("agent_9")
    assert store_fixture.change(AgentUnchanged(ghost)) is Conflict.STALE
    assert store_fixture.change(AgentChanged(ghost, replace(ghost, trust=Trust.TRUSTED))) is Conflict.STALE


def test_a_name_is_given_once_however_it_is_spelled(store_fixture: StoreFixture) -> None:
    twin = replace(agent_of("agent_2"), name="TESTED")
    assert store_fixture.change(AgentAdded(twin)) is Conflict.NAME_IN_USE
    store_fixture.change(AgentAdded(agent_of("agent_2")))
    other = store_fixture.store.find_agent("agent_2")
    assert store_fixture.change(AgentChanged(other, replace(other, name="Tested"))) is Conflict.NAME_IN_USE
    agent = _agent(store_fixture)
    store_fixture.change(AgentChanged(agent, replace(agent, name="renamed")))
    assert isinstance(store_fixture.change(AgentChanged(other, replace(other, name="Tested"))), int)


def test_two_tools_do_not_differ_by_case_only(store_fixture: StoreFixture) -> None:
    store_fixture.change(ToolChanged(ORGANISATION, "Task", b"1"))
    assert store_fixture.change(ToolChanged(ORGANISATION, "task", b"2")) is Conflict.SPELLING_IN_USE
    assert store_fixture.change(ToolRemoved(ORGANISATION, "task")) is Conflict.STALE
    assert isinstance(store_fixture.change(ToolRemoved(ORGANISATION, "Task")), int)


@pytest.mark.parametrize("stop", ["agent", "organisation"])
def test_an_agent_that_is_stopped_does_not_stand(store_fixture: StoreFixture, stop: str) -> None:
    agent = _agent(store_fixture)
    suspended = replace(agent, status=AgentStatus.SUSPENDED)
    store_fixture.change(AgentChanged(agent, suspended) if stop == "agent" else OrganisationHalted(ORGANISATION, 1.0))
    assert store_fixture.change(AgentUnchanged(_agent(store_fixture))) is Conflict.STALE


def test_an_agent_has_one_request_for_trust_at_a_time(store_fixture: StoreFixture) -> None:
    def request(name: str) -> Any:
        approval = ELEVATION._replace(approval_id=f"apr_{name}")
        part = ElevationRequested(ORGANISATION, "agent_1", f"act_{name}", approval)
        return store_fixture.change(part, activity_id=f"act_{name}")

    assert request("a") == 0
    assert request("b") is Conflict.REQUESTED
    assert store_fixture.change(store_fixture.resolved(ELEVATION._replace(approval_id="apr_a"), "rejected")) == 1
    assert request("b") == 2
    assert [_state(store_fixture, f"apr_{name}")[0] for name in "ab"] == ["rejected", "pending"]


def test_one_request_at_a_time_is_still_the_rule_after_a_restart(disk: StoreFixture) -> None:
    part = ElevationRequested(ORGANISATION, "agent_1", "act_up", ELEVATION)
    disk.change(part, activity_id="act_up")
    disk.reopened()
    assert disk.change(part) is Conflict.REQUESTED


@pytest.mark.parametrize("first", ["approved", "rejected", "expired"])
@pytest.mark.parametrize("second", ["approved", "rejected", "expired"])
def test_an_approval_is_settled_once(store_fixture: StoreFixture, first: str, second: str) -> None:
    approval = store_fixture.pending(_agent(store_fixture), 1)
    store_fixture.change(store_fixture.resolved(approval, first))
    usage = store_fixture.spent(_agent(store_fixture))
    assert store_fixture.change(store_fixture.resolved(approval, second)) is Conflict.RESOLVED
    assert store_fixture.spent(_agent(store_fixture)) == usage
    assert store_fixture.store.find_approval(approval.approval_id).state == first


def test_an_approval_that_does_not_exist_cannot_be_settled(store_fixture: StoreFixture) -> None:
    assert store_fixture.change(store_fixture.resolved(ELEVATION)) is Conflict.RESOLVED


def test_an_execution_is_told_once(store_fixture: StoreFixture) -> None:
    store_fixture.settle(_agent(store_fixture), None, Decision.DENIED, activity_id="act_told")
    assert store_fixture.change(ExecutionLogged("act_told", True, None, 1.0)) == 1
    assert store_fixture.change(ExecutionLogged("act_told", False, "sha256:2", 2.0)) is Conflict.EXECUTED
    assert store_fixture.store.find_activity("agent_1", "act_told").success == 1


def test_an_attestation_is_revoked_once(store_fixture: StoreFixture) -> None:
    assert store_fixture.change(REVOKED) == 0
    assert store_fixture.change(REVOKED._replace(activity_id="act_later", at=10.0)) is Conflict.REVOKED
    assert store_fixture.store.revoked("att_1") == REVOKED


def test_the_last_owner_key_stays_and_other_roles_do_not_count(store_fixture: StoreFixture) -> None:
    store_fixture.change(KeyAdded(owner_key("key_4", prefix="qwed_live_d", role="approver")))
    assert store_fixture.change(KeyRevoked(owner_key(), 1.0)) is Conflict.LAST_OWNER
    store_fixture.change(KeyAdded(SECOND))
    assert store_fixture.change(KeyRevoked(owner_key(), 1.0)) == 2
    assert store_fixture.change(KeyRevoked(owner_key(), 2.0)) is Conflict.REVOKED
    assert store_fixture.change(KeyRevoked(SECOND, 2.0)) is Conflict.LAST_OWNER
    assert store_fixture.change(KeyRevoked(owner_key("key_4", prefix="qwed_live_d", role="approver"), 2.0)) == 3


def test_an_owner_of_another_organisation_does_not_count_either(store_fixture: StoreFixture) -> None:
    store_fixture.store.add_organisation(
        "org_2", "second", 1.0, owner_key("key_3", "org_2", "qwed_live_c")
    ).wait_result(30)
    assert store_fixture.change(KeyRevoked(owner_key(), 1.0)) is Conflict.LAST_OWNER


def test_a_clock_that_was_wrong_makes_no_later_organisation_the_first_one(store_fixture: StoreFixture) -> None:
    part = OrganisationAdded("org_2", "second", 1.0)
    store_fixture.change(part, KeyAdded(owner_key("key_3", "org_2", "qwed_live_c")))
    assert store_fixture.store.first_organisation() == ORGANISATION


# All parts or nothing


def test_one_part_that_is_refused_refuses_the_others(store_fixture: StoreFixture) -> None:
    agent, approval = _agent(store_fixture), store_fixture.pending(_agent(store_fixture), 1)
    store_fixture.change(store_fixture.resolved(approval, "rejected"))
    raised = AgentChanged(agent, replace(agent, trust=Trust.TRUSTED))
    index = store_fixture.next_index(ORGANISATION)
    for parts in ((raised, store_fixture.resolved(approval)), (store_fixture.resolved(approval), raised)):
        assert store_fixture.change(*parts, ToolChanged(ORGANISATION, "t", b"1")) is Conflict.RESOLVED
    assert _agent(store_fixture) == agent
    assert (store_fixture.store.tool_rows(ORGANISATION), store_fixture.next_index(ORGANISATION)) == ({}, index)


def test_one_part_that_cannot_be_written_takes_the_others_along(disk: StoreFixture) -> None:
    agent, approval = _agent(disk), disk.pending(_agent(disk), 1)
    usage = disk.spent(agent)
    parts = (
        disk.resolved(approval),
        AgentChanged(agent, replace(agent, trust=Trust.TRUSTED)),
        OrganisationHalted(ORGANISATION, 1.0),
        WebhookChanged(ORGANISATION, HOOK),
        KeyAdded(owner_key("key_5")),  # its prefix is taken
    )
    with pytest.raises(StoreError, match=r"(?i)unique"):
        disk.change(*parts, notices=(Notice("n", "pending", "{}"),))
    for _ in range(2):
        assert _agent(disk) == agent
        assert disk.spent(agent) == usage
        assert disk.store.find_approval(approval.approval_id).state == "pending"
        assert (disk.store.halted(ORGANISATION), disk.store.webhook(ORGANISATION)) == (False, None)
        assert disk.rows("SELECT * FROM outbox") == []
        assert disk.next_index(ORGANISATION) == 1
        disk.reopened()
    assert disk.change(*parts[:-1]) == 1
