"""Places as contracts name them: a country, a state of the United States, a part of the United Kingdom, a province."""

import re
from functools import cache
from typing import Any, NamedTuple

from qwed.packs.countries import COUNTRIES, NAMES, find_country
from qwed.packs.reading import text_of
from qwed.packs.result import Unreadable, unknown

_LONGEST = 200


class Place(NamedTuple):
    """A country, or a part of one that has its own law of contract."""

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
_ALSO = {
    "england": "England and Wales",
    "wales": "England and Wales",
    "england & wales": "England and Wales",
    "english": "England and Wales",
    "welsh": "England and Wales",
    "london": "England and Wales",
    "scots": "Scotland",
    "scottish": "Scotland",
    "edinburgh": "Scotland",
    "northern irish": "Northern Ireland",
    "belfast": "Northern Ireland",
    "new york city": "New York",
    "manhattan": "New York",
    "wilmington": "Delaware",
    "delawarean": "Delaware",
    "californian": "California",
    "texan": "Texas",
    "floridian": "Florida",
    "los angeles": "California",
    "san francisco": "California",
    "chicago": "Illinois",
    "boston": "Massachusetts",
    "houston": "Texas",
    "dallas": "Texas",
    "miami": "Florida",
    "d.c.": "District of Columbia",
    "d.c": "District of Columbia",
    "washington, d.c": "District of Columbia",
    "washington, d.c.": "District of Columbia",
    "washington dc": "District of Columbia",
    "québec": "Quebec",
    "toronto": "Ontario",
    "vancouver": "British Columbia",
    "montreal": "Quebec",
    "sydney": "New South Wales",
    "melbourne": "Victoria",
    "nsw": "New South Wales",
}
_ADJECTIVES = """
AE Emirati|UAE|U.A.E|Dubai|Abu Dhabi
AR Argentine|Argentinian|Buenos Aires
AT Austrian|Vienna
AU Australian
BE Belgian|Brussels
BG Bulgarian
BR Brazilian|Sao Paulo
CA Canadian
CH Swiss|Zurich|Geneva|Lausanne
CL Chilean
CN Chinese|PRC|P.R.C.|Beijing|Shanghai|Mainland China
CO Colombian
CY Cypriot
CZ Czech|Prague
DE German|Berlin|Frankfurt|Munich|Hamburg
DK Danish|Copenhagen
EE Estonian
EG Egyptian|Cairo
ES Spanish|Madrid|Barcelona
FI Finnish|Helsinki
FR French|Paris
GB British
GR Greek|Athens
HR Croatian
HU Hungarian|Budapest
ID Indonesian|Jakarta
IE Irish|Dublin
IL Israeli|Tel Aviv
IN Indian|Mumbai|Delhi|New Delhi|Bangalore|Bengaluru
IT Italian|Rome|Milan
JP Japanese|Tokyo
KE Kenyan|Nairobi
KR Korean|South Korean|Seoul
LT Lithuanian
LU Luxembourgish
LV Latvian
MX Mexican|Mexico City
MY Malaysian|Kuala Lumpur
NG Nigerian|Lagos
NL Dutch|Amsterdam|Rotterdam|The Hague
NO Norwegian|Oslo
PH Philippine|Filipino|Manila
PK Pakistani
PL Polish|Warsaw
PT Portuguese|Lisbon
RO Romanian|Bucharest
RU Russian|Moscow
SA Saudi|Saudi Arabian|Riyadh
SE Swedish|Stockholm
SG Singaporean|Singapore City
SI Slovenian
SK Slovak
TH Thai|Bangkok
TR Turkish|Istanbul
TW Taiwanese|Taipei
UA Ukrainian|Kyiv
VN Vietnamese|Hanoi
ZA South African|Johannesburg
"""
SEVERAL_LAWS = frozenset({"US", "GB", "CA", "AU"})
"""Countries whose parts have each their own law of contract."""
_UNION = "AT BE BG HR CY CZ DK EE FI FR DE GR HU IE IT LV LT LU MT NL PL PT RO SK SI ES SE"
EUROPEAN_UNION = frozenset(_UNION.split())
_AROUND = re.compile(
    r"^(?:in accordance with |governed by |subject to )?(?:the )?"
    r"(?:(?:[A-Za-z]{1,20} ){0,4}(?:laws?|courts?|legislation|arbitration|tribunals?|seat)"
    r"(?: located| sitting| seated)? (?:of|in|at) )?(?:the )?"
    r"(?:(?:state|commonwealth|province|republic|kingdom|federal republic|people's republic) of )?",
    re.IGNORECASE,
)
_AMERICA = r"(?:,? (?:united states of america|united states|usa|u\.s\.a\.|u\.s\.|us))?"
_BEHIND = re.compile(
    rf"{_AMERICA}(?: (?:state|contract|substantive|federal))?(?:,? (?:laws?|courts?|legislation))?{_AMERICA}"
    r"(?:,? without regard to .{0,100})?[.,]?$",
    re.IGNORECASE,
)


@cache
def _parts() -> dict[str, Place]:
    # Georgia is the country, unless the text says that it is the state.
    found = {place.name.casefold(): place for place in _by_code().values() if place != GEORGIA}
    for line in _PARTS.strip().splitlines():
        country, _, names = line.partition(" ")
        for name in names.split("|"):
            found[name.casefold()] = Place(country, name, name)
    return found | {also: found[name.casefold()] for also, name in _ALSO.items()}


@cache
def _adjectives() -> dict[str, str]:
    rows = (line.partition(" ") for line in _ADJECTIVES.strip().splitlines())
    return {name.casefold(): code for code, _, names in rows for name in names.split("|")}


def place_of(what: str, value: Any) -> Place:
    """The place that a text names; Unreadable lists the known ones where it names none."""
    text = " ".join(text_of(what, value, _LONGEST).replace("\u2019", "'").split())
    found = find_place(text)
    if found is None:
        raise unknown(what.replace("_", " "), text, known_places(), NAMES)
    return found


def find_place(text: str) -> Place | None:
    """The place of a country, a part of one, an adjective or a city that is a usual seat; None where there is none."""
    american = re.fullmatch(r"(?:US|U\.S\.)-([A-Z]{2})", text)
    if american:
        return _by_code().get(american[1])
    for tried in (text, _BEHIND.sub("", text), _AROUND.sub("", text), _AROUND.sub("", _BEHIND.sub("", text))):
        found = _looked_up(tried.strip(" ,.").removeprefix("the ").removeprefix("The "))
        if found is not None:
            return _georgia(found, text)
    return _of_pieces(text)


def _of_pieces(text: str) -> Place | None:
    """`Paris, France` and `Cook County, Illinois`: what stands last, where the others do not contradict it."""
    pieces = [piece.strip() for piece in _AROUND.sub("", text).split(",")]
    if len(pieces) < 2 or len(pieces) > 4:
        return None
    *others, last = (_looked_up(piece) for piece in pieces)
    if last is None or any(other is not None and other.country != last.country for other in others):
        return None
    parts = {place.part for place in (*others, last) if place is not None and place.part}
    if len(parts) > 1:
        return None
    return next((place for place in (*others, last) if place is not None and place.part), last)


def _looked_up(text: str) -> Place | None:
    name = text.casefold()
    if name in _parts():
        return _parts()[name]
    country = find_country(text)
    code = country.code if country else _adjectives().get(name)
    # `CA` is Canada; `NY` is no country, and then it is the state.
    return _by_code().get(text) if code is None else Place(code, None, COUNTRIES[code].name)


def _georgia(found: Place, text: str) -> Place:
    """The state, where the text says that it is one."""
    american = re.search(r"\b(?:state of georgia|georgia,? (?:usa|us|u\.s\.|united states))", text, re.IGNORECASE)
    return GEORGIA if found.country == "GE" and american else found


def among(found: Place, parties: tuple[Place, ...]) -> Place:
    """`Georgia` among parties of the United States, and none of the country, is the state."""
    homes = {party.country for party in parties}
    return GEORGIA if found.country == "GE" and "US" in homes and "GE" not in homes else found


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
def _by_code() -> dict[str, Place]:
    """States by their postal codes, in the order of their names."""
    found = {code: Place("US", name, name) for code, name in zip(_CODES.split(), _STATES.split("|"), strict=True)}
    return found | {"GA": GEORGIA}


def several(text: str) -> list[Place]:
    """The places of a text that names more than one law: `English and New York law`."""
    if find_place(text) is not None:
        return []
    pieces = re.split(r" and/or | and | or |/|, ", _BEHIND.sub("", _AROUND.sub("", text)))
    found = [find_place(piece) for piece in pieces if piece.strip()]
    return [place for place in found if place is not None] if len(found) > 1 and all(found) else []


def known_places() -> tuple[str, ...]:
    """What can be named: codes of countries, then the parts that have their own law."""
    return (*COUNTRIES, *sorted({place.name for place in _parts().values()}))


def parties_of(value: Any) -> tuple[Place, ...]:
    """The places of the parties; Unreadable says what to write."""
    if isinstance(value, str) and "," in value and find_place(" ".join(value[:_LONGEST].split())) is None:
        raise Unreadable('the parties are read from a list of countries: write ["US", "DE"] for `US, DE`')
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple | set | frozenset) or not 1 <= len(value) <= 50:
        raise Unreadable("the parties must be a list of 1 to 50 countries, such as `US` and `DE`")
    listed = sorted(value, key=str) if isinstance(value, set | frozenset) else value
    return tuple(place_of("country", each) for each in listed)
