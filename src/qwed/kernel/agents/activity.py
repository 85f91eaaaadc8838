"""Pages of an agent's activity, newest first, with the summary of the period (spec 7.2)."""

from typing import Annotated

from msgspec import Meta

from qwed.domain.agent import Agent
from qwed.kernel.admin.approvals import expire
from qwed.kernel.answer import Problem
from qwed.kernel.pagination import FROM, TO, LogPageRequest, one_of
from qwed.kernel.services import Services
from qwed.kernel.time_range import format_time, read_time_range
from qwed.kernel.views.activity_views import ActivityView, SummaryView, activity_view, summary_view
from qwed.kernel.views.agent_views import View
from qwed.model import Decision
from qwed.store.protocol import ActivityQuery
from qwed.store.queries import limit_page

KINDS = ("decision", "change", "all")


class Period(View, frozen=True, kw_only=True, rename={"since": "from", "until": "to"}):
    """From inclusive, to exclusive; null is open."""

    since: str | None
    until: str | None


class ActivityPage(View, frozen=True, kw_only=True):
    """One page; `next_cursor` is null on the last."""

    agent_id: str
    period: Period
    summary: SummaryView
    activities: list[ActivityView]
    next_cursor: str | None


_DECISIONS = tuple(Decision.__members__)


class ActivityRequest(LogPageRequest, rename={"since": "from", "until": "to"}):
    """Page and period of an agent's activity."""

    since: Annotated[str, FROM] | None = None
    until: Annotated[str, TO] | None = None
    decision: (
        Annotated[
            str,
            Meta(description="Return only this decision.", extra_json_schema={"enum": [*_DECISIONS]}),
            one_of(_DECISIONS),
        ]
        | None
    ) = None
    kind: Annotated[
        str,
        Meta(description="Decisions, other events, or both.", extra_json_schema={"enum": [*KINDS]}),
        one_of(KINDS),
    ] = KINDS[0]


def activity_page(agent: Agent, request: ActivityRequest, services: Services) -> ActivityPage | Problem:
    """Return the requested page, or the problem with the query."""
    query = _query_of(agent, request)
    if isinstance(query, Problem):
        return query
    expire(services, services.clock.now())
    # One row more than requested shows whether there is a next page, without counting.
    entries = services.store.activities(query._replace(limit=query.limit + 1))
    page = limit_page(entries[: query.limit])
    more = len(entries) > len(page)
    return ActivityPage(
        agent_id=agent.agent_id,
        period=Period(since=format_time(query.since), until=format_time(query.until)),
        summary=summary_view(services.store.activity_summary(agent.agent_id, query.since, query.until)),
        activities=[activity_view(entry, services) for entry in page],
        next_cursor=str(page[-1].log_index) if more else None,
    )


def _query_of(agent: Agent, request: ActivityRequest) -> ActivityQuery | Problem:
    period = read_time_range(request.since, request.until)
    if isinstance(period, Problem):
        return period
    return ActivityQuery(
        agent.agent_id, request.limit, request.before, request.decision, period.since, period.until, request.kind
    )
