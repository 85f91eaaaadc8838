"""Retirement of an agent: its token is dead, its open approvals are closed, and its record stays (ruling 4.28)."""

from dataclasses import replace

from qwed.domain.agent import Agent, AgentStatus
from qwed.domain.change_parts import AgentChanged
from qwed.domain.credentials import AGENT_TOKEN, mint
from qwed.kernel.admin.approvals import close_approval
from qwed.kernel.agents.etag import refuse_stale
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.services import Services
from qwed.model import Event
from qwed.store.protocol import ApprovalQuery

_REASON = "the agent was retired"
_PAGE = 100


async def retire(agent: Agent, if_match: str | None, actor: Actor, services: Services) -> Agent | Problem:
    """Retire the agent; a second request closes what the first one left open."""
    refusal = refuse_stale(agent, if_match)
    if refusal is not None:
        return refusal
    if agent.status is not AgentStatus.RETIRED:
        retired = await _commit_retirement(agent, actor, services)
        if isinstance(retired, Problem):
            return retired
        agent = retired
    await _close_approvals(agent, actor, services)
    await services.store.durable()
    return agent


async def _commit_retirement(agent: Agent, actor: Actor, services: Services) -> Agent | Problem:
    now = services.clock.now()
    # A token that nobody has seen: the agent's own proves nothing any more.
    token = mint(AGENT_TOKEN)
    after = replace(
        agent, status=AgentStatus.RETIRED, retired_at=now, token_prefix=token.prefix, token_digest=token.digest
    )
    change = build_change(
        Event.RETIRED,
        actor.actor_id,
        agent.organisation_id,
        now,
        services,
        agent_id=agent.agent_id,
        parts=(AgentChanged(agent, after),),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else after


async def _close_approvals(agent: Agent, actor: Actor, services: Services) -> None:
    """Reject the open requests of the agent, of which none can be approved meanwhile."""
    before = None
    while True:
        query = ApprovalQuery(agent.organisation_id, _PAGE, before, "pending", agent.agent_id, services.clock.now())
        pending = services.store.list_approvals(query)
        for approval in pending:
            await close_approval(approval, _REASON, actor, services)
        if len(pending) < _PAGE:
            return
        before = pending[-1].approval_id
