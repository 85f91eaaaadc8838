"""Places named in contracts: a country, a US state, a part of the United Kingdom, a province."""

import re
from functools import cache
from typing import Any, NamedTuple

from qwed.model.data_files import read_mapping, read_table
from qwed.packs.countries import COUNTRIES, NAMES, find_country
from qwed.packs.result import UnreadableInputError, unknown_name_error
from qwed.packs.value_parsing import text_of

_MAX_NAME = 200


class Place(NamedTuple):
    """Country, or a part of one with its own law of contract."""

    country: str
    part: str | None
    name: str


GEORGIA = Place("US", "Georgia", "Georgia (US)")
_PARTS = """
GB England and Wales|Scotland|Northern Ireland
CA Alberta|British Columbia|Manitoba|New Brunswick|Newfoundland and Labrador|Nova Scotia|Ontario|Prince Edward Island
CA Quebec|Saskatchewan
AU New South Wales|Victoria|Queensland|South Australia|Western Australia|Tasmania|Australian Capital Territory
AU Northern Territory
"""
_ALIASES = read_mapping(__file__, "place_names.txt")
_ADJECTIVES = read_table(__file__, "adjectives.txt")
SEVERAL_LAWS = frozenset({"US", "GB", "CA", "AU"})
"""Countries whose parts each have their own law of contract."""
_UNION = "AT BE BG HR CY CZ DK EE FI FR DE GR HU IE IT LV LT LU MT NL PL PT RO SK SI ES SE"
EUROPEAN_UNION = frozenset(_UNION.split())
_PREFIX = re.compile(
    r"^(?:in accordance with |governed by |subject to )?(?:the )?"
    r"(?:(?:[A-Za-z]{1,20} ){0,4}(?:laws?|courts?|legislation|arbitration|tribunals?|seat)"
    r"(?: located| sitting| seated)? (?:of|in|at) )?(?:the )?"
    r"(?:(?:state|commonwealth|province|republic|kingdom|federal republic|people's republic) of )?",
    re.IGNORECASE,
)
_AMERICA = r"(?:,? (?:united states of america|united states|usa|u\.s\.a\.|u\.s\.|us))?"
_SUFFIX = re.compile(
    rf"{_AMERICA}(?: (?:state|contract|substantive|federal))?(?:,? (?:laws?|courts?|legislation))?{_AMERICA}"
    r"(?:,? without regard to .{0,100})?[.,]?$",
    re.IGNORECASE,
)


@cache
def _places_by_name() -> dict[str, Place]:
    # `Georgia` means the country, unless the text says that it is the state.
    by_name = {place.name.casefold(): place for place in _states_by_code().values() if place != GEORGIA}
    for line in _PARTS.strip().splitlines():
        country, _, names = line.partition(" ")
        for name in names.split("|"):
            by_name[name.casefold()] = Place(country, name, name)
    return by_name | {alias: by_name[name.casefold()] for alias, name in _ALIASES.items()}


@cache
def _adjectives() -> dict[str, str]:
    rows = (line.partition(" ") for line in _ADJECTIVES.strip().splitlines())
    return {name.casefold(): code for code, _, names in rows for name in names.split("|")}


def parse_place(what: str, value: Any) -> Place:
    """Return the place that the text names. Raise UnreadableInputError with the known names if it is unknown."""
    text = " ".join(text_of(what, value, _MAX_NAME).replace("\u2019", "'").split())
    place = find_place(text)
    if place is None:
        raise unknown_name_error(what.replace("_", " "), text, known_places(), NAMES)
    return place


def find_place(text: str) -> Place | None:
    """Return the place for a country, a part of one, an adjective or a city that is a usual seat, or None."""
    american = re.fullmatch(r"(?:US|U\.S\.)-([A-Z]{2})", text)
    if american:
        return _states_by_code().get(american[1])
    for candidate in (text, _SUFFIX.sub("", text), _PREFIX.sub("", text), _PREFIX.sub("", _SUFFIX.sub("", text))):
        place = _look_up(candidate.strip(" ,.").removeprefix("the ").removeprefix("The "))
        if place is not None:
            return _resolve_georgia(place, text)
    return _parse_pieces(text)


def _parse_pieces(text: str) -> Place | None:
    """Parse `Paris, France` and `Cook County, Illinois`: the last piece, unless the others contradict it."""
    pieces = [piece.strip() for piece in _PREFIX.sub("", text).split(",")]
    if len(pieces) < 2 or len(pieces) > 4:
        return None
    *others, last = (_look_up(piece) for piece in pieces)
    if last is None or any(other is not None and other.country != last.country for other in others):
        return None
    parts = {place.part for place in (*others, last) if place is not None and place.part}
    if len(parts) > 1:
        return None
    return next((place for place in (*others, last) if place is not None and place.part), last)


def _look_up(text: str) -> Place | None:
    name = text.casefold()
    if name in _places_by_name():
        return _places_by_name()[name]
    country = find_country(text)
    code = country.code if country else _adjectives().get(name)
    # `CA` is Canada; `NY` is not a country code and so means the state.
    return _states_by_code().get(text) if code is None else Place(code, None, COUNTRIES[code].name)


def _resolve_georgia(place: Place, text: str) -> Place:
    """Return the US state if the text says so."""
    american = re.search(r"\b(?:state of georgia|georgia,? (?:usa|us|u\.s\.|united states))", text, re.IGNORECASE)
    return GEORGIA if place.country == "GE" and american else place


def resolve_among_parties(place: Place, parties: tuple[Place, ...]) -> Place:
    """Resolve `Georgia` to the US state if a party is in the United States and none in the country."""
    homes = {party.country for party in parties}
    return GEORGIA if place.country == "GE" and "US" in homes and "GE" not in homes else place


_STATES = (
    "Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|Florida|Georgia|Hawaii|Idaho|Illinois"
    "|Indiana|Iowa|Kansas|Kentucky|Louisiana|Maine|Maryland|Massachusetts|Michigan|Minnesota|Mississippi|Missouri"
    "|Montana|Nebraska|Nevada|New Hampshire|New Jersey|New Mexico|New York|North Carolina|North Dakota|Ohio|Oklahoma"
    "|Oregon|Pennsylvania|Rhode Island|South Carolina|South Dakota|Tennessee|Texas|Utah|Vermont|Virginia|Washington"
    "|West Virginia|Wisconsin|Wyoming|District of Columbia"
)
_CODES = (
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA "
    "RI SC SD TN TX UT VT VA WA WV WI WY DC"
)


@cache
def _states_by_code() -> dict[str, Place]:
    """Return the US states by postal code, in the order of their names."""
    by_code = {code: Place("US", name, name) for code, name in zip(_CODES.split(), _STATES.split("|"), strict=True)}
    return by_code | {"GA": GEORGIA}


def parse_several_laws(text: str) -> list[Place]:
    """Return the places of a text that names more than one law: `English and New York law`."""
    if find_place(text) is not None:
        return []
    pieces = re.split(r" and/or | and | or |/|, ", _SUFFIX.sub("", _PREFIX.sub("", text)))
    places = [find_place(piece) for piece in pieces if piece.strip()]
    return [place for place in places if place is not None] if len(places) > 1 and all(places) else []


def known_places() -> tuple[str, ...]:
    """Return the accepted names: country codes, then the parts with their own law."""
    return (*COUNTRIES, *sorted({place.name for place in _places_by_name().values()}))


def parse_parties(value: Any) -> tuple[Place, ...]:
    """Return the places of the parties. Raise UnreadableInputError with a hint if they cannot be parsed."""
    if isinstance(value, str) and "," in value and find_place(" ".join(value[:_MAX_NAME].split())) is None:
        raise UnreadableInputError('the parties are read from a list of countries: write ["US", "DE"] for `US, DE`')
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple | set | frozenset) or not 1 <= len(value) <= 50:
        raise UnreadableInputError("the parties must be a list of 1 to 50 countries, such as `US` and `DE`")
    parties = sorted(value, key=str) if isinstance(value, set | frozenset) else value
    return tuple(parse_place("country", party) for party in parties)
