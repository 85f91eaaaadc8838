"""Decision: the stricter of two matrices, then the cases in which a person must approve (ruling 4.1)."""

from qwed.kernel.answer import Answer, PolicyCheck, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.model import Decision, ErrorCode, Risk, Trust, Verdict
from qwed.model.decision_matrix import STATUS_MATRIX, TRUST_MATRIX

_SUGGEST_TRUST = "ask a person to do it, or request a higher trust level for the agent"


def decide(case: Case, _services: Services) -> Case | Answer:
    """Return the case with its decision, or the refusal."""
    verdict = case.verdict
    if verdict is None:
        raise RuntimeError("the case has no verdict")
    by_status = STATUS_MATRIX[verdict.status.on_agent_wire][case.risk]
    by_trust = TRUST_MATRIX[case.agent.trust][case.risk]
    if by_status is Decision.DENIED:
        return _refuse_verdict(verdict)
    if by_trust is Decision.DENIED:
        return _refuse_trust(case)
    by_policy = Decision.PENDING if _needs_approval(case) else Decision.APPROVED
    decision = stricter(by_status, by_trust, by_policy)
    return replace(case, decision=decision, checks_passed=(*case.checks_passed, "trust_level_sufficient"))


STRICTNESS = {Decision.APPROVED: 0, Decision.CORRECTED: 1, Decision.PENDING: 2, Decision.DENIED: 3}


def stricter(*decisions: Decision) -> Decision:
    """Return the strictest decision: DENIED over PENDING over CORRECTED over APPROVED (ruling 4.1)."""
    return max(decisions, key=STRICTNESS.__getitem__)


_LEAKS_PII = PolicyCheck("no_pii_leakage", False)


def _needs_approval(case: Case) -> bool:
    tool = case.resolved_action.tool
    return (
        case.risk > case.options.risk_threshold
        or tool.dangerous
        or (tool.requires_approval and case.agent.trust < Trust.TRUSTED)
        or _LEAKS_PII in case.policies
    )


def _refuse_verdict(verdict: Verdict) -> Answer:
    return denied(
        ErrorCode.VERIFICATION_FAILED,
        verdict.message or f"the {verdict.engine} check did not pass",
        check=verdict.checks_failed[0] if verdict.checks_failed else None,
        details={"checks_failed": list(verdict.checks_failed), "violations": list(verdict.violations)},
    )


def _refuse_trust(case: Case) -> Answer:
    required = next((trust for trust in Trust if TRUST_MATRIX[trust][case.risk] is not Decision.DENIED), Trust.TRUSTED)
    return denied(
        ErrorCode.INSUFFICIENT_TRUST,
        f"a {case.risk.word} risk action needs trust level {int(required)}, this agent has {int(case.agent.trust)}",
        check="trust_level_sufficient",
        suggestion=_suggestion(case),
        details={"risk_level": case.risk.word, "trust_level": int(case.agent.trust), "required": int(required)},
    )


def _suggestion(case: Case) -> str:
    if case.resolved_action.analyzer == "sql" and case.risk > Risk.LOW:
        return "a query that only reads (SELECT) is within this agent's trust; " + _SUGGEST_TRUST
    return _SUGGEST_TRUST
