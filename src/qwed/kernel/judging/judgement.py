"""What was found out about an action, apart from when and where it was asked.

Everything from `check_permissions` to `decide` is a pure function of the agent as it stands, the tool registry, the
action and the risk threshold. So it is worked out once and remembered until one of them changes; what depends on the
moment (step, loop, budget, record) is asked every time.
"""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from qwed.kernel.answer import Answer, PolicyCheck, Problem, RiskAssessment, Verification, verification_of
from qwed.kernel.case import Case
from qwed.kernel.judging.content import read_content
from qwed.kernel.judging.judges import CARRIED, LEAVES
from qwed.kernel.judging.told import at_place
from qwed.kernel.keeping.hiding import Hiding
from qwed.kernel.keeping.masking import masked
from qwed.kernel.keeping.payload import Payload, encoded, shown_action
from qwed.kernel.tools import TOOL_CALL, text_of
from qwed.settings import VERSION as SETTINGS_VERSION
from qwed.store.agent import Agent
from qwed.words import Decision, EffectKind, ErrorCode, Risk, Status, Verdict

REMEMBERED = 20_000
LARGEST = 4_096
"""A judgement with more content than this is worked out anew: the memory of all agents is one."""

_BUDGET_PASSED = ("agent_active", "within_budget")
_TRUST_PASSED = (*_BUDGET_PASSED, "trust_level_sufficient")
_LASTING = frozenset({ErrorCode.TOOL_NOT_ALLOWED.code, ErrorCode.UNKNOWN_ACTION_TYPE.code})
_UNSETTLED = frozenset({Status.INCONCLUSIVE, Status.ERROR, Status.UNKNOWN})


UNPUNISHED = frozenset({"unresolved_statement"})
"""Refused like a violation, but an honest mistake: a statement we cannot read, such as VACUUM or CALL."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict, the risk and the decision, in the shapes they are answered and kept in."""

    decision: Decision
    refusal: Answer | None
    risk: Risk
    verification: Verification | None
    verified_query: str | None
    corrected: dict[str, Any] | None
    keeps_secret: bool
    """Whether the action carried a secret, so that its hash is not kept either."""
    violation: bool
    """Whether it broke a security rule, which costs trust (ruling 4.2)."""
    policy_hash: str | None
    tool_name: str | None
    risk_assessment: RiskAssessment | None
    policy_checks: tuple[PolicyCheck, ...] | None
    payload: Payload
    kept: str
    """The payload as it is kept when nothing more is said about the request."""


def conclude(case: Case, refusal: Answer | None) -> Judgement:
    """What the walk of `case` through the judging stages came to."""
    decision = case.decision if refusal is None else refusal.decision
    error = None if refusal is None else refusal.error
    verification = _verification_of(case, error)
    subject = case.subject
    called = subject is not None and subject.is_tool
    policies = case.policies if called else _refused_policies(case, error)
    content = read_content(case.action) if case.verdict is None else case.content
    secret = bool(content.secrets)
    tool_name = subject.name if called else (case.action.tool if policies is not None else None)
    hiding = Hiding(case.action) if secret else None
    if hiding is not None:
        verification = None if verification is None else hiding.verification(verification)
        refusal = None if refusal is None else hiding.refusal(refusal)
        error = None if refusal is None else refusal.error
        tool_name = None if tool_name is None else hiding.text(tool_name)
    executable = case.executable or case.action
    payload = Payload(
        action=shown_action(case.action, hiding),
        corrected=case.corrected if hiding is None else hiding.value(masked(case.corrected)),
        error=error,
        verification=verification,
        # What carried a secret leaves no hash of it, unless that is what may be executed.
        action_hash=None if secret else case.action_hash,
        sub=f"sha256:{executable.hash}" if decision.commits else None,
    )
    return Judgement(
        decision=decision,
        refusal=refusal,
        risk=case.risk,
        verification=verification,
        verified_query=_verified_query(case) if decision.permits else None,
        corrected=None if case.corrected is None or decision is Decision.DENIED else dict(case.corrected),
        keeps_secret=secret,
        violation=case.verdict is not None and _punished(case, case.verdict),
        policy_hash=_policy_hash(case) if subject is not None else None,
        tool_name=tool_name,
        risk_assessment=_assessment_of(case, decision) if called else None,
        policy_checks=policies,
        payload=payload,
        kept=encoded(payload),
    )


def _punished(case: Case, verdict: Verdict) -> bool:
    """Whether trust is lost over it. Of a tool that nobody described it is a guess that it runs what it was given:
    that is reason enough to refuse the call, and not to hold it against the agent."""
    found = {*verdict.violations} - UNPUNISHED
    guessed = case.subject.custom and case.subject.told is not None
    return bool(found & {CARRIED, LEAVES} if guessed else found)


def _refused_policies(case: Case, error: Problem | None) -> tuple[PolicyCheck, ...] | None:
    """Spec 5.2 for a tool that never got as far as an assessment."""
    if case.action.type != TOOL_CALL or error is None or error.code != ErrorCode.TOOL_NOT_ALLOWED.code:
        return None
    return (PolicyCheck("rate_limit", True), PolicyCheck("tool_allowed", False))


def _policy_hash(case: Case) -> str:
    return case.agent.policy_hash(case.subject.name, case.subject.row, SETTINGS_VERSION)


def _verification_of(case: Case, error: Problem | None) -> Verification | None:
    if case.verdict is None:
        return _refused_by_permission(case, error)
    found = verification_of(case.verdict, case.risk)
    refused_by_trust = error is not None and error.check == "trust_level_sufficient"
    passed = _TRUST_PASSED if error is None else _BUDGET_PASSED
    failed = (*found.checks_failed, "trust_level_sufficient") if refused_by_trust else found.checks_failed
    return msgspec.structs.replace(found, checks_passed=found.checks_passed + passed, checks_failed=failed)


def _refused_by_permission(case: Case, error: Problem | None) -> Verification | None:
    if error is None or error.code != ErrorCode.TOOL_NOT_ALLOWED.code:
        return None
    return Verification(
        status=Status.BLOCKED,
        engine=case.subject.judge if case.subject is not None else "tool",
        risk_level=case.risk.word,
        checks_passed=_BUDGET_PASSED,
        checks_failed=(error.check or "tool_allowed",),
        effects=(),
        message=error.message,
    )


def _verified_query(case: Case) -> str | None:
    told = None if case.subject is None else case.subject.told
    if told is None:
        return text_of(case.executable or case.action, "query") or None
    if case.executable is None:
        return told.said or None
    text = at_place(msgspec.json.decode(case.executable.canonical), told.place)
    return text if isinstance(text, str) else None


def _assessment_of(case: Case, decision: Decision) -> RiskAssessment:
    return RiskAssessment(
        base_risk=case.subject.base.word,
        factors=case.factors,
        final_risk=case.risk.word,
        requires_approval=decision is Decision.PENDING,
    )


class _Kept(NamedTuple):
    """A judgement, and what it was made under: the very objects, because a change makes new ones."""

    agent: Agent
    tools: Mapping[str, bytes]
    judgement: Judgement


_Place = tuple[str, str, Risk, tuple[EffectKind, ...]]


def _place_of(case: Case) -> _Place:
    return case.agent_id, case.action_hash, case.options.risk_threshold, case.action.effects


class Judgements:
    """The judgements of late. Safe to use from any thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Place, _Kept] = OrderedDict()
        self._lock = Lock()

    def find(self, case: Case, tools: Mapping[str, bytes]) -> Judgement | None:
        """What this agent, as it stands, was told of this very action before."""
        kept = self._kept.get(_place_of(case))
        if kept is None or kept.agent is not case.agent or kept.tools is not tools:
            return None
        return kept.judgement

    def keep(self, case: Case, tools: Mapping[str, bytes], judgement: Judgement) -> None:
        """Remember a judgement, unless it might turn out differently next time."""
        if not _lasts(case, judgement):
            return
        with self._lock:
            self._kept[_place_of(case)] = _Kept(case.agent, tools, judgement)
            if len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)

    def forget(self) -> None:
        """Remember nothing: what was judged may be about somebody who is erased."""
        with self._lock:
            self._kept.clear()


def _lasts(case: Case, judgement: Judgement) -> bool:
    if len(judgement.kept) > LARGEST:
        return False
    if case.verdict is not None:
        return case.lasting and case.verdict.status not in _UNSETTLED
    refusal = judgement.refusal
    return refusal is not None and refusal.error is not None and refusal.error.code in _LASTING
