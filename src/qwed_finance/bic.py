"""ISO 9362 business identifier codes. They have no check digits: only the form and the country are checked."""

import re
from dataclasses import dataclass
from typing import Any

from qwed.packs.countries import COUNTRIES
from qwed.packs.result import Result, status_of, unverifiable_on_error
from qwed_finance._iso.mod97 import CodeCheck

RULE = (
    "ISO 9362:2022: four letters or digits of the party, a country of ISO 3166-1 (or XK), two characters of the place, "
    "and three of the branch or none"
)
EXTRA_COUNTRIES = {"XK": "Kosovo"}
"""Country codes that SWIFT assigns outside ISO 3166-1."""

_FORM = re.compile(r"([A-Z0-9]{4})([A-Z]{2})([A-Z0-9]{2})([A-Z0-9]{3})?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class BICResult(Result):
    """Result of a BIC check, with the parts if the form matches."""

    bic: str | None = None
    party: str | None = None
    country: str | None = None
    place: str | None = None
    branch: str | None = None
    """None for the head office, also written `XXX`."""


@unverifiable_on_error(BICResult)
def check_bic(bic: Any) -> BICResult:
    """Verify that this has the form of a BIC of an existing country; the bank itself is not checked."""
    if not isinstance(bic, str) or not bic:
        return BICResult.unverifiable("`bic` must be a text such as `DEUTDEFF` or `DEUTDEFF500`")
    check, parts = examine_bic(bic), _FORM.fullmatch(bic)
    components: dict[str, Any] = (
        dict(zip(("party", "country", "place", "branch"), parts.groups(), strict=True)) if parts else {}
    )
    return BICResult(
        status=status_of(check.holds),
        message=check.message,
        rule=RULE,
        by_hand=check.by_hand,
        bic=bic[:40],
        **components,
    )


def examine_bic(text: str) -> CodeCheck:
    """Check the form and the country of a BIC, with the steps to reproduce it."""
    match = _FORM.fullmatch(text)
    if match is None:
        return CodeCheck.no(
            f"`{text[:40]}` does not have the form of a BIC: 8 or 11 capitals and digits, letters at 5 and 6",
            (f"count the characters of `{text[:40]}`: {len(text)}, and look for letters at 5 and 6",),
        )
    steps = (f"characters 5 and 6 of `{text}` are `{match[2]}`, look it up in ISO 3166-1",)
    if not is_country(match[2]):
        return CodeCheck.no(f"`{match[2]}` in the BIC `{text}` is not a country", steps)
    return CodeCheck.yes(f"`{text}` has the form of a BIC of `{match[2]}`", steps)


def is_country(country: str) -> bool:
    """Return True if the code is a country of ISO 3166-1 or one that SWIFT adds."""
    return country in COUNTRIES or country in EXTRA_COUNTRIES
