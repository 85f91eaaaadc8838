"""What people look through, page by page and newest first: what waits for them, and what was changed."""

import re
from typing import NamedTuple

from qwed.kernel.answer import Problem, problem
from qwed.kernel.paging import read_cursor, read_limit, read_place
from qwed.kernel.people.approvals import STATES
from qwed.kernel.services import Services
from qwed.kernel.views.agents import View
from qwed.kernel.views.record import ActivityView, ApprovalView, activity_view, approval_view
from qwed.store.archive import within_size
from qwed.store.protocol import ApprovalQuery
from qwed.words import ErrorCode

_CURSOR = re.compile(r"apr_[0-9a-f]{1,64}")


class ApprovalsView(View, frozen=True, kw_only=True):
    """A page of approvals, newest first."""

    approvals: list[ApprovalView]
    next_cursor: str | None


class ChangesView(View, frozen=True, kw_only=True):
    """A page of changes, newest first."""

    changes: list[ActivityView]
    next_cursor: str | None


class Asked(NamedTuple):
    """The query as it came in."""

    limit: str | None = None
    cursor: str | None = None
    state: str | None = None
    agent_id: str | None = None


def approvals_page(organisation_id: str, asked: Asked, services: Services) -> ApprovalsView | Problem:
    """The organisation's approvals, or what is wrong with the question."""
    limit, cursor = read_limit(asked.limit), read_cursor(asked.cursor, _CURSOR)
    if isinstance(limit, Problem):
        return limit
    if asked.state not in (None, *STATES):
        return problem(ErrorCode.BAD_OPTION, f"`state` must be one of {', '.join(STATES)}")
    if isinstance(cursor, Problem):
        return cursor
    query = ApprovalQuery(organisation_id, limit + 1, cursor, asked.state, asked.agent_id, services.clock.now())
    found = services.store.list_approvals(query)
    page = [approval_view(approval, services) for approval in within_size(found[:limit])]
    return ApprovalsView(approvals=page, next_cursor=page[-1].approval_id if len(found) > len(page) else None)


def changes_page(organisation_id: str, asked: Asked, services: Services) -> ChangesView | Problem:
    """What was changed in the organisation and by whom, or what is wrong with the question."""
    limit, before = read_limit(asked.limit), read_place(asked.cursor)
    if isinstance(limit, Problem):
        return limit
    if isinstance(before, Problem):
        return before
    found = services.store.changes(organisation_id, limit + 1, before)
    page = [activity_view(entry, services) for entry in within_size(found[:limit])]
    return ChangesView(changes=page, next_cursor=str(page[-1].log_index) if len(found) > len(page) else None)
