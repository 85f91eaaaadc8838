"""Claim types by name, and lookup of the row for a claim on a day."""

import re
from datetime import date

from qwed.packs.result import UnreadableInputError, unknown_name_error
from qwed_legal._limitations.places import PLACES
from qwed_legal._limitations.table import ROWS, LimitationRow

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
_ALIASES = {also: claim for claim, names in _NAMES.items() for also in names.split()}
_LESS_EXACT = {"libel": "defamation", "slander": "defamation"}
_EXACT = {"defamation_libel": "libel", "defamation_slander": "slander"}
_US_STATE_ALIASES = {"negligence": "personal_injury"}
"""In the US states, negligence means personal injury; elsewhere it has its own row or none."""
_MAX_NAME = 60
_CAMEL_BOUNDARY = re.compile("(?<=[a-z])(?=[A-Z])")


def _normalise(value: object) -> str:
    """Return the name in snake_case, also for `Breach of contract (oral)` and `personalInjury`."""
    text = value if isinstance(value, str) and len(value) <= _MAX_NAME else ""
    name = "_".join(
        "".join(character if character.isalnum() else " " for character in _CAMEL_BOUNDARY.sub(" ", text))
        .casefold()
        .split()
    )
    return _EXACT.get(name, name)


def _candidate_names(place: str, value: object) -> list[str]:
    """Return the names to look up, the most exact first."""
    name = _normalise(value)
    names = [name, _ALIASES.get(name, ""), _LESS_EXACT.get(name, "")]
    return [*names, _US_STATE_ALIASES.get(name, "")] if place.startswith("US-") else names


def find_row(place: str, value: object, incident: date) -> LimitationRow:
    """Return the row for the claim. Raise UnreadableInputError with the known names or periods if none matches."""
    claims = ROWS[place]
    claim = next((name for name in _candidate_names(place, value) if name in claims), None)
    if claim is None:
        raise unknown_name_error(f"claim type for {PLACES[place]}", value, claims)
    valid_rows = [row for row in claims[claim] if row.since <= incident < row.before]
    if not valid_rows:
        raise UnreadableInputError(
            f"the period of `{claim}` in {PLACES[place]} for an incident on {incident} is not in the table",
            (_describe_row(row) for row in claims[claim]),
        )
    return valid_rows[0]


def _describe_row(row: LimitationRow) -> str:
    since = "" if row.since == date.min else f" since {row.since}"
    before = "" if row.before == date.max else f" before {row.before}"
    return f"{row.period}{since}{before}"
