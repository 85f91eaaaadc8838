"""Checks of counts and sums that a message states about its own content."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from qwed.model.decimals import EXACT, format_decimal
from qwed_finance._iso.node import Element, MessageIssues

_MAX_LISTED = 6


def sum_exact(amounts: Iterable[Decimal]) -> Decimal:
    """Return the exact sum, independent of the caller's decimal context."""
    result = Decimal(0)
    for amount in amounts:
        result = EXACT.add(result, amount)
    return result


def decimal_of(node: Element) -> Decimal:
    """Return the value of an element with a valid number."""
    return Decimal(node.text)


def format_sum(amounts: Sequence[Decimal]) -> str:
    """Format the terms: `10.00 + 5.00 + ... + 2.00 (12 amounts)`."""
    if not amounts:
        return "0 (no amounts)"
    if len(amounts) <= _MAX_LISTED:
        return " + ".join(map(_term, amounts))
    return f"{_term(amounts[0])} + {_term(amounts[1])} + ... + {_term(amounts[-1])} ({len(amounts)} amounts)"


def _term(amount: Decimal) -> str:
    return format_decimal(amount) if amount >= 0 else f"({format_decimal(amount)})"


def check_count(claim: Element | None, count: int, description: str, issues: MessageIssues) -> None:
    """Check an element that states a count."""
    if claim is None:
        return
    step = f"count {description}: {count}; `{claim.name}` says {claim.text}"
    if int(claim.text) == count:
        issues.confirm(claim, step)
    else:
        issues.fail(claim, "count", f"`{claim.name}` says {claim.text}, but {description} are {count}", step)


def check_sum(
    claim: Element | None, amounts: Sequence[Decimal], description: str, issues: MessageIssues, rule: str = "sum"
) -> None:
    """Check an element that states a sum."""
    if claim is None:
        return
    exact = sum_exact(amounts)
    step = f"add {description}: {format_sum(amounts)} = {format_decimal(exact)}; `{claim.name}` says {claim.text}"
    if decimal_of(claim) == exact:
        issues.confirm(claim, step)
    else:
        off = format_decimal(EXACT.subtract(decimal_of(claim), exact))
        issues.fail(
            claim,
            rule,
            f"`{claim.name}` says {claim.text}, {description} come to {format_decimal(exact)} (off by {off})",
            step,
        )
