"""Spec 7.2: a page of an agent's activity, newest first, with the summary of the period."""

from qwed.kernel.answer import Problem, problem
from qwed.kernel.paging import read_limit, read_place
from qwed.kernel.people.approvals import expire
from qwed.kernel.period import read_span, shown
from qwed.kernel.services import Services
from qwed.kernel.views.agents import View
from qwed.kernel.views.record import ActivityView, SummaryView, activity_view, summary_view
from qwed.store.agent import Agent
from qwed.store.archive import within_size
from qwed.store.protocol import ActivityQuery
from qwed.words import Decision, ErrorCode

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


class Asked(View, frozen=True, kw_only=True):
    """The query as it came in."""

    limit: str | None = None
    cursor: str | None = None
    decision: str | None = None
    since: str | None = None
    until: str | None = None
    kind: str | None = None


def activity_page(agent: Agent, asked: Asked, services: Services) -> ActivityPage | Problem:
    """The page asked for, or what is wrong with the question."""
    query = _query_of(agent, asked)
    if isinstance(query, Problem):
        return query
    expire(services, services.clock.now())
    # One more than asked tells whether there is a next page without counting.
    entries = services.store.activities(query._replace(limit=query.limit + 1))
    page = within_size(entries[: query.limit])
    more = len(entries) > len(page)
    return ActivityPage(
        agent_id=agent.agent_id,
        period=Period(since=shown(query.since), until=shown(query.until)),
        summary=summary_view(services.store.tally(agent.agent_id, query.since, query.until)),
        activities=[activity_view(entry, services) for entry in page],
        next_cursor=str(page[-1].log_index) if more else None,
    )


def _query_of(agent: Agent, asked: Asked) -> ActivityQuery | Problem:
    limit, before = read_limit(asked.limit), read_place(asked.cursor)
    if isinstance(limit, Problem):
        return limit
    if isinstance(before, Problem):
        return before
    if asked.decision is not None and asked.decision not in Decision.__members__:
        return problem(ErrorCode.BAD_OPTION, f"`decision` must be one of {', '.join(Decision.__members__)}")
    kind = "decision" if asked.kind is None else asked.kind
    if kind not in KINDS:
        return problem(ErrorCode.BAD_OPTION, f"`kind` must be one of {', '.join(KINDS)}")
    span = read_span(asked.since, asked.until)
    if isinstance(span, Problem):
        return span
    return ActivityQuery(agent.agent_id, limit, before, asked.decision, span.since, span.until, kind)
