"""Answers of the kernel in the wire format of spec 4.2, 5.2 and 6.3. Structs, because one is encoded per request."""

from typing import Any

import msgspec

from qwed.guards.secrets import mask
from qwed.kernel.privacy.masking import mask_value
from qwed.ledger.attest import Receipt
from qwed.model import Decision, ErrorCode, Facts


class Problem(msgspec.Struct, gc=False, frozen=True, kw_only=True, omit_defaults=True):
    """Error of an answer: cause, failed check, whether a retry can help, and a suggestion (ruling 4.11)."""

    code: str
    message: str
    details: dict[str, Any]
    final: bool
    check: str | None = None
    suggestion: str | None = None
    retry_after: int | None = None


class PendingCause(msgspec.Struct, gc=False, frozen=True, kw_only=True):
    """Why a person must approve an action: the check that asks, none where trust and risk do (ruling 4.27)."""

    check: str | None
    message: str
    details: dict[str, Any]
    checks_failed: tuple[str, ...]


class Verification(msgspec.Struct, gc=False, frozen=True, kw_only=True):
    """Result of the engine, in the words of the agent API."""

    status: str
    engine: str
    risk_level: str
    checks_passed: tuple[str, ...]
    checks_failed: tuple[str, ...]
    effects: tuple[dict[str, str], ...]
    message: str = ""


class Factor(msgspec.Struct, gc=False, frozen=True):
    """One reason why a tool call is riskier than its name suggests."""

    factor: str
    weight: float


class RiskAssessment(msgspec.Struct, gc=False, frozen=True, kw_only=True):
    """Risk assessment of a tool call (spec 5.2)."""

    base_risk: str
    factors: tuple[Factor, ...]
    final_risk: str
    requires_approval: bool


class PolicyCheck(msgspec.Struct, gc=False, frozen=True):
    """One policy check (spec 5.2, `policy_checks`)."""

    policy: str
    passed: bool


class DecidingRule(msgspec.Struct, gc=False, frozen=True, kw_only=True, omit_defaults=True):
    """Rule of the organisation's policies that decided, and the version of the policy set it is from."""

    policy: str
    rule: str
    then: str
    version: int
    message: str = ""
    approvers: tuple[str, ...] = ()
    """Groups of which one key each must approve."""


class Remaining(msgspec.Struct, gc=False, frozen=True, kw_only=True):
    """Remaining budget; null is no limit (spec 4.2, `budget_remaining`)."""

    daily_cost_usd: int | float | None
    hourly_requests: int | None


class Answer(msgspec.Struct, gc=False, frozen=True, kw_only=True, omit_defaults=True):
    """Answer to a request for a decision, or the refusal before one."""

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
    policy: DecidingRule | None = None
    facts: Facts | None = None

    @property
    def permits(self) -> bool:
        """True if the action may happen."""
        return self.decision.permits

    @property
    def http(self) -> int:
        """HTTP status: 200 for every decision, else the status of the error code (ruling 4.9)."""
        return 200 if self.error is None else HTTP[self.error.code]


HTTP = {row.code: row.http for row in ErrorCode}
"""HTTP status of each error code."""


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
    """Build the error of an answer; missing parts are taken from the error code's row."""
    return Problem(
        code=code.code,
        message=printable(mask(message)) if message else code.meaning,
        details=mask_value(details) if details else {},
        final=code.final if final is None else final,
        check=check or code.check,
        suggestion=suggestion or code.advice,
        retry_after=retry_after,
    )


def denied(code: ErrorCode, message: str = "", **more: Any) -> Answer:
    """Build a DENIED answer."""
    return Answer(decision=Decision.DENIED, error=problem(code, message, **more))


def printable(text: str) -> str:
    """Return the text with every non-printable character replaced, so that it cannot deceive a terminal or a reader."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)
