"""Spec 6.1: what an agent has used and what is left, without what has run out."""

from qwed.kernel.people.approvals import expire_of
from qwed.kernel.services import Services
from qwed.kernel.views.agents import BudgetView, budget_view
from qwed.store.agent import Agent


async def budget_of(agent: Agent, services: Services) -> BudgetView:
    """How the budget of an agent stands."""
    now = services.clock.now()
    if expire_of(agent, services, now):
        # What it held is free once that is written.
        await services.store.durable()
    return budget_view(agent, services.store.spent(agent.agent_id, now))
