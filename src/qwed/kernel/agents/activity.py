"""Pages of an agent's activity, newest first, with the summary of the period (spec 7.2)."""

from qwed.kernel.admin.approvals import expire
from qwed.kernel.answer import Problem, problem
from qwed.kernel.pagination import read_limit, read_log_cursor
from qwed.kernel.services import Services
from qwed.kernel.time_range import format_time, read_time_range
from qwed.kernel.views.activity_views import ActivityView, SummaryView, activity_view, summary_view
from qwed.kernel.views.agent_views import View
from qwed.model import Decision, ErrorCode
from qwed.store.agent import Agent
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


class ActivityPageQuery(View, frozen=True, kw_only=True):
    """Query parameters as received."""

    limit: str | None = None
    cursor: str | None = None
    decision: str | None = None
    since: str | None = None
    until: str | None = None
    kind: str | None = None


def activity_page(agent: Agent, page_query: ActivityPageQuery, services: Services) -> ActivityPage | Problem:
    """Return the requested page, or the problem with the query."""
    query = _query_of(agent, page_query)
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


def _query_of(agent: Agent, page_query: ActivityPageQuery) -> ActivityQuery | Problem:
    limit, before = read_limit(page_query.limit), read_log_cursor(page_query.cursor)
    if isinstance(limit, Problem):
        return limit
    if isinstance(before, Problem):
        return before
    if page_query.decision is not None and page_query.decision not in Decision.__members__:
        return problem(ErrorCode.BAD_OPTION, f"`decision` must be one of {', '.join(Decision.__members__)}")
    kind = "decision" if page_query.kind is None else page_query.kind
    if kind not in KINDS:
        return problem(ErrorCode.BAD_OPTION, f"`kind` must be one of {', '.join(KINDS)}")
    time_range = read_time_range(page_query.since, page_query.until)
    if isinstance(time_range, Problem):
        return time_range
    return ActivityQuery(agent.agent_id, limit, before, page_query.decision, time_range.since, time_range.until, kind)
