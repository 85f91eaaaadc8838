"""Parameters that loosen the judgement of a claim, and how far a request may use them.

The judged party sends these parameters, so by itself it may only make the judgement stricter. An entry such as
`tolerance_days=2` in the agent's permissions allows it to go that far.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple


class Strictness(NamedTuple):
    """Value of a parameter at which it begins to loosen the judgement."""

    default: Decimal
    upward: bool = True
    """True if greater values are looser; otherwise smaller ones are, and false counts as 0."""

    def is_looser(self, value: Decimal, limit: Decimal) -> bool:
        """Return True if the value loosens the judgement beyond the limit."""
        return value > limit if self.upward else value < limit


LOOSENING: Mapping[str, Strictness] = {
    "tolerance": Strictness(Decimal(0)),
    "tolerance_days": Strictness(Decimal(0)),
    "tolerance_percent": Strictness(Decimal(0)),
    "precision": Strictness(Decimal(2), upward=False),
    "require_disclosure": Strictness(Decimal(1), upward=False),
    "require_human_review": Strictness(Decimal(0), upward=False),
    "strict_mode": Strictness(Decimal(1), upward=False),
}
"""Parameters of the engines and packs that loosen a judgement."""
VALUE = r"(?:true|false|[0-9]{1,9}(?:\.[0-9]{1,9})?)"
"""Form of a permitted value; true and false are 1 and 0."""
_ENTRY = re.compile(rf"([a-z_]+)=({VALUE})")
_WORDS = {"true": "1", "false": "0"}
_LONGEST = 40


def parse_tolerances(entries: Iterable[str]) -> dict[str, Decimal]:
    """Return the permitted values by parameter; raise ValueError for an entry that is not understood."""
    return dict(map(_parse_entry, entries))


def _parse_entry(entry: str) -> tuple[str, Decimal]:
    match = _ENTRY.fullmatch(entry)
    if match is None or match[1] not in LOOSENING:
        known = ", ".join(LOOSENING)
        raise ValueError(
            f"`{entry[:_LONGEST]}` is not understood: write one such as `tolerance_days=2`, known are {known}"
        )
    return match[1], Decimal(_WORDS.get(match[2], match[2]))
