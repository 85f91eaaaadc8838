"""ISO 3166-1 countries and territories by code and by English name (edition of 2026)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from qwed.model.data_files import read_mapping, read_table
from qwed.packs.result import unknown_name_error


class Country(NamedTuple):
    """One row of the standard, with the usual English name."""

    code: str
    code3: str
    name: str


_TABLE = read_table(__file__, "countries.txt")

_ALSO = read_mapping(__file__, "country_names.txt")
"""Other names. Parts of the United Kingdom map to the country; callers that must tell them apart do so themselves."""

COUNTRIES: Mapping[str, Country] = MappingProxyType(
    {row.code: row for row in (Country(*line.split(" ", 2)) for line in _TABLE.strip().splitlines())}
)
"""Countries by two-letter code."""

_BY_NAME = (
    _ALSO
    | {row.name.casefold(): row.code for row in COUNTRIES.values()}
    | {row.code3.casefold(): row.code for row in COUNTRIES.values()}
    | {row.code.casefold(): row.code for row in COUNTRIES.values()}
)


NAMES = tuple(row.name for row in COUNTRIES.values())
"""Usual English names."""


def find_country(name: object) -> Country | None:
    """Return the country with this code or English name, in any case, or None."""
    if not isinstance(name, str):
        return None
    code = _BY_NAME.get(" ".join(name.casefold().split()))
    return None if code is None else COUNTRIES[code]


def country_of(name: object) -> Country:
    """Return the country with this code or name; raise UnreadableInputError with the codes if there is none."""
    country = find_country(name)
    if country is None:
        raise unknown_name_error("country", name, COUNTRIES, NAMES)
    return country
