"""Federal income tax by year and filing status, and the derived schedules of Publication 15-T."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from qwed_tax.money import rounded

RATES = tuple(Fraction(rate, 100) for rate in (10, 12, 22, 24, 32, 35, 37))
"""26 U.S.C. 1(j), since 2018."""

SOURCES: Mapping[int, str] = MappingProxyType(
    {
        2018: "Rev. Proc. 2018-18",
        2019: "Rev. Proc. 2018-57",
        2020: "Rev. Proc. 2019-44",
        2021: "Rev. Proc. 2020-45",
        2022: "Rev. Proc. 2021-45",
        2023: "Rev. Proc. 2022-38",
        2024: "Rev. Proc. 2023-34",
        2025: "Rev. Proc. 2024-40, standard deduction by Pub. L. 119-21, section 70102",
        2026: "Rev. Proc. 2025-32",
    }
)

SINGLE, JOINT = "single", "married_filing_jointly"
SEPARATE, HEAD = "married_filing_separately", "head_of_household"
SURVIVING = "qualifying_surviving_spouse"
STATUSES = (SINGLE, JOINT, SEPARATE, HEAD, SURVIVING)

# Year, status, end of each bracket, standard deduction.
_TABLE = """
2018 single 9525 38700 82500 157500 200000 500000 12000
2018 joint 19050 77400 165000 315000 400000 600000 24000
2018 separate 9525 38700 82500 157500 200000 300000 12000
2018 head 13600 51800 82500 157500 200000 500000 18000
2019 single 9700 39475 84200 160725 204100 510300 12200
2019 joint 19400 78950 168400 321450 408200 612350 24400
2019 separate 9700 39475 84200 160725 204100 306175 12200
2019 head 13850 52850 84200 160700 204100 510300 18350
2020 single 9875 40125 85525 163300 207350 518400 12400
2020 joint 19750 80250 171050 326600 414700 622050 24800
2020 separate 9875 40125 85525 163300 207350 311025 12400
2020 head 14100 53700 85500 163300 207350 518400 18650
2021 single 9950 40525 86375 164925 209425 523600 12550
2021 joint 19900 81050 172750 329850 418850 628300 25100
2021 separate 9950 40525 86375 164925 209425 314150 12550
2021 head 14200 54200 86350 164900 209400 523600 18800
2022 single 10275 41775 89075 170050 215950 539900 12950
2022 joint 20550 83550 178150 340100 431900 647850 25900
2022 separate 10275 41775 89075 170050 215950 323925 12950
2022 head 14650 55900 89050 170050 215950 539900 19400
2023 single 11000 44725 95375 182100 231250 578125 13850
2023 joint 22000 89450 190750 364200 462500 693750 27700
2023 separate 11000 44725 95375 182100 231250 346875 13850
2023 head 15700 59850 95350 182100 231250 578100 20800
2024 single 11600 47150 100525 191950 243725 609350 14600
2024 joint 23200 94300 201050 383900 487450 731200 29200
2024 separate 11600 47150 100525 191950 243725 365600 14600
2024 head 16550 63100 100500 191950 243700 609350 21900
2025 single 11925 48475 103350 197300 250525 626350 15750
2025 joint 23850 96950 206700 394600 501050 751600 31500
2025 separate 11925 48475 103350 197300 250525 375800 15750
2025 head 17000 64850 103350 197300 250500 626350 23625
2026 single 12400 50400 105700 201775 256225 640600 16100
2026 joint 24800 100800 211400 403550 512450 768700 32200
2026 separate 12400 50400 105700 201775 256225 384350 16100
2026 head 17700 67450 105700 201750 256200 640600 24150
"""
_STATUS = {"single": SINGLE, "joint": JOINT, "separate": SEPARATE, "head": HEAD}


class FederalYear(NamedTuple):
    """Table row of one year and filing status."""

    ends: tuple[int, ...]
    deduction: int


def _read() -> dict[tuple[int, str], FederalYear]:
    rows: dict[tuple[int, str], FederalYear] = {}
    for text_line in _TABLE.split("\n"):
        if text_line:
            year, status, *numbers = text_line.split()
            *ends, deduction = map(int, numbers)
            rows[int(year), _STATUS[status]] = FederalYear(tuple(ends), deduction)
    return rows


FEDERAL: Mapping[tuple[int, str], FederalYear] = MappingProxyType(_read())
YEARS = tuple(SOURCES)


def federal(year: int, status: str) -> FederalYear:
    """Return the row of a year in `YEARS`; a surviving spouse uses the joint one."""
    return FEDERAL[year, JOINT if status == SURVIVING else status]


class BracketStep(NamedTuple):
    """One row of a schedule: `base` plus `rate` of the income above `start`."""

    start: int
    base: Fraction
    rate: Fraction


@cache
def schedule(year: int, status: str) -> tuple[BracketStep, ...]:
    """Return the tax rate schedule of Form 1040."""
    return _steps(0, federal(year, status).ends)[1:]


WITHHOLDING_YEARS = tuple(year for year in YEARS if year >= 2020)
"""Publication 15-T exists since 2020."""
_WITHHELD_2025 = {SINGLE: 15_000, JOINT: 30_000, HEAD: 22_500}
"""The 2025 schedules were printed before Pub. L. 119-21 raised the standard deduction and were kept."""
LINE_1G = {SINGLE: 8_600, JOINT: 12_900, HEAD: 8_600}
"""Worksheet 1A, line 1g, for a Form W-4 of 2020 or later without the box of step 2(c)."""


def on_w4(status: str) -> str:
    """Return the status of Form W-4, step 1(c)."""
    return {SEPARATE: SINGLE, SURVIVING: JOINT}.get(status, status)


def withheld_deduction(year: int, status: str) -> int:
    """Return the standard deduction behind the schedules of Publication 15-T."""
    known = on_w4(status)
    return _WITHHELD_2025[known] if year == 2025 else FEDERAL[year, known].deduction


@cache
def withholding(year: int, status: str, checked: bool) -> tuple[BracketStep, ...]:
    """Return the annual schedule of Publication 15-T, section 1: standard, or with step 2(c) checked."""
    known = on_w4(status)
    deduction = withheld_deduction(year, known)
    ends = FEDERAL[year, known].ends
    if not checked:
        return _steps(deduction - LINE_1G[known], ends)
    # Half of everything; the publication prints whole dollars for where a line starts, and cents for its base.
    return tuple(
        BracketStep(int(rounded(Fraction(step.start, 2), 0)), Fraction(rounded(step.base / 2)), step.rate)
        for step in _steps(deduction, ends)
    )


def _steps(zero: int, ends: tuple[int, ...]) -> tuple[BracketStep, ...]:
    steps = [BracketStep(0, Fraction(0), Fraction(0)), BracketStep(zero, Fraction(0), RATES[0])]
    for end, rate in zip(ends, RATES[1:], strict=True):
        last = steps[-1]
        steps.append(BracketStep(zero + end, last.base + last.rate * (zero + end - last.start), rate))
    return tuple(steps)
