"""Places by code and English name. `DE` and `IN` are the countries; every other code of two letters is a US state."""

from collections.abc import Mapping
from types import MappingProxyType

from qwed.model.data_files import read_mapping, read_table
from qwed.packs.result import UnreadableInputError, unknown_name_error

_STATES = read_table(__file__, "us_states.txt")
_NAMES = {f"US-{line[:2]}": line[3:] for line in _STATES.strip().split("\n")} | {
    "US-FEDERAL": "US federal law",
    "GB-EAW": "England and Wales",
    "GB-SCT": "Scotland",
    "GB-NIR": "Northern Ireland",
    "DE": "Germany",
    "FR": "France",
    "IN": "India",
}
PLACES: Mapping[str, str] = MappingProxyType(_NAMES)
"""English names by code."""

_ALIASES = read_mapping(__file__, "place_names.txt")
_COUNTRY = (
    ["united", "states", "of", "america"],
    ["united", "states"],
    ["america"],
    ["usa"],
    ["us"],
)
_TITLES = (["state", "of"], ["commonwealth", "of"])
_AMBIGUOUS_CODES = {"DE": "US-DE", "IN": "US-IN"}
_BY_NAME = (
    {code.removeprefix("US-").casefold(): code for code in _NAMES if code not in ("US-DE", "US-IN")}
    | {code.casefold(): code for code in _NAMES}
    | {name.casefold(): code for code, name in _NAMES.items()}
    | _ALIASES
)
_STATES_OF_US = frozenset(code for code in _NAMES if code.startswith("US-"))
_BLANK = str.maketrans(dict.fromkeys(",_/()", " "))
_MAX_NAME = 60
_AMBIGUOUS_NAMES = {
    "georgia": "`Georgia` is the US state, the country is not in the table",
    "washington": "`Washington` is the state, write `DC` for the District of Columbia",
}


def parse_place(value: object) -> str:
    """Return the code of the place. Raise UnreadableInputError with the known places if it is unknown."""
    text = value if isinstance(value, str) and len(value) <= _MAX_NAME else ""
    plain = text.casefold().replace("usa-", "us-").replace(".", "").translate(_BLANK)
    words, american = _strip_phrases(plain.removeprefix("the ").split(), _COUNTRY)
    if american and not words:
        raise UnreadableInputError(
            "the states have their own periods, write `US-CA` or `California`, or `US federal`", PLACES
        )
    words, titled = _strip_phrases(words, _TITLES, ends=False)
    name = " ".join(words)
    code = _find_state(name) if american or titled else _BY_NAME.get(name, _find_state(name))
    if code is None:
        raise unknown_name_error("jurisdiction", value, PLACES, PLACES.values())
    return code


def _strip_phrases(words: list[str], phrases: tuple[list[str], ...], ends: bool = True) -> tuple[list[str], bool]:
    """Strip one of the phrases from the start or the end of the words; return whether one was there."""
    for phrase in phrases:
        if words[: len(phrase)] == phrase:
            return words[len(phrase) :], True
        if ends and words[-len(phrase) :] == phrase:
            return words[: -len(phrase)], True
    return words, False


def _find_state(name: str) -> str | None:
    """Return the code of a US state; here `IN` is Indiana."""
    name = name.removesuffix(" state")
    return next((code for code in (f"US-{name.upper()}", _BY_NAME.get(name, "")) if code in _STATES_OF_US), None)


def ambiguity_note(code: str, value: object) -> str:
    """Return a note if the code could mean another place, or if the country has several laws."""
    if code in _AMBIGUOUS_CODES and isinstance(value, str) and value.strip().upper() == code:
        return f"`{code}` is {PLACES[code]}, write `{_AMBIGUOUS_CODES[code]}` for {PLACES[_AMBIGUOUS_CODES[code]]}"
    if code == "GB-EAW" and isinstance(value, str) and value.casefold() not in ("england and wales", "gb-eaw"):
        return "the law is that of England and Wales, write `Scotland` or `Northern Ireland` for theirs"
    return _AMBIGUOUS_NAMES.get(value.strip().casefold(), "") if isinstance(value, str) else ""
