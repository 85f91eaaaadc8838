"""ISO 9362: codes of banks and businesses. They have no check digits: form, and a country that exists."""

import re
from dataclasses import dataclass
from typing import Any

from qwed.packs.countries import COUNTRIES
from qwed.packs.result import Result, answering, standing
from qwed_finance._iso.mod97 import Check

RULE = (
    "ISO 9362:2022: four letters or digits of the party, a country of ISO 3166-1 (or XK), two characters of the place, "
    "and three of the branch or none"
)
ALSO = {"XK": "Kosovo"}
"""Codes that SWIFT assigns without ISO 3166-1."""

_FORM = re.compile(r"([A-Z0-9]{4})([A-Z]{2})([A-Z0-9]{2})([A-Z0-9]{3})?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class BICResult(Result):
    """Whether it is a BIC, and its parts where it has the form of one."""

    bic: str | None = None
    party: str | None = None
    country: str | None = None
    place: str | None = None
    branch: str | None = None
    """None for the head office, which `XXX` stands for too."""


@answering(BICResult)
def check_bic(bic: Any) -> BICResult:
    """Whether this has the form of a BIC of a country that exists; never that the bank does."""
    if not isinstance(bic, str) or not bic:
        return BICResult.unverifiable("`bic` must be a text such as `DEUTDEFF` or `DEUTDEFF500`")
    found, parts = examine(bic), _FORM.fullmatch(bic)
    named: dict[str, Any] = (
        dict(zip(("party", "country", "place", "branch"), parts.groups(), strict=True)) if parts else {}
    )
    return BICResult(
        status=standing(found.holds), message=found.says, rule=RULE, by_hand=found.by_hand, bic=bic[:40], **named
    )


def examine(text: str) -> Check:
    """Whether it is a BIC, and how to see that by hand."""
    found = _FORM.fullmatch(text)
    if found is None:
        return Check.no(
            f"`{text[:40]}` does not have the form of a BIC: 8 or 11 capitals and digits, letters at 5 and 6",
            (f"count the characters of `{text[:40]}`: {len(text)}, and look for letters at 5 and 6",),
        )
    steps = (f"characters 5 and 6 of `{text}` are `{found[2]}`, look it up in ISO 3166-1",)
    if not exists(found[2]):
        return Check.no(f"`{found[2]}` in the BIC `{text}` is no country", steps)
    return Check.yes(f"`{text}` has the form of a BIC of `{found[2]}`", steps)


def exists(country: str) -> bool:
    """Whether a code is a country of ISO 3166-1 or one that SWIFT adds."""
    return country in COUNTRIES or country in ALSO
