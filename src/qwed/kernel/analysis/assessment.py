"""`Assessment`: the part of a decision that does not depend on the time of the request, and its cache.

It is cached until one of the inputs of `assess` changes; step, loops, budget and record are not cached.
"""

from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from qwed.domain.agent import Agent
from qwed.kernel.answer import Answer, PendingCause, PolicyCheck, RiskAssessment, Verification
from qwed.kernel.case import Case
from qwed.kernel.privacy.payload import Payload
from qwed.model import NO_FACTS, Decision, EffectKind, Facts, Risk
from qwed.model.lru_cache import LruCache

MAX_ENTRIES = 20_000


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
    """True if what would be executed breaks a security rule, which costs trust at once (ruling 4.24)."""
    misconduct: bool = False
    """True if the verification failed or was blocked, or the tool is blocked: repeated, it costs trust."""
    policy_hash: str | None
    tool_name: str | None
    risk_assessment: RiskAssessment | None
    policy_checks: tuple[PolicyCheck, ...] | None
    payload: Payload
    encoded_payload: str
    """The encoded payload for a request without further statements."""
    basis: Case | None = None
    """The analyzed action, on which policies are evaluated; None for one that is final, or that they have judged."""
    is_final: bool = True
    """True if no policy can change it: a hard limit refuses the action, or it is a message."""
    facts: Facts = NO_FACTS
    """Findings in the action, in the form that policies read; its secrets are not masked."""
    pending_cause: PendingCause | None = None
    cacheable: bool = False
    """True if the same action would get the same assessment next time."""


class _CacheEntry(NamedTuple):
    """An assessment and the objects it was made from, compared by identity because a change replaces them."""

    agent: Agent
    tools: Mapping[str, bytes]
    assessment: Assessment


_CacheKey = tuple[str, str, Risk, tuple[EffectKind, ...], tuple[str, ...]]


class AssessmentCache:
    """Cache of recent assessments. Safe to use from any thread."""

    def __init__(self) -> None:
        self._entries: LruCache[_CacheKey, _CacheEntry] = LruCache(MAX_ENTRIES)
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, case: Case) -> Assessment | None:
        """Return the cached assessment of this action for the unchanged agent and tools, or None."""
        entry = self._entries.get(
            (case.agent_id, case.action_hash, case.options.risk_threshold, case.action.effects, case.checks_passed)
        )
        if entry is None or entry.agent is not case.agent or entry.tools is not case.tools:
            return None
        return entry.assessment

    def keep(self, case: Case, assessment: Assessment) -> None:
        """Store an assessment, unless it might be different next time."""
        if not assessment.cacheable:
            return
        with self._lock:
            key = (
                case.agent_id,
                case.action_hash,
                case.options.risk_threshold,
                case.action.effects,
                case.checks_passed,
            )
            self._entries[key] = _CacheEntry(case.agent, case.tools, assessment)

    def forget(self) -> None:
        """Clear the cache: it may contain data of an erased subject."""
        with self._lock:
            self._entries.clear()
