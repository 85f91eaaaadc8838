"""What the kernel says: the wire shape of spec 4.2, 5.2 and 6.3. Structs, because one is encoded for every request."""

from typing import Any

import msgspec

from qwed.guards.secrets import mask
from qwed.kernel.keeping.masking import masked
from qwed.ledger.attest import Receipt
from qwed.words import Decision, Effect, ErrorCode, Risk, Verdict


class Problem(msgspec.Struct, gc=False, frozen=True, kw_only=True, omit_defaults=True):
    """Ruling 4.11: why not, which check said so, whether trying again can help, and what would pass."""

    code: str
    message: str
    details: dict[str, Any]
    final: bool
    check: str | None = None
    suggestion: str | None = None
    retry_after: int | None = None


class Verification(msgspec.Struct, gc=False, frozen=True, kw_only=True):
    """What the engine found, in the words of the agent wire."""

    status: str
    engine: str
    risk_level: str
    checks_passed: tuple[str, ...]
    checks_failed: tuple[str, ...]
    effects: tuple[dict[str, str], ...]
    message: str = ""


class Factor(msgspec.Struct, gc=False, frozen=True):
    """One reason a tool call is riskier than its name."""

    factor: str
    weight: float


class RiskAssessment(msgspec.Struct, gc=False, frozen=True, kw_only=True):
    """Spec 5.2."""

    base_risk: str
    factors: tuple[Factor, ...]
    final_risk: str
    requires_approval: bool


class PolicyCheck(msgspec.Struct, gc=False, frozen=True):
    """Spec 5.2, `policy_checks`."""

    policy: str
    passed: bool


class Remaining(msgspec.Struct, gc=False, frozen=True, kw_only=True):
    """Spec 4.2, `budget_remaining`; null is no limit."""

    daily_cost_usd: int | float | None
    hourly_requests: int | None


class Answer(msgspec.Struct, gc=False, frozen=True, kw_only=True, omit_defaults=True):
    """Every decision, and every refusal before one."""

    decision: Decision
    action_id: str | None = None
    error: Problem | None = None
    verification: Verification | None = None
    verified_query: str | None = None
    corrected: dict[str, Any] | None = None
    attestation: str | Receipt | None = None
    budget_remaining: Remaining | None = None
    approval_id: str | None = None
    expires_at: str | None = None
    tool_name: str | None = None
    risk_assessment: RiskAssessment | None = None
    policy_checks: tuple[PolicyCheck, ...] | None = None

    @property
    def permits(self) -> bool:
        """Whether the action may happen."""
        return self.decision.permits

    @property
    def http(self) -> int:
        """Ruling 4.9: a decision is 200 whatever it says; what was refused before one has the status of its code."""
        return 200 if self.error is None else HTTP[self.error.code]


HTTP = {row.code: row.http for row in ErrorCode}
"""The status each code travels with."""


def problem(
    code: ErrorCode,
    message: str = "",
    *,
    final: bool | None = None,
    check: str | None = None,
    suggestion: str | None = None,
    retry_after: int | None = None,
    details: dict[str, Any] | None = None,
) -> Problem:
    """The error of an answer; what is not given is read off the code's row."""
    return Problem(
        code=code.code,
        message=printable(mask(message)) if message else code.meaning,
        details=masked(details) if details else {},
        final=code.final if final is None else final,
        check=check or code.check,
        suggestion=suggestion or code.advice,
        retry_after=retry_after,
    )


def denied(code: ErrorCode, message: str = "", **more: Any) -> Answer:
    """A refusal."""
    return Answer(decision=Decision.DENIED, error=problem(code, message, **more))


def verification_of(verdict: Verdict, risk: Risk) -> Verification:
    """A verdict in the words of spec 4.2."""
    return Verification(
        status=verdict.status.on_agent_wire,
        engine=verdict.engine,
        risk_level=risk.word,
        checks_passed=verdict.checks_passed,
        checks_failed=verdict.checks_failed,
        effects=tuple(_effect(effect) for effect in verdict.effects),
        message=printable(verdict.message),
    )


def printable(text: str) -> str:
    """The text in one line, without what a terminal or a reader could be fooled by."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in text)


def _effect(effect: Effect) -> dict[str, str]:
    return {"effect": effect.kind, "target": effect.target}
