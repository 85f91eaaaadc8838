"""Result of the finance verifier."""

from dataclasses import dataclass
from decimal import Decimal

from qwed.packs.result import Result


@dataclass(frozen=True, kw_only=True)
class FinanceResult(Result):
    """Claimed value and computed value."""

    llm_value: Decimal | None = None
    """Claimed value; a percentage is a fraction."""
    computed_value: Decimal | None = None
    """Computed value, rounded half up to the compared decimals."""
    difference: Decimal | None = None
    """Claimed value minus computed value."""
    formula_used: str = ""
    precision: int | None = None
    """Minimum number of compared decimals of an amount."""
    currency: str | None = None
    """Currency named in the claim."""
