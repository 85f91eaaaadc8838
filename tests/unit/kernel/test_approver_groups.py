"""Approver groups: each needs an approval of its own, and an approval counts for one group only."""

import pytest

from qwed.domain.agent import Key
from qwed.kernel.admin.approver_groups import members_of, missing_groups
from tests.support.stores import owner_key

NEEDED = ("finance", "security")
APPROVALS: dict[str, tuple[list[tuple[str, ...]], tuple[str, ...]]] = {
    "nobody": ([], NEEDED),
    "one group": ([("finance",)], ("security",)),
    "the same group twice": ([("finance",), ("finance",)], ("security",)),
    "one key of both groups": ([NEEDED], ("security",)),
    "a key of both groups, then one of finance": ([NEEDED, ("finance",)], ()),
    "two keys of both groups": ([NEEDED, NEEDED], ()),
    "another group": ([("legal",)], NEEDED),
    "each group": ([("security",), ("finance",)], ()),
}


@pytest.mark.parametrize("name", APPROVALS)
def test_a_group_is_missing_until_an_approval_counts_for_it(name: str) -> None:
    given, expected = APPROVALS[name]
    assert missing_groups(NEEDED, given) == expected


def test_nothing_is_missing_where_no_group_is_needed() -> None:
    assert missing_groups((), []) == ()


def _key(role: str, *groups: str, revoked_at: float | None = None) -> Key:
    key = owner_key()
    return Key(
        key_id=key.key_id,
        organisation_id=key.organisation_id,
        name=key.name,
        role=role,
        prefix=key.prefix,
        digest=key.digest,
        created_at=key.created_at,
        revoked_at=revoked_at,
        approver_groups=groups,
    )


def test_the_members_of_a_group_are_the_keys_that_can_approve() -> None:
    keys = [
        _key("owner", "finance"),
        _key("approver", "finance", "security"),
        _key("approver", "legal", revoked_at=1.0),
        _key("member", "support"),
    ]
    assert members_of(keys) == {"finance": 2, "security": 1}
