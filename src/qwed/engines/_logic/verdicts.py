"""What the logic engine answers, and the words it answers with."""

from collections.abc import Mapping
from typing import Any

from qwed.engines._logic.syntax import Refusal
from qwed.words import Status, Verdict

TYPED = ("syntax_valid", "well_typed")
_RAN_OUT = ("timeout", "canceled", "resource limit", "max. memory", "interrupted")


def verdict(
    status: Status,
    message: str,
    *,
    passed: tuple[str, ...] = (),
    failed: tuple[str, ...] = (),
    result: Mapping[str, Any] | None = None,
    before: tuple[str, ...] = TYPED,
) -> Verdict:
    """A verdict of this engine; `before` are the checks that came first."""
    checks = tuple(check for check in before if check not in failed)
    return Verdict(
        status=status,
        engine="logic",
        message=message,
        checks_passed=checks + passed,
        checks_failed=failed,
        result=dict(result or {}),
    )


def inconclusive(message: str, check: str, *, before: tuple[str, ...] = TYPED, **result: Any) -> Verdict:
    """Nothing is claimed either way."""
    return verdict(Status.INCONCLUSIVE, message, failed=(check,), result=result, before=before)


def division(check: str) -> Verdict:
    """The answer would be another where a denominator is zero."""
    message = "it depends on a division by zero, add that the denominator is not 0"
    return inconclusive(message, check, reason="division_by_zero")


def undecided(solver: Any, check: str) -> Verdict:
    """The solver gave up, or ran into a limit."""
    reason = str(solver.reason_unknown())
    message = f"could not be decided: {reason}"
    if any(word in reason for word in _RAN_OUT):
        return inconclusive(message, check, error="TIMEOUT", reason=reason)
    return inconclusive(message, check, reason=reason)


def refused(refusal: Refusal) -> Verdict:
    """BLOCKED: the text is wrong, whatever it claims."""
    parses = refusal.error == "TYPE_ERROR"
    before, failed = (("syntax_valid",), ("well_typed",)) if parses else ((), ("syntax_valid",))
    result = {"error": refusal.error, "position": refusal.at}
    return verdict(Status.BLOCKED, refusal.message, failed=failed, result=result, before=before)
