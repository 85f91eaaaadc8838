"""The agents of an organisation, page by page."""

import re

from qwed.kernel.answer import Problem
from qwed.kernel.paging import read_cursor, read_limit
from qwed.kernel.services import Services
from qwed.kernel.views.agents import AgentView, View, agent_view

_CURSOR = re.compile(r"(?:agent_[0-9a-f]{1,64})?")


class AgentsView(View, frozen=True, kw_only=True):
    """A page of agents by id; `next_cursor` is null on the last."""

    agents: list[AgentView]
    next_cursor: str | None


def agents_page(
    organisation_id: str, services: Services, limit: str | None = None, cursor: str | None = None
) -> AgentsView | Problem:
    """The page asked for, or what is wrong with the question."""
    most, after = read_limit(limit), read_cursor(cursor, _CURSOR)
    if isinstance(most, Problem):
        return most
    if isinstance(after, Problem):
        return after
    # One more than asked tells whether there is a next page without counting.
    found = services.store.list_agents(organisation_id, most + 1, after or "")
    halted = services.store.halted(organisation_id)
    page = [agent_view(agent, halted=halted) for agent in found[:most]]
    return AgentsView(agents=page, next_cursor=page[-1].agent_id if len(found) > most else None)
