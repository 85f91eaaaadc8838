"""Claim types by name, and lookup of the row for a claim on a day."""

import re
from datetime import date

from qwed.model.data_files import read_mapping
from qwed.packs.result import UnreadableInputError, unknown_name_error
from qwed_legal._limitations.places import PLACES
from qwed_legal._limitations.table import ROWS, LimitationRow

_NAMES = read_mapping(__file__, "claim_names.txt")
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
