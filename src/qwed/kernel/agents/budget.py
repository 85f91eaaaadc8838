"""Used and remaining budget of an agent, after expired approvals are resolved (spec 6.1)."""

from qwed.domain.agent import Agent
from qwed.kernel.admin.approvals import expire_of
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import BudgetView, budget_view


async def budget_of(agent: Agent, services: Services) -> BudgetView:
    """Return the budget of an agent."""
    now = services.clock.now()
    await expire_of(agent, services, now)
    return budget_view(agent, services.store.usage_counters(agent.agent_id, now))
