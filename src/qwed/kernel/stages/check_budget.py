"""Spec 6.2 and ruling 4.8: price the action and hold its cost, so that nothing else can spend it meanwhile."""

import math
from typing import Any

from qwed.kernel.answer import Answer, problem
from qwed.kernel.case import Case, replace
from qwed.kernel.people.approvals import expire_of
from qwed.kernel.services import Services
from qwed.kernel.tools import ACTION_TYPES, TOOL_CALL
from qwed.store.agent import Limits
from qwed.store.protocol import Reservation
from qwed.store.usage import ONE_REQUEST, Charge, Exceeded
from qwed.words import Decision, ErrorCode, usd_from
from qwed.words.clock import rfc3339

_TOOL_CALLS = {TOOL_CALL: 1} | {name: 0 if row.has_engine else 1 for name, row in ACTION_TYPES.items()}
"""How many tool calls an action of each type counts for."""


def check_budget(case: Case, services: Services) -> Case | Answer:
    """The case with its charge held, or BUDGET_EXCEEDED."""
    cost = max(case.action.cost.micros, services.settings.engine_price_usd)
    tokens = case.action.cost.tokens
    limits = case.agent.limits
    if limits.cost_per_request is not None or limits.tokens_per_request is not None:
        refusal = _refuse_single(limits, cost, tokens)
        if refusal is not None:
            return refusal
    charge = Charge(cost=cost, tokens=tokens, requests=1, tool_calls=_TOOL_CALLS.get(case.action.type, 0))
    exceeded = _hold(case, charge, services)
    return replace(case, charge=charge) if exceeded is None else _refuse(exceeded, case.now)


def check_request(case: Case, services: Services) -> Case | Answer:
    """The case with one request held, which is all that a message is charged."""
    exceeded = _hold(case, ONE_REQUEST, services)
    return replace(case, charge=ONE_REQUEST) if exceeded is None else _refuse(exceeded, case.now)


def check_high_risk(case: Case, services: Services) -> Case | Answer:
    """Spec 6.1, `high_risk_calls_remaining`: held once the risk is known."""
    if case.agent.limits.high_risk_calls_per_day is None:
        return case
    more = Charge(high_risk_calls=1)
    exceeded = _hold(case, more, services)
    return replace(case, charge=case.charge.plus(more)) if exceeded is None else _refuse(exceeded, case.now)


def _hold(case: Case, charge: Charge, services: Services) -> Exceeded | None:
    """Hold the charge. What has run out holds nothing, so it is settled before anything is refused because of it."""
    exceeded = services.store.hold(_reserved(case), charge, case.now)
    if exceeded is None or not services.store.awaits(case.agent.agent_id):
        return exceeded
    if not expire_of(case.agent, services, case.now):
        return exceeded
    return services.store.hold(_reserved(case), charge, case.now)


def _reserved(case: Case) -> Reservation:
    if case.reservation is None:
        raise RuntimeError("no step is reserved")
    return case.reservation


def _refuse_single(limits: Limits, cost: int, tokens: int) -> Answer | None:
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
