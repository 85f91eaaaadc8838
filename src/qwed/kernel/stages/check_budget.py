"""Budget check: price the action and reserve its cost, so that no other request can spend it (spec 6.2, ruling 4.8)."""

import math
from typing import Any

from qwed.kernel.admin.approvals import expire_of
from qwed.kernel.answer import Answer, problem
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.kernel.tools import ACTION_TYPES, TOOL_CALL
from qwed.model import Decision, ErrorCode, usd_from
from qwed.model.clock import rfc3339
from qwed.store.agent import AgentLimits
from qwed.store.budget import ONE_REQUEST, LimitExceeded, RequestCost
from qwed.store.protocol import Reservation

_TOOL_CALLS = {TOOL_CALL: 1} | {name: 0 if tool.has_engine else 1 for name, tool in ACTION_TYPES.items()}
"""Number of tool calls that an action of each type counts for."""


def check_budget(case: Case, services: Services) -> Case | Answer:
    """Return the case with its cost reserved, or BUDGET_EXCEEDED."""
    cost = max(case.action.cost.micros, services.settings.engine_price_usd)
    tokens = case.action.cost.tokens
    limits = case.agent.limits
    if limits.cost_per_request is not None or limits.tokens_per_request is not None:
        refusal = _refuse_over_request_limit(limits, cost, tokens)
        if refusal is not None:
            return refusal
    charge = RequestCost(cost=cost, tokens=tokens, requests=1, tool_calls=_TOOL_CALLS.get(case.action.type, 0))
    exceeded = _reserve(case, charge, services)
    return replace(case, charge=charge) if exceeded is None else _refuse(exceeded, case.now)


def check_request(case: Case, services: Services) -> Case | Answer:
    """Return the case with one request reserved, which is the whole cost of a message."""
    exceeded = _reserve(case, ONE_REQUEST, services)
    return replace(case, charge=ONE_REQUEST) if exceeded is None else _refuse(exceeded, case.now)


def check_high_risk(case: Case, services: Services) -> Case | Answer:
    """Return the case with a high-risk call reserved, once the risk is known (6.1, `high_risk_calls_remaining`)."""
    if case.agent.limits.high_risk_calls_per_day is None:
        return case
    more = RequestCost(high_risk_calls=1)
    exceeded = _reserve(case, more, services)
    return replace(case, charge=case.charge.plus(more)) if exceeded is None else _refuse(exceeded, case.now)


def _reserve(case: Case, charge: RequestCost, services: Services) -> LimitExceeded | None:
    """Reserve the cost. Expired approvals are resolved first if they are what exceeds the budget."""
    exceeded = services.store.reserve_budget(_reservation_of(case), charge, case.now)
    if exceeded is None or not services.store.has_open_approvals(case.agent.agent_id):
        return exceeded
    if not expire_of(case.agent, services, case.now):
        return exceeded
    return services.store.reserve_budget(_reservation_of(case), charge, case.now)


def _reservation_of(case: Case) -> Reservation:
    if case.reservation is None:
        raise RuntimeError("no step is reserved")
    return case.reservation


def _refuse_over_request_limit(limits: AgentLimits, cost: int, tokens: int) -> Answer | None:
    if limits.cost_per_request is not None and cost > limits.cost_per_request:
        details = {"limit": usd_from(limits.cost_per_request), "requested": usd_from(cost)}
        return _exceeded(ErrorCode.COST_EXCEEDED, "cost limit per request exceeded", details, final=True)
    if limits.tokens_per_request is not None and tokens > limits.tokens_per_request:
        details = {"limit": limits.tokens_per_request, "requested": tokens}
        return _exceeded(ErrorCode.TOKENS_EXCEEDED, "token limit per request exceeded", details, final=True)
    return None


def _refuse(exceeded: LimitExceeded, now: float) -> Answer:
    show = usd_from if exceeded.code is ErrorCode.COST_EXCEEDED else int
    details = {
        "limit": show(exceeded.limit),
        "current": show(exceeded.current),
        "reset_at": rfc3339(exceeded.reset_at),
    }
    wait = max(1, math.ceil(exceeded.reset_at - now))
    return _exceeded(exceeded.code, exceeded.message, details, final=False, retry_after=wait)


def _exceeded(
    code: ErrorCode, message: str, details: dict[str, Any], *, final: bool, retry_after: int | None = None
) -> Answer:
    suggestion = "lower the cost of this action" if final else "retry the same step after `reset_at`"
    return Answer(
        decision=Decision.BUDGET_EXCEEDED,
        error=problem(
            code,
            message,
            details=details,
            final=final,
            check="within_budget",
            suggestion=suggestion,
            retry_after=retry_after,
        ),
    )
