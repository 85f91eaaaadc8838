"""Pages of an organisation's agents."""

from typing import Annotated

from msgspec import Meta

from qwed.domain.agent import AgentStatus
from qwed.kernel.pagination import CURSOR, DEFAULT_LIMIT, Limit, cursor_rule, one_of
from qwed.kernel.request_schema import RequestStruct
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import AgentView, View, agent_view

STATUSES = ("current", *AgentStatus, "all")


class AgentsRequest(RequestStruct):
    """Page of agents by id."""

    status: Annotated[
        str,
        Meta(
            description="Return only agents of this status; `current` is every one that is not retired.",
            extra_json_schema={"enum": [*STATUSES]},
        ),
        one_of(STATUSES),
    ] = STATUSES[0]
    limit: Limit = DEFAULT_LIMIT
    cursor: Annotated[str, CURSOR, cursor_rule("(?:agent_[0-9a-f]{1,64})?")] | None = None


class AgentsView(View, frozen=True, kw_only=True):
    """A page of agents by id; `next_cursor` is null on the last."""

    agents: list[AgentView]
    next_cursor: str | None


def agents_page(organisation_id: str, request: AgentsRequest, services: Services) -> AgentsView:
    """Return a page of the organisation's agents."""
    page_size = request.limit
    # One row more than requested shows whether there is a next page, without counting.
    agents = services.store.list_agents(organisation_id, page_size + 1, request.cursor or "", request.status)
    halted = services.store.halted(organisation_id)
    page = [agent_view(agent, halted=halted) for agent in agents[:page_size]]
    return AgentsView(agents=page, next_cursor=page[-1].agent_id if len(agents) > page_size else None)
