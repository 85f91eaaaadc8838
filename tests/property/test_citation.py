"""Every reporter, law and journal of reporters-db is known, and citations built by its rules are distinguished.

The oracle is the raw data of the package and arithmetic on years; the index of the guard is not used.
"""

from datetime import date
from random import Random
from typing import Any, NamedTuple

import pytest
from reporters_db import JOURNALS, LAWS, REPORTERS

from qwed_legal import CitationGuard
from tests.support.campaign_table import Figure, campaign

GUARD = CitationGuard(clock=lambda: date(2026, 11, 16))
FEW, ALL = 300, 10_000
INVENTED = {
    "1 U.S. (1 Wall.) 12",
    "1 U.S. (Wall.) 12",
    "55 U.S. (Wheat.) 2",
    "Cal. Empl. Code § 8:6:077",
    "Md. Code Ann., Empl. § 8-551",
    "N.Y. Empl. § 85",
    "N.Y. Empl. Law § 24:09",
    "Tex. Empl. Code Ann. § 025:2-2",
    "1999 S.D. Sess. Laws ch\\w 12 § 40:441 03",
}
"""Examples of the package that only match its expressions: no such volume, no such code."""


class Name(NamedTuple):
    """Name of a reporter in one of its spellings."""

    written: str
    edition: str
    counted: bool


def names() -> list[Name]:
    """Return every edition and variation that is cited by volume and page."""
    found = []
    for row in (each for rows in REPORTERS.values() for each in rows):
        counted = row["cite_type"] in ("neutral", "specialty_west", "specialty_lexis")
        for edition, dates in row["editions"].items():
            if "$full_cite" not in dates.get("regexes", ["$full_cite"]):
                continue
            variations = [name for name, meant in row["variations"].items() if meant == edition and name[0].isalpha()]
            found += [Name(name, edition, counted) for name in (edition, *variations)]
    return found


def examples() -> list[str]:
    tables: list[dict[str, list[dict[str, Any]]]] = [REPORTERS, LAWS]
    return [text for table in tables for rows in table.values() for row in rows for text in row.get("examples", ())]


def test_the_examples_of_the_package_are_valid() -> None:
    refused = {text for text in examples() if not GUARD.verify(text).valid}
    assert refused == INVENTED


def volume_of(name: Name, random: Random) -> int:
    # The shortest closed series have a dozen volumes.
    return random.randint(1990, 2025) if name.counted else random.randint(1, 12)


def test_every_name_is_known() -> None:
    random = Random(1)
    texts = [f"{volume_of(name, random)} {name.written} {random.randint(1, 900)}" for name in _some(names(), 1_500)]
    texts += [f"{random.randint(1, 90)} {name} {random.randint(1, 900)}" for name in _some(list(JOURNALS), 200)]
    assert [text for text in texts if not GUARD.verify(text).valid] == []


def _some(every: list[Any], many: int) -> list[Any]:
    return Random(2).sample(every, min(many, len(every)))


def _broken(text: str, random: Random) -> str:
    volume, _, rest = text.partition(" ")
    reporter, _, page = rest.rpartition(" ")
    ways = [
        f"{volume} {reporter}",
        f"{reporter[::-1]} {volume} {page}?",
        f"{volume} {reporter} {page} and so on",
        f"{volume} {reporter} {page} (2051)",
        f"{volume} {reporter} {page} (1399)",
        f"{volume} Q{reporter}q {page}",
        f"0{volume} {reporter} {page}",
        f"{volume} {reporter} 0",
        f"Smith v. Jones, {volume} {reporter} {page} (Nowhere Ct. 1999)",
        f"v. Jones, {volume} {reporter} {page}",
        f"{volume} {reporter} {page} {page}",
    ]
    return random.choice(ways)


def require_distinguished(many: int) -> None:
    random = Random(3)
    every = [name for name in names() if "(" not in name.written]
    taken, missed = [], []
    for _ in range(many):
        name = random.choice(every)
        right = f"{volume_of(name, random)} {name.written} {random.randint(1, 900)}"
        wrong = _broken(right, random)
        if not GUARD.verify(right).valid:
            missed.append(right)
        if GUARD.verify(wrong).valid:
            taken.append(wrong)
    assert len(missed) <= many / 100, missed[:20]
    assert len(taken) <= many / 100, taken[:20]


def test_citations_and_broken_ones_are_told_apart() -> None:
    require_distinguished(FEW)


@pytest.mark.drill
@campaign("packs", "citations in every reporter, and broken ones")
def test_ten_thousand_citations_and_broken_ones_are_told_apart(figure: Figure) -> None:
    require_distinguished(ALL)
    figure("citations", 2 * ALL)
