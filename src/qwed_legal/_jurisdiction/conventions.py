"""Members of conventions, and the dates from which they are bound.

A date is the day of entry into force for the state. If the table has only a year, days within that year are undecided.
"""

from datetime import date
from functools import cache
from typing import NamedTuple

from qwed.model.data_files import read_table
from qwed_legal._jurisdiction.places import EUROPEAN_UNION


class Convention(NamedTuple):
    """Convention and its members."""

    key: str
    name: str
    source: str
    as_of: date
    """Date of the table; later members are not in it."""
    members: dict[str, tuple[date, date]]
    """By country: the first day on which it may be bound, and the first day on which it certainly is."""
    signed: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    """Members whose first day is not certain."""
    special: frozenset[str] = frozenset()
    """Members with a relevant declaration."""


_CISG = read_table(__file__, "cisg_states.txt")
ARTICLE_95 = frozenset({"AM", "CN", "LA", "VC", "SG", "SK", "US"})
"""Not bound by article 1(1)(b): UNCITRAL, status of the CISG; Czechia withdrew its declaration in 2018."""
NORDIC = frozenset({"DK", "FI", "IS", "NO", "SE"})
"""By article 94 the convention does not apply between them."""
_NEW_YORK = read_table(__file__, "new_york_convention_states.txt")
RECIPROCITY = frozenset({"US", "CN", "IN", "GB", "FR", "JP", "SG", "MY", "KR", "TR", "ID", "PH", "SA", "NG"})
"""Enforces awards of other contracting states only (article I(3)); those that are certain."""
_CHOICE_OF_COURT = """
MX 2015-10-01 SG 2016-10-01 ME 2018-08-01 DK 2018-09-01 UA 2023-08-01 MD 2024-07-01 AL 2024-10-01 CH 2025-01-01
GB 2015-10-01
"""
_JUDGMENTS = "UA 2023-09-01 UY 2024-10-01 GB 2025-07-01"


def _members(table: str) -> dict[str, tuple[date, date]]:
    words = table.split()
    return {code: _parse_since(day) for code, day in zip(words[::2], words[1::2], strict=True)}


def _parse_since(day: str) -> tuple[date, date]:
    if len(day) == 4:
        return date(int(day), 1, 1), date(int(day) + 1, 1, 1)
    return date.fromisoformat(day), date.fromisoformat(day)


def _with_union(table: str, since: str) -> dict[str, tuple[date, date]]:
    return {code: _parse_since(since) for code in EUROPEAN_UNION - {"DK"}} | _members(table)


@cache
def conventions() -> dict[str, Convention]:
    """Return the conventions by key."""
    rows = (
        Convention(
            "CISG",
            "United Nations Convention on Contracts for the International Sale of Goods (Vienna, 1980)",
            "UNCITRAL, status of the CISG; WIPO Lex, treaty 292",
            date(2024, 12, 31),
            _members(_CISG),
            special=ARTICLE_95,
        ),
        Convention(
            "New York 1958",
            "Convention on the Recognition and Enforcement of Foreign Arbitral Awards (New York, 1958)",
            "UNCITRAL, status of the New York Convention",
            date(2023, 12, 31),
            _members(_NEW_YORK),
            special=RECIPROCITY,
        ),
        Convention(
            "Hague Choice of Court 2005",
            "Convention of 30 June 2005 on Choice of Court Agreements (The Hague)",
            "HCCH, status table 98 of 19 September 2024",
            date(2024, 9, 19),
            _with_union(_CHOICE_OF_COURT, "2015-10-01"),
            signed=frozenset({"CN", "US", "IL", "CR"}),
            open=frozenset({"MK"}),
        ),
        Convention(
            "Hague Judgments 2019",
            "Convention of 2 July 2019 on the Recognition and Enforcement of Foreign Judgments (The Hague)",
            "HCCH, status table 137",
            date(2024, 9, 19),
            _with_union(_JUDGMENTS, "2023-09-01"),
            signed=frozenset({"US", "RU", "IL", "CR"}),
            open=frozenset({"AL", "ME", "AD", "MK"}),
        ),
    )
    return {row.key: row for row in rows}


_CONVENTION_NAMES = {
    "CISG": "cisg|vienna|vienna convention|vienna sales convention|un sales convention|vienna 1980|cisg 1980",
    "New York 1958": (
        "new york|new york convention|ny convention|nyc|new york 1958|new york convention 1958|1958 new york convention"
        "|new york convention on arbitral awards|arbitration|new_york|foreign arbitral awards"
    ),
    "Hague Choice of Court 2005": (
        "hague|hague convention|the hague|hague 2005|hague choice of court|hague choice of court 2005|choice of court"
        "|hague choice of court convention|hague convention on choice of court agreements|hague_2005"
        "|hague convention 2005|hague_choice_of_court"
    ),
    "Hague Judgments 2019": (
        "hague judgments|hague judgments 2019|hague judgments convention|hague 2019|hague_2019|judgments convention"
        "|hague_judgments"
    ),
}


def find_convention(name: str) -> Convention | None:
    """Return the convention with this common name, or None."""
    normalised = " ".join(name.casefold().replace(",", " ").replace("(", " ").replace(")", " ").split())
    for key, aliases in _CONVENTION_NAMES.items():
        if normalised in aliases.split("|") or normalised in (key.casefold(), conventions()[key].name.casefold()):
            return conventions()[key]
    return None
