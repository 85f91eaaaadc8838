"""Verdicts of the logic engine."""

from collections.abc import Mapping
from typing import Any

from qwed.engines._logic.sexpr import LogicRefusalError
from qwed.model import Status, Verdict

TYPE_CHECKS = ("syntax_valid", "well_typed")
_LIMIT_REASONS = ("timeout", "canceled", "resource limit", "max. memory", "interrupted")


def make_verdict(
    status: Status,
    message: str,
    *,
    passed: tuple[str, ...] = (),
    failed: tuple[str, ...] = (),
    result: Mapping[str, Any] | None = None,
    before: tuple[str, ...] = TYPE_CHECKS,
) -> Verdict:
    """Return a verdict of this engine; `before` are the checks that ran first."""
    checks = tuple(check for check in before if check not in failed)
    return Verdict(
        status=status,
        engine="logic",
        message=message,
        checks_passed=checks + passed,
        checks_failed=failed,
        result=dict(result or {}),
    )


def inconclusive(message: str, check: str, *, before: tuple[str, ...] = TYPE_CHECKS, **result: Any) -> Verdict:
    """Return a verdict that decides nothing."""
    return make_verdict(Status.INCONCLUSIVE, message, failed=(check,), result=result, before=before)


def division_by_zero(check: str) -> Verdict:
    """Return the verdict on a result that depends on a division by zero."""
    message = "it depends on a division by zero, add that the denominator is not 0"
    return inconclusive(message, check, reason="division_by_zero")


def undecided(solver: Any, check: str) -> Verdict:
    """Return the verdict when the solver gave up or reached a limit."""
    reason = str(solver.reason_unknown())
    message = f"could not be decided: {reason}"
    if any(word in reason for word in _LIMIT_REASONS):
        return inconclusive(message, check, error="TIMEOUT", reason=reason)
    return inconclusive(message, check, reason=reason)


def refused_verdict(refusal: LogicRefusalError) -> Verdict:
    """Return BLOCKED for a malformed text."""
    parses = refusal.error == "TYPE_ERROR"
    before, failed = (("syntax_valid",), ("well_typed",)) if parses else ((), ("syntax_valid",))
    result = {"error": refusal.error, "position": refusal.at}
    return make_verdict(Status.BLOCKED, refusal.message, failed=failed, result=result, before=before)
