"""Conventions against membership counted another way: bits of days, symmetry, and all pairs of countries."""

from datetime import date, timedelta
from random import Random
from typing import Any

import pytest

from qwed.packs.countries import COUNTRIES
from qwed.packs.result import CheckStatus
from qwed_legal import JurisdictionGuard
from tests.support.campaign_table import Figure, campaign

GUARD = JurisdictionGuard(clock=lambda: date(2026, 11, 16))
FEW, ALL = 200, 10_000
MEMBERS = """
AR AU AT BY BE BA BG BI CA CL CN HR CU CZ DK EC EG EE FI FR GE DE GR GN HU IQ IT KG LV LS LT LU MR MX MD MN NL NZ MK NO
PE PL RO RU RS SG SK SI ES SE CH SY UG UA US UY UZ ZM
"""
IN_2000 = set(MEMBERS.split())
"""The 58 states bound by the CISG on 31 December 2000, written by hand."""
NORDIC = {"DK", "FI", "IS", "NO", "SE"}


def applies(one: str, other: str, convention: str, day: date) -> Any:
    return GUARD.check_convention_applicability([one, other], convention, as_of=day)


def require_as_counted(many: int) -> None:
    random = Random(4)
    codes = sorted(COUNTRIES)
    for _ in range(many):
        one, other = random.choice(codes), random.choice(codes)
        found = applies(one, other, "CISG", date(2000, 12, 31))
        if found.status is CheckStatus.UNVERIFIABLE:
            assert not {one, other} <= IN_2000
            continue
        expected = {one, other} <= IN_2000 and one != other and not {one, other} <= NORDIC
        assert found.applicable is expected, (one, other, found.message)


def test_pairs_of_countries_are_judged_as_they_are_counted() -> None:
    assert len(IN_2000) == 58
    require_as_counted(FEW)


@pytest.mark.drill
@campaign("packs", "pairs of countries and a convention")
def test_ten_thousand_pairs_are_judged_as_they_are_counted(figure: Figure) -> None:
    require_as_counted(ALL)
    figure("pairs", ALL)


def test_who_is_asked_first_does_not_matter_and_nobody_leaves() -> None:
    random = Random(5)
    codes = sorted(COUNTRIES)
    for _ in range(FEW):
        one, other = random.sample(codes, 2)
        convention = random.choice(["CISG", "New York", "Hague", "Hague Judgments"])
        day = date(1960, 1, 1) + timedelta(days=random.randrange(24_000))
        found, turned = applies(one, other, convention, day), applies(other, one, convention, day)
        assert (found.status, found.applicable) == (turned.status, turned.applicable)
        if found.applicable:
            assert applies(one, other, convention, day + timedelta(days=random.randrange(2_000))).applicable
