"""Risk assessment: effects give the risk; factors may raise it by one level (spec 5.2, ruling 4.3)."""

from qwed.kernel.analysis.content_scan import ContentScan
from qwed.kernel.answer import Answer, Factor, PolicyCheck
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.model import OUTBOUND, RISK_OF, EffectKind, Verdict, risk_of

RAISES_AT = 1.0

WEIGHTS = {
    "external_communication": 0.3,
    "pii_in_content": 0.5,
    "destructive_operation": 0.5,
    "credential_in_content": 0.5,
    "financial": 0.4,
    "privileged_target": 0.2,
}


def assess_risk(case: Case, _services: Services) -> Case | Answer:
    """Return the case with its risk and, for a tool call, the factors and policy checks behind it."""
    verdict = case.verdict
    if verdict is None:
        raise RuntimeError("the case has no verdict")
    risk = max(case.resolved_action.base, risk_of(verdict.effects)) if verdict.effects else case.resolved_action.base
    if case.resolved_action.effect is not None:
        risk = max(risk, RISK_OF[case.resolved_action.effect])
    if not case.resolved_action.is_tool:
        return replace(case, risk=risk)
    factors = _factors(verdict, case.content)
    # The address of a recipient is a printed factor (spec 5.2), but no personal data in the content (ruling 4.27).
    counted = [factor.weight for factor in factors if factor.factor != "pii_in_content" or case.content.pii_fields]
    if sum(counted) >= RAISES_AT:
        risk = risk.raised()
    return replace(case, risk=risk, factors=factors, policies=_policies(case, verdict))


def _factors(verdict: Verdict, content: ContentScan) -> tuple[Factor, ...]:
    kinds = {effect.kind for effect in verdict.effects}
    present = {
        "external_communication": not OUTBOUND.isdisjoint(kinds),
        "pii_in_content": content.has_pii,
        "destructive_operation": EffectKind.DELETE in kinds,
        "credential_in_content": bool(content.secrets),
        "financial": EffectKind.SPEND in kinds,
        "privileged_target": content.privileged,
    }
    return tuple(Factor(name, WEIGHTS[name]) for name, applies in present.items() if applies)


def _policies(case: Case, verdict: Verdict) -> tuple[PolicyCheck, ...]:
    content = case.content
    leaving = any(effect.kind in OUTBOUND for effect in verdict.effects)
    clean = content.complete and not (content.pii_fields and leaving)
    return (
        PolicyCheck("no_pii_leakage", clean),
        PolicyCheck("no_secret_leakage", not content.secrets),
        *(PolicyCheck(name, True) for name in _EARLIER_POLICIES if name in case.checks_passed),
    )


_EARLIER_POLICIES = ("rate_limit", "tool_allowed")
"""Policies that earlier stages check and record."""
