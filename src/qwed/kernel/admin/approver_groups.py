"""Approver groups: which keys approve in whose name, and which groups a request still waits for (DESIGN 11)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from qwed.domain.agent import Key
from qwed.domain.change_parts import GroupApproval, GroupApproved
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit.issue import proven_head
from qwed.kernel.audit_change import Actor
from qwed.kernel.services import Services
from qwed.ledger import leaf
from qwed.model import ErrorCode, Event
from qwed.model.roles import APPROVER, OWNER
from qwed.store.protocol import ApprovalRecord

APPROVING_ROLES = frozenset({OWNER, APPROVER})
"""Roles of keys that may approve."""


def can_approve(key: Key) -> bool:
    """Return True if the key may approve at all."""
    return key.revoked_at is None and key.role in APPROVING_ROLES


def members_of(keys: Iterable[Key]) -> dict[str, int]:
    """Return how many keys can approve in the name of each group."""
    counts: dict[str, int] = {}
    for key in keys:
        for group in key.approver_groups if can_approve(key) else ():
            counts[group] = counts.get(group, 0) + 1
    return counts


def valid_approvals(approval: ApprovalRecord, keys: Iterable[Key]) -> tuple[GroupApproval, ...]:
    """Return the approvals given so far whose key may still approve, with the groups that the key still has."""
    present = {key.key_id: key for key in keys if can_approve(key)}
    return tuple(
        given._replace(groups=tuple(group for group in given.groups if group in present[given.key_id].approver_groups))
        for given in approval.group_approvals
        if given.key_id in present
    )


def missing_groups(needed: Sequence[str], approvals: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the groups that have no approval of their own, where each approval counts for one of its groups.

    Approvals are assigned so that as many groups as possible have one.
    """
    given = [frozenset(groups) for groups in approvals]
    holder: dict[int, str] = {}
    """Group that each approval counts for."""

    def assign(group: str, tried: set[int]) -> bool:
        for number, groups in enumerate(given):
            if group in groups and number not in tried:
                tried.add(number)
                if number not in holder or assign(holder[number], tried):
                    holder[number] = group
                    return True
        return False

    return tuple(group for group in needed if not assign(group, set()))


class GroupStep(NamedTuple):
    """One more approval of a request that several groups must approve, and the groups that are missing after it."""

    part: GroupApproved
    missing: tuple[str, ...]


def next_step(
    approval: ApprovalRecord, actor: Actor, activity_id: str, now: float, services: Services
) -> GroupStep | Problem:
    """Return what an approval by this key adds, or why it adds nothing."""
    keys = services.store.list_keys(actor.organisation_id)
    needed = approval.approver_groups
    given = [one for one in valid_approvals(approval, keys) if _is_logged(one, approval, services)]
    missing = missing_groups(needed, [one.groups for one in given])
    if any(one.key_id == actor.actor_id for one in given):
        return problem(ErrorCode.CONFLICT, f"this key has approved it: a key of {_names(missing)} must approve it too")
    key = next((key for key in keys if key.key_id == actor.actor_id and can_approve(key)), None)
    groups = () if key is None else tuple(group for group in key.approver_groups if group in needed)
    left = missing_groups(needed, [*(one.groups for one in given), groups])
    if left == missing:
        return problem(
            ErrorCode.ROLE_NOT_SUFFICIENT,
            f"a key of {_names(missing)} must approve this",
            suggestion="approve it with a key of that group; an owner sets the groups of a key with PATCH /keys/{id}",
            details={"approvers": [*needed], "waiting_for": [*missing]},
        )
    part = GroupApproved(
        approval.approval_id,
        approval.agent_id,
        approval.group_approvals,
        GroupApproval(actor.actor_id, groups, activity_id, now),
    )
    return GroupStep(part, left)


def _names(groups: Sequence[str]) -> str:
    return " and one of ".join(f"the group `{group}`" for group in groups)


def _is_logged(given: GroupApproval, approval: ApprovalRecord, services: Services) -> bool:
    """Return True if the log has the approval, so that it was not inserted into the tables."""
    row = services.store.find_leaf(given.activity_id)
    if row is None or row.organisation_id != approval.organisation_id:
        return False
    entry = leaf.decode(row.leaf)
    if (entry.event, entry.about, entry.by) != (Event.GROUP_APPROVED, approval.activity_id, given.key_id):
        return False
    return services.store.in_memory or (
        proven_head(row.leaf, approval.organisation_id, row.log_index, services) is not None
    )
