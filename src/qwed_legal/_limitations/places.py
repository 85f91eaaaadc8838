"""Places by code and English name. `DE` and `IN` are the countries; every other code of two letters is a US state."""

from collections.abc import Mapping
from types import MappingProxyType

from qwed.packs.result import Unreadable, unknown

_STATES = """
AL Alabama
AK Alaska
AZ Arizona
AR Arkansas
CA California
CO Colorado
CT Connecticut
DE Delaware
DC District of Columbia
FL Florida
GA Georgia
HI Hawaii
ID Idaho
IL Illinois
IN Indiana
IA Iowa
KS Kansas
KY Kentucky
LA Louisiana
ME Maine
MD Maryland
MA Massachusetts
MI Michigan
MN Minnesota
MS Mississippi
MO Missouri
MT Montana
NE Nebraska
NV Nevada
NH New Hampshire
NJ New Jersey
NM New Mexico
NY New York
NC North Carolina
ND North Dakota
OH Ohio
OK Oklahoma
OR Oregon
PA Pennsylvania
RI Rhode Island
SC South Carolina
SD South Dakota
TN Tennessee
TX Texas
UT Utah
VT Vermont
VA Virginia
WA Washington
WV West Virginia
WI Wisconsin
WY Wyoming
"""
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

_ALSO = {
    "us federal": "US-FEDERAL",
    "federal": "US-FEDERAL",
    "us fed": "US-FEDERAL",
    "washington dc": "US-DC",
    "washington state": "US-WA",
    "new york state": "US-NY",
    "uk": "GB-EAW",
    "gb": "GB-EAW",
    "gbr": "GB-EAW",
    "united kingdom": "GB-EAW",
    "great britain": "GB-EAW",
    "england": "GB-EAW",
    "england & wales": "GB-EAW",
    "wales": "GB-EAW",
    "gb-eng": "GB-EAW",
    "gb-wls": "GB-EAW",
    "ni": "GB-NIR",
    "deu": "DE",
    "fra": "FR",
    "ind": "IN",
}
_COUNTRY = frozenset({"us", "usa", "united states", "united states of america", "america"})
_TWICE = {"DE": "US-DE", "IN": "US-IN"}
_BY_NAME = (
    {code.removeprefix("US-").casefold(): code for code in _NAMES if code not in ("US-DE", "US-IN")}
    | {code.casefold(): code for code in _NAMES}
    | {name.casefold(): code for code, name in _NAMES.items()}
    | _ALSO
)
_LONGEST = 60


def place_of(given: object) -> str:
    """The code of a place; Unreadable lists the known ones."""
    text = given if isinstance(given, str) and len(given) <= _LONGEST else ""
    words = text.replace(".", "").replace(",", " ").casefold().split()
    for ending in ("usa", "us"):
        words = words[:-1] if len(words) > 1 and words[-1] == ending else words
    name = " ".join(words[2:] if words[:2] == ["state", "of"] else words)
    if name in _COUNTRY:
        raise Unreadable("the states have their own periods, write `US-CA` or `California`, or `US federal`", PLACES)
    if name not in _BY_NAME:
        raise unknown("jurisdiction", given, PLACES)
    return _BY_NAME[name]


def told_apart(code: str, given: object) -> str:
    """What has to be said of a code that could be another place, or of a country that has several laws."""
    if code in _TWICE and isinstance(given, str) and given.strip().upper() == code:
        return f"`{code}` is {PLACES[code]}, write `{_TWICE[code]}` for {PLACES[_TWICE[code]]}"
    if code == "GB-EAW" and isinstance(given, str) and given.casefold() not in ("england and wales", "gb-eaw"):
        return "the law is that of England and Wales, write `Scotland` or `Northern Ireland` for theirs"
    return ""
