"""Pages of an organisation's agents."""

import re

from qwed.kernel.answer import Problem
from qwed.kernel.pagination import read_cursor, read_limit
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import AgentView, View, agent_view

_CURSOR = re.compile(r"(?:agent_[0-9a-f]{1,64})?")


class AgentsView(View, frozen=True, kw_only=True):
    """A page of agents by id; `next_cursor` is null on the last."""

    agents: list[AgentView]
    next_cursor: str | None


def agents_page(
    organisation_id: str, services: Services, limit: str | None = None, cursor: str | None = None
) -> AgentsView | Problem:
    """Return the requested page, or the problem with the query."""
    page_size, after = read_limit(limit), read_cursor(cursor, _CURSOR)
    if isinstance(page_size, Problem):
        return page_size
    if isinstance(after, Problem):
        return after
    # One row more than requested shows whether there is a next page, without counting.
    agents = services.store.list_agents(organisation_id, page_size + 1, after or "")
    halted = services.store.halted(organisation_id)
    page = [agent_view(agent, halted=halted) for agent in agents[:page_size]]
    return AgentsView(agents=page, next_cursor=page[-1].agent_id if len(agents) > page_size else None)
