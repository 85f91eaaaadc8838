"""Counts and sums within a message: what it says of itself against what is in it, each to be redone by hand."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from qwed.words.exact import EXACT, shown
from qwed_finance._iso.node import Findings, Node

_FEW = 6


def total(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum, whatever the caller's decimal context."""
    result = Decimal(0)
    for each in amounts:
        result = EXACT.add(result, each)
    return result


def number(node: Node) -> Decimal:
    """The value of an element whose form was found sound."""
    return Decimal(node.text)


def written(amounts: Sequence[Decimal]) -> str:
    """`10.00 + 5.00 + ... + 2.00 (12 amounts)`."""
    if not amounts:
        return "0 (no amounts)"
    if len(amounts) <= _FEW:
        return " + ".join(map(_term, amounts))
    return f"{_term(amounts[0])} + {_term(amounts[1])} + ... + {_term(amounts[-1])} ({len(amounts)} amounts)"


def _term(amount: Decimal) -> str:
    return shown(amount) if amount >= 0 else f"({shown(amount)})"


def same_count(claim: Node | None, many: int, of: str, found: Findings) -> None:
    """Whether an element that says how many there are is right."""
    if claim is None:
        return
    step = f"count {of}: {many}; `{claim.name}` says {claim.text}"
    if int(claim.text) == many:
        found.hold(claim, step)
    else:
        found.fail(claim, "count", f"`{claim.name}` says {claim.text}, but {of} are {many}", step)


def same_sum(claim: Node | None, amounts: Sequence[Decimal], of: str, found: Findings, rule: str = "sum") -> None:
    """Whether an element that says what the amounts come to is right."""
    if claim is None:
        return
    exact = total(amounts)
    step = f"add {of}: {written(amounts)} = {shown(exact)}; `{claim.name}` says {claim.text}"
    if number(claim) == exact:
        found.hold(claim, step)
    else:
        off = shown(EXACT.subtract(number(claim), exact))
        found.fail(claim, rule, f"`{claim.name}` says {claim.text}, {of} come to {shown(exact)} (off by {off})", step)
