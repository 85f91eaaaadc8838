"""Operations on agents: registration, activity, trust, suspension (spec 3, 7 and 8)."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from qwed.domain.agent import Agent
from qwed.kernel.agents import editing, elevation, lifecycle, trust
from qwed.kernel.agents.actions import ActionView
from qwed.kernel.agents.activity import ActivityPage, ActivityRequest, activity_page
from qwed.kernel.agents.budget import budget_of
from qwed.kernel.agents.editing import AgentPatch, AgentPatchRequest, read_patch
from qwed.kernel.agents.execution import ExecutionRequest, log_execution, report_of
from qwed.kernel.agents.pages import AgentsRequest, AgentsView, agents_page
from qwed.kernel.agents.registration import RegisterRequest, read_registration, register
from qwed.kernel.agents.retirement import retire
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.operations.operation import (
    APPROVERS,
    OWNER,
    Access,
    AgentCall,
    Call,
    E,
    Operation,
    operation,
    refuse_role,
)
from qwed.kernel.request_schema import Reason, RequestStruct
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import (
    AgentView,
    BudgetView,
    RegisteredView,
    View,
    agent_view,
    did_document,
    registered_view,
)
from qwed.model.endpoints import Endpoint


class ReasonRequest(RequestStruct):
    """Reason of the change."""

    reason: Reason


class TrustView(View, frozen=True, kw_only=True):
    """Result of a trust request: an approval to wait for, or the new level."""

    agent_id: str
    trust_level: int
    approval_id: str | None
    expires_at: str | None
    evidence: trust.Evidence | None


class HaltView(View, frozen=True, kw_only=True):
    """State of the organisation's kill switch."""

    organisation_id: str
    halted: bool


_AgentChange = Callable[[Agent, str, Actor, Services], Coroutine[Any, None, Agent | Problem]]


def _etag_of(view: AgentView) -> str:
    return view.etag


@operation(
    Endpoint.REGISTER_AGENT,
    "Register an agent (spec 3)",
    status=201,
    reader=read_registration,
    errors=(E.CONFLICT,),
    etag_of=_etag_of,
)
async def register_agent(call: Call, request: RegisterRequest) -> RegisteredView | Problem:
    """Register an agent (spec 3.1)."""
    outcome = await register(request, call.actor, call.services)
    return outcome if isinstance(outcome, Problem) else registered_view(outcome.agent, outcome.token)


@operation(Endpoint.LIST_AGENTS, "List agents")
def list_agents(call: Call, request: AgentsRequest) -> AgentsView:
    """Return a page of the organisation's agents by id."""
    return agents_page(call.actor.organisation_id, request, call.services)


@operation(Endpoint.GET_AGENT, "Get an agent", access=Access.AGENT, etag_of=_etag_of)
async def get_agent(call: AgentCall) -> AgentView:
    """Return one agent."""
    return _view_of(call.agent, call)


def _view_of(agent: Agent, call: AgentCall) -> AgentView:
    return agent_view(agent, halted=call.services.store.halted(agent.organisation_id))


@operation(
    Endpoint.EDIT_AGENT,
    "Edit an agent",
    roles=APPROVERS,
    request=AgentPatchRequest,
    reader=read_patch,
    conditional=True,
    errors=(E.CONFLICT, E.PRECONDITION_FAILED),
    etag_of=_etag_of,
)
async def edit_agent(call: AgentCall, request: AgentPatch) -> AgentView | Problem:
    """Apply a JSON merge patch to an agent: an owner any, an approver one that only narrows."""
    outcome = await editing.edit_agent(call.agent, request, call.if_match, call.actor, call.services)
    return outcome if isinstance(outcome, Problem) else _view_of(outcome, call)


@operation(
    Endpoint.RETIRE_AGENT,
    "Retire an agent",
    roles=OWNER,
    conditional=True,
    errors=(E.CONFLICT, E.PRECONDITION_FAILED, E.MALFORMED),
    etag_of=_etag_of,
)
async def retire_agent(call: AgentCall) -> AgentView | Problem:
    """Retire an agent: its token is dead, its open approvals are closed, and its record stays."""
    outcome = await retire(call.agent, call.if_match, call.actor, call.services)
    return outcome if isinstance(outcome, Problem) else _view_of(outcome, call)


@operation(Endpoint.GET_DID, "Get the DID document of an agent (spec 3.4)", access=Access.AGENT)
async def get_did(call: AgentCall) -> dict[str, Any]:
    """Return the agent's DID document (spec 3.4)."""
    keyring = call.services.signer.keyring
    return did_document(call.agent, keyring.issuer, keyring.public_jwks())


@operation(
    Endpoint.REPORT_EXECUTION,
    "Report the execution of an action (spec 7.1)",
    access=Access.AGENT,
    errors=(E.NOT_FOUND, E.NOT_DETERMINISTIC, E.CONFLICT),
)
async def report_execution(call: AgentCall, request: ExecutionRequest) -> ActionView | Problem:
    """Log the execution of a permitted action (spec 7.1)."""
    report = report_of(request)
    if isinstance(report, Problem):
        return report
    return await log_execution(call.agent, call.path["action_id"], report, call.actor.actor_id, call.services)


@operation(Endpoint.GET_ACTIVITY, "List the activity of an agent (spec 7.2)", access=Access.AGENT)
def get_activity(call: AgentCall, request: ActivityRequest) -> ActivityPage | Problem:
    """Return a page of the agent's activity (spec 7.2)."""
    return activity_page(call.agent, request, call.services)


@operation(Endpoint.GET_BUDGET, "Get the budget of an agent (spec 6.1)", access=Access.AGENT)
async def get_budget(call: AgentCall) -> BudgetView:
    """Return the agent's budget (spec 6.1)."""
    return await budget_of(call.agent, call.services)


@operation(
    Endpoint.CHANGE_TRUST,
    "Change the trust level of an agent (spec 8.2)",
    access=Access.AGENT,
    status=202,
    also=(200,),
    status_of=lambda view: 200 if view.approval_id is None else 202,
    errors=(E.AGENT_SUSPENDED, E.BAD_OPTION, E.CONFLICT),
)
async def change_trust(call: AgentCall, request: trust.TrustChangeRequest) -> TrustView | Problem:
    """Request more trust, or reduce or restore it at once as an owner or approver (spec 8.2)."""
    trust_request = trust.trust_request_of(request, call.agent)
    if isinstance(trust_request, Problem):
        return trust_request
    change = _AT_ONCE.get(trust_request.kind)
    if change is not None:
        return await _change_at_once(change, trust_request, call)
    outcome = await elevation.request_elevation(call.agent, trust_request, call.actor.actor_id, call.services)
    if isinstance(outcome, Problem):
        return outcome
    return TrustView(agent_id=call.agent.agent_id, trust_level=int(call.agent.trust), **msgspec.structs.asdict(outcome))


_TrustChange = Callable[[Agent, trust.TrustRequest, Actor, Services], Coroutine[Any, None, Agent | Problem]]
_AT_ONCE: dict[str, _TrustChange] = {trust.REDUCTION: trust.reduce_trust, trust.RESTORATION: trust.restore_trust}


async def _change_at_once(
    change: _TrustChange, trust_request: trust.TrustRequest, call: AgentCall
) -> TrustView | Problem:
    refusal = refuse_role(call.actor.role, APPROVERS)
    if refusal is not None:
        return refusal
    outcome = await change(call.agent, trust_request, call.actor, call.services)
    if isinstance(outcome, Problem):
        return outcome
    return TrustView(
        agent_id=outcome.agent_id, trust_level=int(outcome.trust), approval_id=None, expires_at=None, evidence=None
    )


def _status_change(endpoint: Endpoint, summary: str, change: _AgentChange, **columns: Any) -> Operation:
    async def run(call: AgentCall, request: ReasonRequest) -> AgentView | Problem:
        outcome = await change(call.agent, request.reason, call.actor, call.services)
        return outcome if isinstance(outcome, Problem) else _view_of(outcome, call)

    return operation(endpoint, summary, errors=(E.CONFLICT,), **columns)(run)


suspend = _status_change(Endpoint.SUSPEND, "Suspend an agent", lifecycle.suspend)
file_complaint = _status_change(
    Endpoint.FILE_COMPLAINT, "File a complaint, which suspends the agent (spec 8.3)", lifecycle.complain
)
reactivate = _status_change(Endpoint.REACTIVATE, "Reactivate a suspended agent", lifecycle.reactivate, roles=APPROVERS)


@operation(Endpoint.ROTATE_TOKEN, "Rotate the token of an agent", roles=APPROVERS, errors=(E.CONFLICT,))
async def rotate_token(call: AgentCall) -> RegisteredView | Problem:
    """Return a new token, shown once."""
    outcome = await lifecycle.rotate_token(call.agent, call.actor, call.services)
    return outcome if isinstance(outcome, Problem) else registered_view(outcome.agent, outcome.token)


@operation(Endpoint.SUSPEND_ALL, "Suspend all agents (kill switch)", errors=(E.CONFLICT,))
async def suspend_all(call: Call, request: ReasonRequest) -> HaltView | Problem:
    """Suspend every agent of the organisation; any key may (kill switch)."""
    return await _set_halt(True, call, request)


@operation(Endpoint.REACTIVATE_ALL, "Release the kill switch", roles=APPROVERS, errors=(E.CONFLICT,))
async def reactivate_all(call: Call, request: ReasonRequest) -> HaltView | Problem:
    """Release the kill switch; agents suspended one by one stay suspended."""
    return await _set_halt(False, call, request)


async def _set_halt(halt: bool, call: Call, request: ReasonRequest) -> HaltView | Problem:
    outcome = await lifecycle.set_halt(halt, request.reason, call.actor, call.services)
    if isinstance(outcome, Problem):
        return outcome
    return HaltView(organisation_id=call.actor.organisation_id, halted=halt)
