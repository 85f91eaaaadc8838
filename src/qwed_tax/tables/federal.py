"""Federal income tax by year and filing status, and the derived schedules of Publication 15-T."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from qwed.model.data_files import read_table
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
_TABLE = read_table(__file__, "federal_brackets.txt")
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
