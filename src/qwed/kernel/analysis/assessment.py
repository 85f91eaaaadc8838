"""Assessment of an action: the part of a decision that does not depend on the time of the request, and its cache.

The result of all stages from `check_permissions` to `decide` is a pure function of the agent, the tool registry, the
action and the risk threshold. It is cached until one of them changes; step, loops, budget and record are not cached.
"""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.analysis.content_scan import scan_content
from qwed.kernel.analysis.executable_text import value_at
from qwed.kernel.analysis.tool_analyzers import SECRET_EXFILTRATION, SECRET_IN_PARAMETERS
from qwed.kernel.answer import Answer, PolicyCheck, Problem, RiskAssessment, Verification, verification_of
from qwed.kernel.case import Case
from qwed.kernel.privacy.masking import mask_value
from qwed.kernel.privacy.payload import Payload, encode_payload, redacted_action
from qwed.kernel.privacy.redaction import Redactor
from qwed.kernel.tools import TOOL_CALL, text_of
from qwed.model import Decision, EffectKind, ErrorCode, Risk, Status, Verdict
from qwed.settings import VERSION as SETTINGS_VERSION
from qwed.store.agent import Agent

MAX_ENTRIES = 20_000
MAX_PAYLOAD_LENGTH = 4_096
"""Larger assessments are not cached: all agents share the memory of one cache."""

_BUDGET_PASSED = ("agent_active", "within_budget")
_TRUST_PASSED = (*_BUDGET_PASSED, "trust_level_sufficient")
_CACHEABLE_ERRORS = frozenset({ErrorCode.TOOL_NOT_ALLOWED.code, ErrorCode.UNKNOWN_ACTION_TYPE.code})
_UNCACHEABLE_STATUSES = frozenset({Status.INCONCLUSIVE, Status.ERROR, Status.UNKNOWN})


NO_TRUST_PENALTY = frozenset({"unresolved_statement"})
"""Refused like a violation, but an honest mistake: a statement that cannot be resolved, such as VACUUM or CALL."""


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """Verdict, risk and decision, in the forms in which they are answered and stored."""

    decision: Decision
    refusal: Answer | None
    risk: Risk
    verification: Verification | None
    verified_query: str | None
    corrected: dict[str, Any] | None
    has_secret: bool
    """True if the action contains a secret, so that its hash is not stored."""
    violation: bool
    """True if it broke a security rule, which costs trust (ruling 4.2)."""
    policy_hash: str | None
    tool_name: str | None
    risk_assessment: RiskAssessment | None
    policy_checks: tuple[PolicyCheck, ...] | None
    payload: Payload
    encoded_payload: str
    """The encoded payload for a request without further statements."""


def assess(case: Case, refusal: Answer | None) -> Assessment:
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
    )
    return Assessment(
        decision=decision,
        refusal=refusal,
        risk=case.risk,
        verification=verification,
        verified_query=_verified_query(case) if decision.permits else None,
        corrected=None if case.corrected is None or decision is Decision.DENIED else dict(case.corrected),
        has_secret=secret,
        violation=case.verdict is not None and _costs_trust(case, case.verdict),
        policy_hash=_policy_hash(case) if resolved_action is not None else None,
        tool_name=tool_name,
        risk_assessment=_risk_assessment_of(case, decision) if is_tool else None,
        policy_checks=policies,
        payload=payload,
        encoded_payload=encode_payload(payload),
    )


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
    return (PolicyCheck("rate_limit", True), PolicyCheck("tool_allowed", False))


def _policy_hash(case: Case) -> str:
    return case.agent.policy_hash(case.resolved_action.name, case.resolved_action.tool, SETTINGS_VERSION)


def _verification_of(case: Case, error: Problem | None) -> Verification | None:
    if case.verdict is None:
        return _refused_by_permission(case, error)
    verification = verification_of(case.verdict, case.risk)
    refused_by_trust = error is not None and error.check == "trust_level_sufficient"
    passed = _TRUST_PASSED if error is None else _BUDGET_PASSED
    failed = (*verification.checks_failed, "trust_level_sufficient") if refused_by_trust else verification.checks_failed
    return msgspec.structs.replace(
        verification, checks_passed=verification.checks_passed + passed, checks_failed=failed
    )


def _refused_by_permission(case: Case, error: Problem | None) -> Verification | None:
    if error is None or error.code != ErrorCode.TOOL_NOT_ALLOWED.code:
        return None
    return Verification(
        status=Status.BLOCKED,
        engine=case.resolved_action.analyzer if case.resolved_action is not None else "tool",
        risk_level=case.risk.word,
        checks_passed=_BUDGET_PASSED,
        checks_failed=(error.check or "tool_allowed",),
        effects=(),
        message=error.message,
    )


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


class _CacheEntry(NamedTuple):
    """An assessment and the objects it was made from, compared by identity because a change replaces them."""

    agent: Agent
    tools: Mapping[str, bytes]
    assessment: Assessment


_CacheKey = tuple[str, str, Risk, tuple[EffectKind, ...]]


def _cache_key_of(case: Case) -> _CacheKey:
    return case.agent_id, case.action_hash, case.options.risk_threshold, case.action.effects


class AssessmentCache:
    """Cache of recent assessments. Safe to use from any thread."""

    def __init__(self) -> None:
        self._entries: OrderedDict[_CacheKey, _CacheEntry] = OrderedDict()
        self._lock = Lock()

    def find(self, case: Case, tools: Mapping[str, bytes]) -> Assessment | None:
        """Return the cached assessment of this action for the unchanged agent and tools, or None."""
        entry = self._entries.get(_cache_key_of(case))
        if entry is None or entry.agent is not case.agent or entry.tools is not tools:
            return None
        return entry.assessment

    def keep(self, case: Case, tools: Mapping[str, bytes], assessment: Assessment) -> None:
        """Store an assessment, unless it might be different next time."""
        if not _is_cacheable(case, assessment):
            return
        with self._lock:
            self._entries[_cache_key_of(case)] = _CacheEntry(case.agent, tools, assessment)
            if len(self._entries) > MAX_ENTRIES:
                self._entries.popitem(last=False)

    def forget(self) -> None:
        """Clear the cache: it may contain data of an erased subject."""
        with self._lock:
            self._entries.clear()


def _is_cacheable(case: Case, assessment: Assessment) -> bool:
    if len(assessment.encoded_payload) > MAX_PAYLOAD_LENGTH:
        return False
    if case.verdict is not None:
        return case.cacheable and case.verdict.status not in _UNCACHEABLE_STATUSES
    refusal = assessment.refusal
    return refusal is not None and refusal.error is not None and refusal.error.code in _CACHEABLE_ERRORS
