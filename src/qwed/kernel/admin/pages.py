"""Pages of approvals and of changes, newest first."""

import re
from typing import NamedTuple

from qwed.kernel.admin.approvals import STATES
from qwed.kernel.answer import Problem, problem
from qwed.kernel.pagination import read_cursor, read_limit, read_log_cursor
from qwed.kernel.services import Services
from qwed.kernel.views.activity_views import ActivityView, ApprovalView, activity_view, approval_view
from qwed.kernel.views.agent_views import View
from qwed.model import ErrorCode
from qwed.store.protocol import ApprovalQuery
from qwed.store.queries import limit_page

_CURSOR = re.compile(r"apr_[0-9a-f]{1,64}")


class ApprovalsView(View, frozen=True, kw_only=True):
    """A page of approvals, newest first."""

    approvals: list[ApprovalView]
    next_cursor: str | None


class ChangesView(View, frozen=True, kw_only=True):
    """A page of changes, newest first."""

    changes: list[ActivityView]
    next_cursor: str | None


class PageQuery(NamedTuple):
    """Query parameters as received."""

    limit: str | None = None
    cursor: str | None = None
    state: str | None = None
    agent_id: str | None = None


def approvals_page(organisation_id: str, page_query: PageQuery, services: Services) -> ApprovalsView | Problem:
    """Return a page of the organisation's approvals, or the problem with the query."""
    limit, cursor = read_limit(page_query.limit), read_cursor(page_query.cursor, _CURSOR)
    if isinstance(limit, Problem):
        return limit
    if page_query.state not in (None, *STATES):
        return problem(ErrorCode.BAD_OPTION, f"`state` must be one of {', '.join(STATES)}")
    if isinstance(cursor, Problem):
        return cursor
    query = ApprovalQuery(
        organisation_id, limit + 1, cursor, page_query.state, page_query.agent_id, services.clock.now()
    )
    rows = services.store.list_approvals(query)
    page = [approval_view(approval, services) for approval in limit_page(rows[:limit])]
    return ApprovalsView(approvals=page, next_cursor=page[-1].approval_id if len(rows) > len(page) else None)


def changes_page(organisation_id: str, page_query: PageQuery, services: Services) -> ChangesView | Problem:
    """Return a page of the organisation's changes, or the problem with the query."""
    limit, before = read_limit(page_query.limit), read_log_cursor(page_query.cursor)
    if isinstance(limit, Problem):
        return limit
    if isinstance(before, Problem):
        return before
    rows = services.store.changes(organisation_id, limit + 1, before)
    page = [activity_view(entry, services) for entry in limit_page(rows[:limit])]
    return ChangesView(changes=page, next_cursor=str(page[-1].log_index) if len(rows) > len(page) else None)
