"""Used and remaining budget of an agent, after expired approvals are resolved (spec 6.1)."""

from qwed.kernel.admin.approvals import expire_of
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import BudgetView, budget_view
from qwed.store.agent import Agent


async def budget_of(agent: Agent, services: Services) -> BudgetView:
    """Return the budget of an agent."""
    now = services.clock.now()
    if expire_of(agent, services, now):
        # The expired reservations are released once the change is durable.
        await services.store.durable()
    return budget_view(agent, services.store.usage_counters(agent.agent_id, now))
