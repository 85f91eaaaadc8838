"""Policy sets: every version is kept, one of two changes wins, and no decision commits under a replaced set."""

from typing import Any

import pytest

from qwed.domain.change_parts import Conflict, PolicySetChanged, PolicySetUnchanged
from qwed.domain.policy_set import NO_POLICIES, DocumentChanges, PolicyDocument, PolicySet, digest_of
from qwed.domain.write_set import Committed
from qwed.model import Decision
from tests.support.stores import ORGANISATION, StoreFixture

REFUNDS, MAIL = PolicyDocument("refunds", "policy: refunds\n"), PolicyDocument("mail", "policy: mail\n")
FIRST = NO_POLICIES.with_documents([REFUNDS])
SECOND = FIRST.with_documents([REFUNDS, MAIL])


def _change(before: PolicySet, after: PolicySet) -> PolicySetChanged:
    return PolicySetChanged(ORGANISATION, before, after, 9.0, "key_1")


def _agent(store_fixture: StoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


def test_an_organisation_without_policies_has_the_empty_set(store_fixture: StoreFixture) -> None:
    assert store_fixture.store.policies(ORGANISATION) == NO_POLICIES
    assert store_fixture.load().policies == NO_POLICIES
    assert NO_POLICIES.is_empty


def test_a_set_is_in_force_from_the_next_load(store_fixture: StoreFixture) -> None:
    store_fixture.change(_change(NO_POLICIES, FIRST))
    assert store_fixture.load().policies == FIRST
    assert not FIRST.is_empty


def test_every_version_can_be_read_again(store_fixture: StoreFixture) -> None:
    store_fixture.change(_change(NO_POLICIES, FIRST))
    store_fixture.change(_change(FIRST, SECOND))
    stored = [store_fixture.store.policy_set(ORGANISATION, version) for version in range(4)]
    assert stored == [NO_POLICIES, FIRST, SECOND, None]
    assert store_fixture.store.policy_set("org_other", 1) is None
    assert store_fixture.store.policy_set(ORGANISATION, 2**70) is None


def test_the_list_of_versions_says_what_each_of_them_changed(store_fixture: StoreFixture) -> None:
    store_fixture.change(_change(NO_POLICIES, FIRST))
    store_fixture.change(_change(FIRST, SECOND))
    third = SECOND.with_documents([PolicyDocument("mail", "policy: mail # stricter\n")])
    store_fixture.change(_change(SECOND, third))
    versions = store_fixture.store.policy_versions(ORGANISATION, 10, None)
    assert [(row.version, row.digest, row.changes) for row in versions] == [
        (3, third.digest, DocumentChanges((), ("mail",), ("refunds",))),
        (2, SECOND.digest, DocumentChanges(("mail",), (), ())),
        (1, FIRST.digest, DocumentChanges(("refunds",), (), ())),
    ]
    assert {(row.changed_at, row.changed_by) for row in versions} == {(9.0, "key_1")}
    assert [row.version for row in store_fixture.store.policy_versions(ORGANISATION, 1, 3)] == [2]


def test_of_two_changes_of_one_version_the_second_is_refused(store_fixture: StoreFixture) -> None:
    store_fixture.change(_change(NO_POLICIES, FIRST))
    other = NO_POLICIES.with_documents([MAIL])
    assert store_fixture.change(_change(NO_POLICIES, other)) is Conflict.STALE
    assert store_fixture.store.policies(ORGANISATION) == FIRST


def test_a_change_that_needs_the_set_unchanged_is_refused_once_it_changed(store_fixture: StoreFixture) -> None:
    assert isinstance(store_fixture.change(PolicySetUnchanged(ORGANISATION, NO_POLICIES)), int)
    store_fixture.change(_change(NO_POLICIES, FIRST))
    assert store_fixture.change(PolicySetUnchanged(ORGANISATION, NO_POLICIES)) is Conflict.STALE


@pytest.mark.parametrize("decision", [Decision.APPROVED, Decision.DENIED])
def test_no_decision_commits_under_a_set_that_was_replaced(store_fixture: StoreFixture, decision: Decision) -> None:
    agent, reservation = _agent(store_fixture), store_fixture.reserve(_agent(store_fixture), 1)
    store_fixture.change(_change(NO_POLICIES, FIRST))
    assert store_fixture.settle(agent, reservation, decision, policies=NO_POLICIES) is Conflict.STALE
    assert isinstance(store_fixture.settle(agent, reservation, decision, policies=FIRST), Committed)


def test_a_decision_that_evaluated_no_policies_does_not_depend_on_them(store_fixture: StoreFixture) -> None:
    agent, reservation = _agent(store_fixture), store_fixture.reserve(_agent(store_fixture), 1)
    store_fixture.change(_change(NO_POLICIES, FIRST))
    assert isinstance(store_fixture.settle(agent, reservation, Decision.DENIED), Committed)


def test_a_restart_changes_no_set(disk: StoreFixture) -> None:
    disk.change(_change(NO_POLICIES, FIRST))
    assert disk.reopened().store.policies(ORGANISATION) == FIRST


DAMAGE = {
    "no JSON": ("UPDATE policy_sets SET documents = 'x'", "its documents cannot be read"),
    "another type": ("UPDATE policy_sets SET documents = '[1]'", "its documents cannot be read"),
    "another text": ('UPDATE policy_sets SET documents = \'[["refunds",""]]\'', "do not have the stored digest"),
    "another digest": ("UPDATE policy_sets SET digest = 'x'", "do not have the stored digest `x`"),
}


@pytest.mark.parametrize(("statement", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_set_that_was_damaged_is_read_as_such(disk: StoreFixture, statement: str, message: str) -> None:
    disk.change(_change(NO_POLICIES, FIRST))
    disk.write(statement)
    read = disk.reopened().store.policies(ORGANISATION)
    assert (read.version, read.documents, read.is_empty) == (1, (), False)
    assert read.damage.startswith("version 1 is damaged")
    assert message in read.damage


def test_a_damaged_set_can_be_replaced(disk: StoreFixture) -> None:
    disk.change(_change(NO_POLICIES, FIRST))
    disk.write("UPDATE policy_sets SET documents = 'x'")
    damaged = disk.reopened().store.policies(ORGANISATION)
    assert isinstance(disk.change(_change(damaged, damaged.with_documents([REFUNDS]))), int)
    assert disk.store.policies(ORGANISATION).documents == (REFUNDS,)


def test_the_digest_does_not_depend_on_the_order_of_the_documents() -> None:
    assert digest_of([REFUNDS, MAIL]) == digest_of([MAIL, REFUNDS]) == SECOND.digest
    assert digest_of([REFUNDS]) != digest_of([PolicyDocument("refunds", "policy: refunds")])
