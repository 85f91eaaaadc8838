"""Assessment of an action: permissions, verdict, risk and decision.

A pure function of the agent, the tool registry, the action, the options and the checks that admission has passed. It
waits only where a verdict needs an engine worker.
"""

from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import Any

import msgspec

from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.analysis.content_scan import scan_content
from qwed.kernel.analysis.executable_text import value_at
from qwed.kernel.analysis.tool_analyzers import SECRET_EXFILTRATION, SECRET_IN_PARAMETERS
from qwed.kernel.answer import Answer, PolicyCheck, Problem, RiskAssessment, Verification, printable
from qwed.kernel.case import Case
from qwed.kernel.privacy.masking import mask_value
from qwed.kernel.privacy.payload import Payload, encode_payload, redacted_action, redacted_facts
from qwed.kernel.privacy.redaction import Redactor
from qwed.kernel.services import Services
from qwed.kernel.stages.assess_risk import assess_risk
from qwed.kernel.stages.check_permissions import check_permissions
from qwed.kernel.stages.decide import decide
from qwed.kernel.stages.run_engine import run_engine
from qwed.kernel.tools import TOOL, TOOL_CALL, text_of
from qwed.model import NO_FACTS, Decision, ErrorCode, Status, Verdict
from qwed.model.facts import is_small
from qwed.settings import VERSION as SETTINGS_VERSION

AssessmentStage = Callable[[Case, Services], Any]
"""Returns `Case | Answer`; `run_engine` may return a coroutine of one, because it alone may wait for a worker."""

ASSESSMENT_STAGES: tuple[AssessmentStage, ...] = (check_permissions, run_engine, assess_risk, decide)

_ALWAYS_NAMED = ("agent_active", "within_budget", "trust_level_sufficient")
"""Checks outside the engine that every answer names if they passed."""
MAX_PAYLOAD_LENGTH = 4_096
"""Larger assessments are not cached: all agents share the memory of one cache."""
_CACHEABLE_ERRORS = frozenset({ErrorCode.TOOL_NOT_ALLOWED.code, ErrorCode.UNKNOWN_ACTION_TYPE.code})
_UNCACHEABLE_STATUSES = frozenset({Status.INCONCLUSIVE, Status.ERROR, Status.UNKNOWN})
NO_TRUST_PENALTY = frozenset({"unresolved_statement"})
"""Refused like a violation, but an honest mistake: a statement that cannot be resolved, such as VACUUM or CALL."""


def assess(
    case: Case, services: Services, stages: tuple[AssessmentStage, ...] = ASSESSMENT_STAGES
) -> Assessment | Coroutine[Any, None, Assessment]:
    """Return the assessment of an admitted action; a coroutine of it if an engine worker must be awaited."""
    for index, stage in enumerate(stages):
        if services.at_stage is not None:
            services.at_stage(stage.__name__)
        outcome = stage(case, services)
        if isinstance(outcome, CoroutineType):
            return _assess_later(case, outcome, services, stages[index + 1 :])
        if isinstance(outcome, Answer):
            return _assessment_of(case, outcome)
        case = outcome
    return _assessment_of(case, None)


async def _assess_later(
    case: Case,
    pending: Coroutine[Any, None, Case | Answer],
    services: Services,
    stages: tuple[AssessmentStage, ...],
) -> Assessment:
    outcome = await pending
    if isinstance(outcome, Answer):
        return _assessment_of(case, outcome)
    assessment = assess(outcome, services, stages)
    return assessment if isinstance(assessment, Assessment) else await assessment


def _assessment_of(case: Case, refusal: Answer | None) -> Assessment:
    """Return the assessment of a case that has passed the cacheable stages."""
    decision = case.decision if refusal is None else refusal.decision
    error = None if refusal is None else refusal.error
    verification = _verification_of(case, error)
    resolved_action = case.resolved_action
    is_tool = resolved_action is not None and resolved_action.is_tool
    policies = case.policies if is_tool else _refused_policies(case, error)
    content = scan_content(case.action) if case.verdict is None else case.content
    secret = bool(content.secrets)
    tool_name = resolved_action.name if is_tool else (case.action.tool if policies is not None else None)
    redactor = Redactor(case.action) if secret else None
    if redactor is not None:
        verification = None if verification is None else redactor.verification(verification)
        refusal = None if refusal is None else redactor.refusal(refusal)
        error = None if refusal is None else refusal.error
        tool_name = None if tool_name is None else redactor.text(tool_name)
    executable = case.executable or case.action
    payload = Payload(
        action=redacted_action(case.action, redactor),
        corrected=case.corrected if redactor is None else redactor.value(mask_value(case.corrected)),
        error=error,
        verification=verification,
        # An action with a secret leaves no hash, unless it may be executed.
        action_hash=None if secret else case.action_hash,
        sub=f"sha256:{executable.hash}" if decision.commits else None,
        facts=redacted_facts(case.facts, redactor) if decision is Decision.PENDING and case.facts != NO_FACTS else None,
    )
    encoded_payload = encode_payload(payload)
    return Assessment(
        decision=decision,
        refusal=refusal,
        risk=case.risk,
        verification=verification,
        verified_query=_verified_query(case) if decision.permits else None,
        corrected=None if case.corrected is None or decision is Decision.DENIED else dict(case.corrected),
        has_secret=secret,
        violation=case.verdict is not None and _costs_trust(case, case.verdict),
        policy_hash=(
            None
            if resolved_action is None
            else case.agent.policy_hash(resolved_action.name, resolved_action.tool, SETTINGS_VERSION)
        ),
        tool_name=tool_name,
        risk_assessment=_risk_assessment_of(case, decision) if is_tool else None,
        policy_checks=policies,
        facts=case.facts,
        payload=payload,
        encoded_payload=encoded_payload,
        cacheable=_is_small(payload, encoded_payload) and is_small(case.facts) and _is_repeatable(case, error),
    )


def _is_small(payload: Payload, encoded: str) -> bool:
    """Return True if the payload may be cached; facts repeat what is in the action and count apart."""
    return len(encoded) <= MAX_PAYLOAD_LENGTH * (1 if payload.facts is None else 2)


def _is_repeatable(case: Case, error: Problem | None) -> bool:
    if case.verdict is not None:
        return case.cacheable and case.verdict.status not in _UNCACHEABLE_STATUSES
    return error is not None and error.code in _CACHEABLE_ERRORS


def _costs_trust(case: Case, verdict: Verdict) -> bool:
    """Return True if the verdict costs trust. For an unregistered tool it is only a guess that it executes the text:
    that is enough to refuse the call, but not to penalise the agent."""
    violations = {*verdict.violations} - NO_TRUST_PENALTY
    guessed = case.resolved_action.custom and case.resolved_action.executable_text is not None
    return bool(violations & {SECRET_IN_PARAMETERS, SECRET_EXFILTRATION} if guessed else violations)


def _refused_policies(case: Case, error: Problem | None) -> tuple[PolicyCheck, ...] | None:
    """Return the policy checks of a tool that was refused before its assessment (spec 5.2)."""
    if case.action.type != TOOL_CALL or error is None or error.code != ErrorCode.TOOL_NOT_ALLOWED.code:
        return None
    recorded = (PolicyCheck("rate_limit", True),) if "rate_limit" in case.checks_passed else ()
    return (*recorded, PolicyCheck("tool_allowed", False))


def _verification_of(case: Case, error: Problem | None) -> Verification | None:
    verdict = case.verdict or _refused_by_permission(case, error)
    if verdict is None:
        return None
    refused_by_trust = error is not None and error.check == "trust_level_sufficient"
    return Verification(
        status=verdict.status.on_agent_wire,
        engine=verdict.engine,
        risk_level=case.risk.word,
        checks_passed=(*verdict.checks_passed, *filter(_ALWAYS_NAMED.__contains__, case.checks_passed)),
        checks_failed=(*verdict.checks_failed, "trust_level_sufficient") if refused_by_trust else verdict.checks_failed,
        effects=tuple([{"effect": effect.kind, "target": effect.target} for effect in verdict.effects]),
        message=verdict.message if verdict.message.isprintable() else printable(verdict.message),
    )


def _refused_by_permission(case: Case, error: Problem | None) -> Verdict | None:
    if error is None or error.code != ErrorCode.TOOL_NOT_ALLOWED.code:
        return None
    engine = case.resolved_action.analyzer if case.resolved_action is not None else TOOL
    check = error.check or "tool_allowed"
    return Verdict(status=Status.BLOCKED, engine=engine, message=error.message, checks_failed=(check,))


def _verified_query(case: Case) -> str | None:
    executable_text = None if case.resolved_action is None else case.resolved_action.executable_text
    if executable_text is None:
        return text_of(case.executable or case.action, "query") or None
    if case.executable is None:
        return executable_text.original or None
    text = value_at(msgspec.json.decode(case.executable.canonical), executable_text.path)
    return text if isinstance(text, str) else None


def _risk_assessment_of(case: Case, decision: Decision) -> RiskAssessment:
    return RiskAssessment(
        base_risk=case.resolved_action.base.word,
        factors=case.factors,
        final_risk=case.risk.word,
        requires_approval=decision is Decision.PENDING,
    )
