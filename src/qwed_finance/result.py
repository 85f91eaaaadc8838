"""What the finance verifier answers."""

from dataclasses import dataclass
from decimal import Decimal

from qwed.packs.result import Result


@dataclass(frozen=True, kw_only=True)
class FinanceResult(Result):
    """A claimed value beside the one that was computed."""

    llm_value: Decimal | None = None
    """The claim; of a percentage the fraction."""
    computed_value: Decimal | None = None
    """Rounded half up to the decimals that the claim was held against."""
    difference: Decimal | None = None
    """The claim less the computed value."""
    formula_used: str = ""
    precision: int | None = None
    """How many decimals an amount was held to at least."""
    currency: str | None = None
    """The currency that the claim names."""
