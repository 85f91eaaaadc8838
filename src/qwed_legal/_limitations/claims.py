"""Claim types by their names, and the row of the table that holds for a claim on a day."""

import re
from datetime import date

from qwed.packs.result import Unreadable, unknown
from qwed_legal._limitations.places import PLACES
from qwed_legal._limitations.rows import ROWS, Row

_NAMES = {
    "breach_of_contract": (
        "contract contracts written_contract written_contracts contract_written written_agreement contract_breach "
        "breach_of_written_contract breach_of_contract_written breach_of_agreement contract_dispute"
    ),
    "breach_of_oral_contract": (
        "oral_contract oral_contracts contract_oral oral_agreement verbal_contract verbal_agreement unwritten_contract "
        "breach_of_contract_oral"
    ),
    "personal_injury": "personal_injuries bodily_injury injury injury_to_person injury_to_the_person",
    "medical_malpractice": "medical_negligence clinical_negligence med_mal medmal malpractice",
    "property_damage": (
        "damage_to_property damage_to_personal_property personal_property_damage injury_to_property "
        "injury_to_personal_property"
    ),
    "fraud": "deceit civil_fraud common_law_fraud fraudulent_misrepresentation",
    "defamation": (
        "libel_slander libel_and_slander libel_or_slander slander_libel slander_and_libel defamation_libel_slander"
    ),
    "product_liability": "products_liability product_defect defective_product strict_product_liability",
    "sale_of_goods": "ucc_sale_of_goods breach_of_warranty",
    "open_account": "account open_accounts debt debt_collection",
    "specialty": "deed contract_under_seal",
}
_ALSO = {also: claim for claim, names in _NAMES.items() for also in names.split()}
_LESS_EXACT = {"libel": "defamation", "slander": "defamation"}
_EXACT = {"defamation_libel": "libel", "defamation_slander": "slander"}
_STATES_ONLY = {"negligence": "personal_injury"}
"""In the states negligence is asked for with injuries in mind; elsewhere it has a row of its own, or none."""
_LONGEST = 60
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")


def _named(given: object) -> str:
    """In snake_case: `Breach of contract (oral)` and `personalInjury` too."""
    text = given if isinstance(given, str) and len(given) <= _LONGEST else ""
    name = "_".join("".join(each if each.isalnum() else " " for each in _HUMP.sub(" ", text)).casefold().split())
    return _EXACT.get(name, name)


def _names(place: str, given: object) -> list[str]:
    """The names to look under, the most exact first."""
    name = _named(given)
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
