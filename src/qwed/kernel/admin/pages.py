"""Pages of approvals and of changes, newest first."""

from typing import Annotated

from msgspec import Meta

from qwed.kernel.admin.approvals import STATES
from qwed.kernel.agents.names import resolve_agent_id
from qwed.kernel.answer import Problem
from qwed.kernel.pagination import CURSOR, DEFAULT_LIMIT, Limit, LogPageRequest, cursor_rule, one_of
from qwed.kernel.request_schema import RequestStruct
from qwed.kernel.services import Services
from qwed.kernel.views.activity_views import ActivityView, ApprovalView, activity_view, approval_view
from qwed.kernel.views.agent_views import View
from qwed.store.protocol import ApprovalQuery
from qwed.store.queries import limit_page


class ApprovalsView(View, frozen=True, kw_only=True):
    """A page of approvals, newest first."""

    approvals: list[ApprovalView]
    next_cursor: str | None


class ChangesView(View, frozen=True, kw_only=True):
    """A page of changes, newest first."""

    changes: list[ActivityView]
    next_cursor: str | None


class ApprovalsRequest(RequestStruct):
    """Page of approvals, newest first."""

    state: (
        Annotated[
            str,
            Meta(description="Return only approvals in this state.", extra_json_schema={"enum": [*STATES]}),
            one_of(STATES),
        ]
        | None
    ) = None
    agent_id: Annotated[str, Meta(description="Return only approvals of this agent, by id or name.")] | None = None
    limit: Limit = DEFAULT_LIMIT
    cursor: Annotated[str, CURSOR, cursor_rule("apr_[0-9a-f]{1,64}")] | None = None


def approvals_page(organisation_id: str, request: ApprovalsRequest, services: Services) -> ApprovalsView | Problem:
    """Return a page of the organisation's approvals, or the problem with the name of the agent."""
    limit, agent_id = request.limit, None
    if request.agent_id is not None:
        agent_id = resolve_agent_id(request.agent_id, organisation_id, services.store)
    if isinstance(agent_id, Problem):
        return agent_id
    query = ApprovalQuery(organisation_id, limit + 1, request.cursor, request.state, agent_id, services.clock.now())
    rows = services.store.list_approvals(query)
    page = [approval_view(approval, services) for approval in limit_page(rows[:limit])]
    return ApprovalsView(approvals=page, next_cursor=page[-1].approval_id if len(rows) > len(page) else None)


def changes_page(organisation_id: str, request: LogPageRequest, services: Services) -> ChangesView:
    """Return a page of the organisation's changes."""
    limit = request.limit
    rows = services.store.changes(organisation_id, limit + 1, request.before)
    page = [activity_view(entry, services) for entry in limit_page(rows[:limit])]
    return ChangesView(changes=page, next_cursor=str(page[-1].log_index) if len(rows) > len(page) else None)
