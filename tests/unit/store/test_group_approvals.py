"""Approvals by groups: each is one event, and none is added to a request that is resolved."""

import pytest

from qwed.domain.change_parts import ApprovalRequest, Conflict, GroupApproval, GroupApproved
from tests.support.stores import StoreFixture

FINANCE = GroupApproval("key_2", ("finance",), "act_finance", 9.0)
SECURITY = GroupApproval("key_3", ("security",), "act_security", 9.5)
NEEDED = ("finance", "security")


@pytest.fixture
def approval(store_fixture: StoreFixture) -> ApprovalRequest:
    agent = store_fixture.store.find_agent("agent_1")
    return store_fixture.pending(agent, 1, approver_groups=NEEDED)


def _approved(approval: ApprovalRequest, *given: GroupApproval) -> GroupApproved:
    return GroupApproved(approval.approval_id, "agent_1", given[:-1], given[-1])


def test_the_groups_of_a_request_are_kept_with_it(store_fixture: StoreFixture, approval: ApprovalRequest) -> None:
    stored = store_fixture.store.find_approval(approval.approval_id)
    assert (stored.approver_groups, stored.group_approvals, stored.state) == (NEEDED, (), "pending")


def test_approvals_are_collected_until_one_resolves_it(store_fixture: StoreFixture, approval: ApprovalRequest) -> None:
    assert isinstance(store_fixture.change(_approved(approval, FINANCE)), int)
    stored = store_fixture.store.find_approval(approval.approval_id)
    assert (stored.group_approvals, stored.state) == ((FINANCE,), "pending")
    last = (_approved(approval, FINANCE, SECURITY), store_fixture.resolved(approval))
    assert isinstance(store_fixture.change(*last), int)
    stored = store_fixture.store.find_approval(approval.approval_id)
    assert (stored.group_approvals, stored.state) == ((FINANCE, SECURITY), "approved")


def test_of_two_approvals_at_once_the_second_is_made_again(
    store_fixture: StoreFixture, approval: ApprovalRequest
) -> None:
    store_fixture.change(_approved(approval, FINANCE))
    assert store_fixture.change(_approved(approval, SECURITY)) is Conflict.STALE
    assert isinstance(store_fixture.change(_approved(approval, FINANCE, SECURITY)), int)


def test_what_is_resolved_is_not_approved_any_more(store_fixture: StoreFixture, approval: ApprovalRequest) -> None:
    store_fixture.change(store_fixture.resolved(approval, "rejected"))
    assert store_fixture.change(_approved(approval, FINANCE)) is Conflict.RESOLVED
