"""Claim types by their names, and the row of the table that holds for a claim on a day."""

from datetime import date

from qwed.packs.result import Unreadable, unknown
from qwed_legal._limitations.places import PLACES
from qwed_legal._limitations.rows import ROWS, Row

_ALSO = {
    "contract": "breach_of_contract",
    "written_contract": "breach_of_contract",
    "breach_of_written_contract": "breach_of_contract",
    "oral_contract": "breach_of_oral_contract",
    "verbal_contract": "breach_of_oral_contract",
    "bodily_injury": "personal_injury",
    "medical_negligence": "medical_malpractice",
    "clinical_negligence": "medical_malpractice",
    "damage_to_property": "property_damage",
    "deceit": "fraud",
    "products_liability": "product_liability",
    "ucc_sale_of_goods": "sale_of_goods",
    "breach_of_warranty": "sale_of_goods",
    "account": "open_account",
    "open_accounts": "open_account",
    "debt": "open_account",
    "deed": "specialty",
    "contract_under_seal": "specialty",
}
_LESS_EXACT = {"libel": "defamation", "slander": "defamation"}
_STATES_ONLY = {"negligence": "personal_injury"}
"""In the states negligence is asked for with injuries in mind; elsewhere it has a row of its own, or none."""
_LONGEST = 60


def _names(place: str, given: object) -> list[str]:
    """The names to look under, the most exact first."""
    text = given if isinstance(given, str) and len(given) <= _LONGEST else ""
    name = "_".join(text.casefold().replace("-", " ").replace("_", " ").replace("/", " ").split())
    names = [name, _ALSO.get(name, ""), _LESS_EXACT.get(name, "")]
    return [*names, _STATES_ONLY.get(name, "")] if place.startswith("US-") else names


def row_of(place: str, given: object, incident: date) -> Row:
    """The row that holds; Unreadable lists the claim types of the place, or the days that there are rows for."""
    claims = ROWS[place]
    claim = next((name for name in _names(place, given) if name in claims), None)
    if claim is None:
        raise unknown(f"claim type for {PLACES[place]}", given, claims)
    held = [row for row in claims[claim] if row.since <= incident < row.before]
    if not held:
        raise Unreadable(
            f"the period of `{claim}` in {PLACES[place]} for an incident on {incident} is not in the table",
            (_span(row) for row in claims[claim]),
        )
    return held[0]


def _span(row: Row) -> str:
    since = "" if row.since == date.min else f" since {row.since}"
    before = "" if row.before == date.max else f" before {row.before}"
    return f"{row.period}{since}{before}"
