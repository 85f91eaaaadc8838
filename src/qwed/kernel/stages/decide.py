"""Decision: the stricter of two matrices, then the cases in which a person must approve (ruling 4.1)."""

from qwed.kernel.analysis.causes import advice_for, effect_details, grant_of, pending_cause, risk_cause
from qwed.kernel.answer import Answer, PolicyCheck, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.model import Decision, ErrorCode, Risk, Trust, Verdict
from qwed.model.decision_matrix import STATUS_MATRIX, TRUST_MATRIX


def decide(case: Case, _services: Services) -> Case | Answer:
    """Return the case with its decision, or the refusal."""
    return decide_by_tables(case)


def decide_by_tables(case: Case) -> Case | Answer:
    """Return the case with the decision of the two matrices, or the refusal."""
    verdict, by_status, by_trust = _verdict_of(case), status_decision(case), trust_decision(case)
    if by_status is Decision.DENIED:
        return _refuse_verdict(verdict)
    if by_trust is Decision.DENIED:
        return _refuse_trust(case, verdict)
    by_person = Decision.PENDING if needs_approval(case) else Decision.APPROVED
    return with_decision(
        case,
        stricter(by_status, by_trust, by_person),
        (*case.checks_passed, "trust_level_sufficient"),
        by_trust=by_trust is Decision.PENDING,
    )


def with_decision(case: Case, decision: Decision, checks_passed: tuple[str, ...], *, by_trust: bool) -> Case:
    """Return the case with this decision, and with the cause where a person must approve it."""
    if decision is not Decision.PENDING:
        return replace(case, decision=decision, checks_passed=checks_passed)
    cause = pending_cause(case, _verdict_of(case), by_trust=by_trust)
    return replace(case, decision=decision, checks_passed=checks_passed, pending_cause=cause)


def status_decision(case: Case) -> Decision:
    """Return what the status of the verification and the risk give."""
    return STATUS_MATRIX[_verdict_of(case).status.on_agent_wire][case.risk]


def trust_decision(case: Case) -> Decision:
    """Return what the agent's trust and the risk give."""
    return TRUST_MATRIX[case.agent.trust][case.risk]


def _verdict_of(case: Case) -> Verdict:
    if case.verdict is None:
        raise RuntimeError("the case has no verdict")
    return case.verdict


STRICTNESS = {Decision.APPROVED: 0, Decision.CORRECTED: 1, Decision.PENDING: 2, Decision.DENIED: 3}


def stricter(*decisions: Decision) -> Decision:
    """Return the strictest decision: DENIED over PENDING over CORRECTED over APPROVED (ruling 4.1)."""
    return max(decisions, key=STRICTNESS.__getitem__)


_LEAKS_PII = PolicyCheck("no_pii_leakage", False)


def needs_approval(case: Case) -> bool:
    """Return True if a person must approve it whatever the matrices say."""
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
        suggestion=advice_for(verdict.checks_failed),
        details={"checks_failed": list(verdict.checks_failed), "violations": list(verdict.violations)},
    )


def _refuse_trust(case: Case, verdict: Verdict) -> Answer:
    required = next((trust for trust in Trust if TRUST_MATRIX[trust][case.risk] is not Decision.DENIED), Trust.TRUSTED)
    return denied(
        ErrorCode.INSUFFICIENT_TRUST,
        f"a {case.risk.word} risk action needs trust level {int(required)}, this agent has {int(case.agent.trust)}: "
        f"{risk_cause(case, verdict)}",
        check="trust_level_sufficient",
        suggestion=_suggestion(case, required),
        details={
            "risk_level": case.risk.word,
            "trust_level": int(case.agent.trust),
            "required": int(required),
            "effects": effect_details(verdict),
        },
    )


def _suggestion(case: Case, required: Trust) -> str:
    advice = grant_of(required)
    if TRUST_MATRIX[required][case.risk] is Decision.PENDING:
        advice += ", and where a person approves each such action"
    if case.resolved_action.analyzer == "sql" and case.risk > Risk.LOW and case.agent.trust > Trust.UNTRUSTED:
        return f"a query that only reads (SELECT) is within this agent's trust; {advice}"
    return advice
