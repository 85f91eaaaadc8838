"""Solution of a scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from qwed.model.data_files import read_lists, read_table
from qwed_finance._decimal import Computation

LABELS: Mapping[str, Sequence[str]] = read_lists(__file__, "labels.txt")
"""Labels of each quantity in a reasoning."""
OTHER_LABELS = tuple(read_table(__file__, "other_labels.txt").splitlines())
"""Labels of intermediate values in a reasoning."""


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Quantities of a scenario, those asked for, and its yes or no decision."""

    quantities: Mapping[str, Sequence[Computation]]
    asked: Sequence[str]
    inputs: frozenset[Decimal] = frozenset()
    """Numbers of the scenario and of its steps, which a reasoning may repeat."""
    currency: str = ""
    holds: bool | None = None
    """Decision that claims such as `approved` or `sufficient funds` are compared with."""
    reason: str = ""
    """Explanation of the decision."""
    decides: bool = False
    """True if the decision alone answers the scenario."""
    hints: Sequence[Computation] = field(default=())
