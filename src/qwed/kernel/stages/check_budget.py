"""Spec 6.2 and ruling 4.8: price the action and hold its cost, so that nothing else can spend it meanwhile."""

import math
from typing import Any

from qwed.kernel.answer import Answer, problem
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.kernel.tools import ACTION_TYPES, TOOL_CALL
from qwed.store.usage import Charge, Exceeded
from qwed.words import Decision, ErrorCode, usd_from
from qwed.words.clock import rfc3339


def check_budget(case: Case, services: Services) -> Case | Answer:
    """The case with its charge held, or BUDGET_EXCEEDED."""
    cost = max(case.action.cost.micros, services.settings.engine_price_usd)
    tokens = case.action.cost.tokens
    refusal = _refuse_single(case, cost, tokens)
    if refusal is not None:
        return refusal
    charge = Charge(cost=cost, tokens=tokens, requests=1, tool_calls=int(_calls_a_tool(case.action.type)))
    return _hold(replace(case, charge=charge), charge, services)


def check_high_risk(case: Case, services: Services) -> Case | Answer:
    """Spec 6.1, `high_risk_calls_remaining`: held once the risk is known."""
    if case.agent.limits.high_risk_calls_per_day is None:
        return case
    more = Charge(high_risk_calls=1)
    return _hold(replace(case, charge=case.charge.plus(more)), more, services)


def _calls_a_tool(action_type: str) -> bool:
    row = ACTION_TYPES.get(action_type)
    return action_type == TOOL_CALL if row is None else not row.has_engine


def _hold(case: Case, charge: Charge, services: Services) -> Case | Answer:
    if case.reservation is None:
        raise RuntimeError("no step is reserved")
    exceeded = services.store.hold(case.reservation, charge, case.now)
    return case if exceeded is None else _refuse(exceeded, case.now)


def _refuse_single(case: Case, cost: int, tokens: int) -> Answer | None:
    limits = case.agent.limits
    if limits.cost_per_request is not None and cost > limits.cost_per_request:
        details = {"limit": usd_from(limits.cost_per_request), "requested": usd_from(cost)}
        return _exceeded(ErrorCode.COST_EXCEEDED, "cost limit per request exceeded", details, final=True)
    if limits.tokens_per_request is not None and tokens > limits.tokens_per_request:
        details = {"limit": limits.tokens_per_request, "requested": tokens}
        return _exceeded(ErrorCode.TOKENS_EXCEEDED, "token limit per request exceeded", details, final=True)
    return None


def _refuse(exceeded: Exceeded, now: float) -> Answer:
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
