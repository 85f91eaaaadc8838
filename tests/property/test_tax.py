"""Tax pack against an oracle in integers: bracket by bracket, in hundredths of a cent, without a Fraction."""

from random import Random
from typing import Any, NamedTuple

import pytest

from qwed_tax import TaxVerifier
from tests.support.campaign_table import Figure, campaign

FEW, ALL = 80, 10_000
VERIFIER = TaxVerifier()

RATES = (10, 12, 22, 24, 32, 35, 37)
# Copied by hand from the revenue procedures: where the brackets end, and the deduction that Publication 15-T used.
YEARS = {
    2020: {
        "single": ((9875, 40125, 85525, 163300, 207350, 518400), 12400),
        "married_filing_jointly": ((19750, 80250, 171050, 326600, 414700, 622050), 24800),
        "head_of_household": ((14100, 53700, 85500, 163300, 207350, 518400), 18650),
    },
    2023: {
        "single": ((11000, 44725, 95375, 182100, 231250, 578125), 13850),
        "married_filing_jointly": ((22000, 89450, 190750, 364200, 462500, 693750), 27700),
        "head_of_household": ((15700, 59850, 95350, 182100, 231250, 578100), 20800),
    },
    2024: {
        "single": ((11600, 47150, 100525, 191950, 243725, 609350), 14600),
        "married_filing_jointly": ((23200, 94300, 201050, 383900, 487450, 731200), 29200),
        "head_of_household": ((16550, 63100, 100500, 191950, 243700, 609350), 21900),
    },
    2025: {
        "single": ((11925, 48475, 103350, 197300, 250525, 626350), 15000),
        "married_filing_jointly": ((23850, 96950, 206700, 394600, 501050, 751600), 30000),
        "head_of_household": ((17000, 64850, 103350, 197300, 250500, 626350), 22500),
    },
    2026: {
        "single": ((12400, 50400, 105700, 201775, 256225, 640600), 16100),
        "married_filing_jointly": ((24800, 100800, 211400, 403550, 512450, 768700), 32200),
        "head_of_household": ((17700, 67450, 105700, 201750, 256200, 640600), 24150),
    },
}
BASES = {2020: 137_700, 2023: 160_200, 2024: 168_600, 2025: 176_100, 2026: 184_500}
PERIODS = {"annual": 1, "monthly": 12, "semimonthly": 24, "biweekly": 26, "weekly": 52, "daily": 260}


def half_up(number: int, by: int) -> int:
    """Divide and round half up; nothing here is negative."""
    return (2 * number + by) // (2 * by)


def marginal(cents: int, ends: tuple[int, ...]) -> int:
    """Return the tax on `cents` in hundredths of a cent, one bracket after the other."""
    tax, start = 0, 0
    for end, rate in zip((*ends, None), RATES, strict=True):
        top = cents if end is None else min(cents, end * 100)
        if top <= start:
            break
        tax += (top - start) * rate
        start = top
    return tax


class Payslip(NamedTuple):
    year: int
    status: str
    frequency: str
    gross: int
    earlier: int
    credits: int

    @property
    def social_security(self) -> int:
        left = max(0, BASES[self.year] * 100 - self.earlier)
        return half_up(min(self.gross, left) * 62, 1000)

    @property
    def medicare(self) -> int:
        return half_up(self.gross * 145, 10_000)

    @property
    def surtax(self) -> int:
        over = max(0, min(self.gross, self.earlier + self.gross - 20_000_000))
        return half_up(over * 9, 1000)

    @property
    def withheld(self) -> tuple[int, int]:
        """Return the withholding: annual income less the deduction, taxed by bracket, rounded once per line."""
        ends, deduction = YEARS[self.year][self.status]
        periods = PERIODS[self.frequency]
        yearly = marginal(max(0, self.gross * periods - deduction * 100), ends)
        lined = max(0, half_up(yearly, 100 * periods) - half_up(self.credits, periods))
        return lined, half_up(max(0, yearly - self.credits * 100), 100 * periods)


def money(cents: int) -> str:
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02}"


def made(random: Random) -> Payslip:
    frequency = random.choice(list(PERIODS))
    yearly = random.choice([20_000, 60_000, 150_000, 300_000, 2_000_000])
    gross = random.randint(0, yearly * 100 * 2 // PERIODS[frequency])
    return Payslip(
        random.choice(list(YEARS)),
        random.choice(["single", "married_filing_jointly", "head_of_household"]),
        frequency,
        gross if random.random() < 0.7 else gross // 100 * 100,
        random.choice([0, 0, random.randint(0, 30_000_000)]) if frequency != "annual" else 0,
        random.choice([0, 0, 200_000, 400_000, random.randint(0, 900_000)]),
    )


def ask(slip: Payslip, **claims: int) -> Any:
    return VERIFIER.verify_us_payroll(
        money(slip.gross),
        {name: money(cents) for name, cents in claims.items()},
        year=slip.year,
        filing_status=slip.status,
        pay_frequency=slip.frequency,
        ytd_wages=money(slip.earlier),
        dependent_credits=money(slip.credits),
    )


def compare_payslips(seed: int, count: int) -> int:
    random = Random(seed)
    refused = 0
    for _ in range(count):
        slip = made(random)
        parts = {
            "social_security": slip.social_security,
            "medicare": slip.medicare,
            "additional_medicare": slip.surtax,
            "federal_withholding": slip.withheld[0],
        }
        found = ask(slip, **parts)
        assert found.verified, (slip, found)
        assert ask(slip, federal_withholding=slip.withheld[1]).verified, slip
        net = slip.gross - sum(parts.values())
        assert ask(slip, net=net).verified, slip
        which = random.choice([name for name in parts if name != "federal_withholding" or len(set(slip.withheld)) == 1])
        off = random.choice([1, -1, 10, -10, 100, 900, random.randint(2, 10**6)])
        wrong = ask(slip, **(parts | {which: parts[which] + off}))
        assert not wrong.verified, (slip, which, off)
        assert wrong.components[which]["verified"] is False
        refused += 1
    return refused


def test_payslips_are_verified_exactly_where_the_oracle_has_the_same_cents():
    compare_payslips(seed=1, count=FEW)


@pytest.mark.drill
@campaign("packs", "payslips against an oracle")
@pytest.mark.parametrize("seed", range(3))
def test_ten_thousand_payslips_each(seed: int, figure: Figure) -> None:
    figure("payslips", ALL)
    figure("wrong ones refused", compare_payslips(seed=100 + seed, count=ALL))


def compare_taxes(seed: int, count: int) -> None:
    """Compare income tax, sales tax and GST."""
    random = Random(seed)
    for _ in range(count):
        year, status = random.choice(list(YEARS)), random.choice(["single", "married_filing_jointly"])
        taxable = random.randint(0, 10 ** random.choice([6, 7, 8, 9]))
        tax = half_up(marginal(taxable, YEARS[year][status][0]), 100)
        off = random.choice([0, 1, -1, 5, -100])
        found = VERIFIER.verify_us_payroll(
            0, claimed_income_tax=money(tax + off), year=year, filing_status=status, taxable_income=money(taxable)
        )
        assert found.verified is (off == 0), (year, status, taxable, found)
        amount, rate = random.randint(0, 10 ** random.choice([3, 6, 12])), random.randint(0, 12_000)
        tax = half_up(amount * rate, 100_000)
        written = random.choice([f"{rate / 1000:.3f}%", f"{rate / 100_000:.5f}", float(f"{rate / 100_000:.5f}")])
        assert VERIFIER.verify_sales_tax(money(amount), written, money(tax + off)).verified is (off == 0), (
            amount,
            rate,
        )
        slab = random.choice([25, 150, 300, 500, 1200, 1800, 2800])
        tax = half_up(amount * slab, 10_000)
        assert VERIFIER.verify_gst(money(amount), slab / 100, money(tax + off)).verified is (off == 0), (amount, slab)


def test_taxes_are_verified_exactly_where_the_oracle_has_the_same_cents():
    compare_taxes(seed=2, count=FEW)


@pytest.mark.drill
@campaign("packs", "taxes against an oracle")
def test_ten_thousand_taxes(figure: Figure) -> None:
    figure("taxes", 3 * ALL)
    compare_taxes(seed=200, count=ALL)


def test_a_year_paid_in_parts_comes_to_the_wage_base_and_no_further():
    random = Random(3)
    for year, base in BASES.items():
        paid = total = 0
        while paid < base * 200:
            gross = random.randint(1, 5_000_000)
            slip = Payslip(year, "single", "monthly", gross, paid, 0)
            assert ask(slip, social_security=slip.social_security).verified
            total += min(gross, max(0, base * 100 - paid))
            paid += gross
        assert total == base * 100
