"""Calendar regions: a country of ISO 3166 and, if its calendar has them, one of its states."""

from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from qwed.packs.countries import NAMES, find_country
from qwed.packs.result import UnreadableInputError, unknown_name_error

if TYPE_CHECKING:
    from holidays import HolidayBase

_MAX_NAME = 100
_UK_PARTS = {"england": "ENG", "england and wales": "ENG", "scotland": "SCT", "wales": "WLS", "northern ireland": "NIR"}
_STATE_ALIASES = {
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
    "GB": _UK_PARTS | {"ew": "ENG", "e&w": "ENG", "eaw": "ENG", "ni": "NIR", "uk": "ENG"},
    "US": {"washington dc": "DC", "washington, d.c.": "DC", "us virgin islands": "VI"},
}
"""Names that the calendar lacks: English ones, and spellings without umlauts."""
_DEFAULT_STATES = {"GB": "ENG"}
"""Default state of a country; bank holidays differ within the United Kingdom, and England and Wales is the default."""


class CalendarRegion(NamedTuple):
    """Code of a country and of a state; without a state, only the common holidays of the country."""

    country: str
    state: str | None

    def __str__(self) -> str:
        return self.country if self.state is None else f"{self.country}-{self.state}"


def parse_region(country: object, state: object = None) -> CalendarRegion:
    """Return the region. Raise UnreadableInputError with the known names if the name is unknown."""
    code, part = _parse_country(country)
    if state is None:
        return CalendarRegion(code, part or _DEFAULT_STATES.get(code))
    state_code = _parse_state(code, state)
    if part not in (None, state_code):
        raise UnreadableInputError(f"`country` is {part} of {code} and `state` is {state_code}: name one of them")
    return CalendarRegion(code, state_code)


def _parse_country(value: object) -> tuple[str, str | None]:
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        raise unknown_name_error("country", type(value).__name__, known_countries())
    name = " ".join(value.casefold().split())
    country = find_country(name)
    code = "XK" if name in ("xk", "kosovo") else country.code if country else None
    if code is None or not _has_calendar(code):
        raise unknown_name_error("country", value, known_countries(), NAMES)
    return code, _UK_PARTS.get(name)


def _parse_state(code: str, value: object) -> str:
    names = _states_by_name(code)
    if not isinstance(value, str) or len(value) > _MAX_NAME or not names:
        states_text = f"has the states {', '.join(known_states(code))}" if names else "has none: leave it out"
        raise UnreadableInputError(
            f"`state` must be a code or a name, and the calendar of {code} {states_text}", known_states(code)
        )
    name = " ".join(value.casefold().split()).removeprefix(f"{code.lower()}-")
    if name not in names:
        raise unknown_name_error(f"state of {code}", value, known_states(code))
    return names[name]


@lru_cache(maxsize=1)
def known_countries() -> tuple[str, ...]:
    """Return the codes of all countries with a calendar."""
    return tuple(sorted(holidays_library().list_supported_countries(include_aliases=False)))


def known_states(code: str) -> tuple[str, ...]:
    """Return the codes of the states that the country's calendar distinguishes."""
    return tuple(region_calendar(CalendarRegion(code, None)).subdivisions)


@lru_cache(maxsize=512)
def _states_by_name(code: str) -> dict[str, str]:
    source = region_calendar(CalendarRegion(code, None))
    aliases = {name.casefold(): state for name, state in source.subdivisions_aliases.items()}
    return _STATE_ALIASES.get(code, {}) | aliases | {state.casefold(): state for state in source.subdivisions}


@lru_cache(maxsize=512)
def _has_calendar(code: str) -> bool:
    try:
        region_calendar(CalendarRegion(code, None))
    except NotImplementedError:
        return False
    return True


def region_calendar(region: CalendarRegion, year: int | None = None) -> "HolidayBase":
    """Return the library's calendar of the region, filled with the days of one year."""
    # Without a language the library uses the one of the environment.
    holidays: HolidayBase = holidays_library().country_holidays(
        region.country, subdiv=region.state, years=year, language="en_US"
    )
    return holidays


def holidays_library() -> ModuleType:
    """Return the `holidays` package, imported on first use."""
    try:
        import holidays
    except ImportError:
        raise ImportError("deadlines need the package `holidays`: install `qwed[legal]`") from None
    return holidays
