"""Whose calendar counts: a country of ISO 3166 and, where the calendar knows them, one of its states."""

from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from qwed.packs.countries import NAMES, find_country
from qwed.packs.result import Unreadable, unknown

if TYPE_CHECKING:
    from holidays import HolidayBase

_LONGEST = 100
_PARTS = {"england": "ENG", "england and wales": "ENG", "scotland": "SCT", "wales": "WLS", "northern ireland": "NIR"}
_ALSO = {
    "DE": {
        "bavaria": "BY",
        "baden-wuerttemberg": "BW",
        "hesse": "HE",
        "lower saxony": "NI",
        "mecklenburg-western pomerania": "MV",
        "north rhine-westphalia": "NW",
        "rhineland-palatinate": "RP",
        "saxony": "SN",
        "saxony-anhalt": "ST",
        "thuringia": "TH",
        "thueringen": "TH",
    },
    "GB": _PARTS | {"ew": "ENG", "e&w": "ENG", "eaw": "ENG", "ni": "NIR", "uk": "ENG"},
    "US": {"washington dc": "DC", "washington, d.c.": "DC", "us virgin islands": "VI"},
}
"""Names that the calendar does not have: English ones, and those without umlauts."""
_USUAL = {"GB": "ENG"}
"""Bank holidays are those of a part of the kingdom: England and Wales where none is named."""


class Place(NamedTuple):
    """A country's code and a state's, or None for what all of the country has in common."""

    country: str
    state: str | None

    def __str__(self) -> str:
        return self.country if self.state is None else f"{self.country}-{self.state}"


def place_of(country: object, state: object = None) -> Place:
    """The place; Unreadable lists the known ones where there is none of this name."""
    code, part = _country(country)
    if state is None:
        return Place(code, part or _USUAL.get(code))
    found = _state(code, state)
    if part not in (None, found):
        raise Unreadable(f"`country` is {part} of {code} and `state` is {found}: name one of them")
    return Place(code, found)


def _country(given: object) -> tuple[str, str | None]:
    if not isinstance(given, str) or len(given) > _LONGEST:
        raise unknown("country", type(given).__name__, known_countries())
    name = " ".join(given.casefold().split())
    found = find_country(name)
    code = "XK" if name in ("xk", "kosovo") else found.code if found else None
    if code is None or not _has_calendar(code):
        raise unknown("country", given, known_countries(), NAMES)
    return code, _PARTS.get(name)


def _state(code: str, given: object) -> str:
    names = _states(code)
    if not isinstance(given, str) or len(given) > _LONGEST or not names:
        said = f"has the states {', '.join(known_states(code))}" if names else "has none: leave it out"
        raise Unreadable(f"`state` must be a code or a name, and the calendar of {code} {said}", known_states(code))
    name = " ".join(given.casefold().split()).removeprefix(f"{code.lower()}-")
    if name not in names:
        raise unknown(f"state of {code}", given, known_states(code))
    return names[name]


@lru_cache(maxsize=1)
def known_countries() -> tuple[str, ...]:
    """The codes of all countries that have a calendar."""
    return tuple(sorted(library().list_supported_countries(include_aliases=False)))


def known_states(code: str) -> tuple[str, ...]:
    """The codes of the states that the country's calendar tells apart."""
    return tuple(calendar(Place(code, None)).subdivisions)


@lru_cache(maxsize=512)
def _states(code: str) -> dict[str, str]:
    source = calendar(Place(code, None))
    aliases = {name.casefold(): found for name, found in source.subdivisions_aliases.items()}
    return _ALSO.get(code, {}) | aliases | {found.casefold(): found for found in source.subdivisions}


@lru_cache(maxsize=512)
def _has_calendar(code: str) -> bool:
    try:
        calendar(Place(code, None))
    except NotImplementedError:
        return False
    return True


def calendar(place: Place, year: int | None = None) -> "HolidayBase":
    """The library's calendar of the place, with the days of one year in it."""
    # Without a language it would take the one of the environment.
    found: HolidayBase = library().country_holidays(place.country, subdiv=place.state, years=year, language="en_US")
    return found


def library() -> ModuleType:
    """The package of calendars, imported when one is first needed."""
    try:
        import holidays
    except ImportError:
        raise ImportError("deadlines need the package `holidays`: install `qwed[legal]`") from None
    return holidays
