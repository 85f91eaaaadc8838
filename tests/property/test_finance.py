"""FinanceVerifier against independent oracles: fractions, and mpmath at sixty digits."""

from fractions import Fraction
from random import Random

import mpmath
import pytest

from qwed.packs.result import CheckStatus
from qwed_finance import FinanceVerifier
from tests.support.campaign_table import Figure, campaign

FEW, ALL = 60, 10_000
verifier = FinanceVerifier()
TIMES = {"annual": 1, "semiannual": 2, "quarterly": 4, "monthly": 12, "weekly": 52, "daily": 365}


def cents(exact: Fraction, decimals: int = 2) -> str:
    """Round half up, with integers alone."""
    scaled = abs(exact) * 10**decimals
    units = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    digits = str(units).rjust(decimals + 1, "0")
    return ("-" if exact < 0 and units else "") + digits[:-decimals] + "." + digits[-decimals:]


def off(claim: str, by: int) -> str:
    return cents(Fraction(claim) + Fraction(by, 10 ** len(claim.partition(".")[2])), len(claim.partition(".")[2]))


def is_tie(exact: Fraction, decimals: int = 2) -> bool:
    cent = Fraction(1, 10**decimals)
    return (exact * 2 / cent).denominator == 1 and (exact / cent).denominator != 1


def written(claim: str, random: Random) -> object:
    """Return one of the forms in which the same amount is claimed."""
    whole, _, rest = claim.lstrip("-").partition(".")
    sign = "-" if claim.startswith("-") else ""
    ways = [
        claim,
        float(claim),
        f"{sign}${int(whole):,}.{rest}",
        f"{claim} USD",
        f"The result is {sign}${int(whole):,}.{rest}.",
    ]
    return random.choice(ways)


def payment(principal: Fraction, rate: Fraction, months: int) -> Fraction:
    """Return the payment by the recurrence of the balance: the loan and the payments with interest cancel out."""
    grown, paid = Fraction(1), Fraction(0)
    for _ in range(months):
        grown, paid = grown * (1 + rate / 12), paid * (1 + rate / 12) + 1
    return principal * grown / paid


def check_loans(seed: int, count: int) -> int:
    random = Random(seed)
    for _ in range(count):
        principal = Fraction(random.randint(100, 10 ** random.choice([5, 8, 11])), 100)
        rate = (
            Fraction(random.choice([0, 1, -1, 1]) * random.randint(0, 3000), 10_000)
            if random.random() < 0.9
            else Fraction(0)
        )
        months = random.choice([1, 6, 12, 24, 36, 60, 120])
        exact = payment(principal, rate, months)
        given = (f"{float(principal):.2f}", f"{float(rate):.4f}", months)
        claim = cents(exact)
        right = verifier.verify_monthly_payment(*given, written(claim, random))
        assert right.verified, (given, claim, right)
        assert str(right.computed_value) == claim
        if is_tie(exact):
            continue
        for by in (1, -1, random.randint(2, 999)):
            wrong = verifier.verify_monthly_payment(*given, written(off(claim, by), random))
            assert wrong.status is CheckStatus.FAILED, (given, claim, by, wrong)
    return count


def check_flows(seed: int, count: int) -> int:
    random = Random(seed)
    for _ in range(count):
        flows = [Fraction(random.randint(-(10**7), 10**7), 100) for _ in range(random.randint(1, 12))]
        rate = Fraction(random.randint(-4000, 9000), 10_000)
        exact = sum((each / (1 + rate) ** at for at, each in enumerate(flows)), Fraction(0))
        given = [f"{float(each):.2f}" for each in flows], f"{float(rate):.4f}"
        claim = cents(exact)
        assert verifier.verify_npv(*given, written(claim, random)).verified, (given, claim)
        for by in () if is_tie(exact) else (1, -1, random.randint(2, 999)):
            wrong = verifier.verify_npv(*given, written(off(claim, by), random))
            assert wrong.status is CheckStatus.FAILED, (given, claim, by)
    return count


def check_growth(seed: int, count: int) -> int:
    random = Random(seed)
    for _ in range(count):
        principal, rate = Fraction(random.randint(1, 10**9), 100), Fraction(random.randint(0, 2500), 10_000)
        name = random.choice([*TIMES, "continuous"])
        years = random.randint(0, 40)
        with mpmath.workdps(60):
            times = TIMES.get(name)
            base = mpmath.mpf(rate.numerator) / rate.denominator
            grown = mpmath.exp(base * years) if times is None else (1 + base / times) ** (times * years)
            exact = Fraction(
                int(mpmath.nint(grown * principal.numerator * mpmath.mpf(10) ** 30)), principal.denominator * 10**30
            )
        given = f"{float(principal):.2f}", f"{float(rate):.4f}", years
        claim = cents(exact)
        right = verifier.verify_compound_interest(*given, written(claim, random), compounding=name, value="amount")
        assert right.verified, (given, name, claim, right)
        for by in () if is_tie(exact) else (1, -1, random.randint(2, 999)):
            wrong = verifier.verify_compound_interest(*given, written(off(claim, by), random), name, "amount")
            assert wrong.status is CheckStatus.FAILED, (given, name, claim, by)
    return count


def check_rates(seed: int, count: int) -> int:
    """Check flows with a known rate: the first payment equals the value of the rest."""
    random = Random(seed)
    for _ in range(count):
        rate = Fraction(random.randint(-3000, 20_000), 10_000)
        later = [Fraction(random.randint(0, 10**6)) for _ in range(random.randint(1, 10))] + [
            Fraction(random.randint(1, 10**6))
        ]
        base = (1 + rate) ** len(later)
        # Multiplied by a power of the base, every flow is a whole number.
        scale = base.denominator
        if scale > 10**20:
            continue
        first = sum((each / (1 + rate) ** at for at, each in enumerate(later, 1)), Fraction(0))
        power = (1 + rate).numerator ** len(later)
        flows = [int(-first * power), *(int(each * power) for each in later)]
        if max(map(abs, flows)) >= 10**24:
            continue
        percent = cents(rate * 100)
        assert verifier.verify_irr(flows, f"{percent}%").verified, (flows, percent)
        assert verifier.verify_irr(flows, float(rate)).verified
        for by in (1, -1, random.randint(2, 500)):
            wrong = verifier.verify_irr(flows, f"{off(percent, by)}%")
            assert wrong.status is CheckStatus.FAILED, (flows, percent, by, wrong)
    return count


def check_several(seed: int, count: int) -> int:
    """Check flows built from their rates: each factor (100 + p) x - 100 is zero at p percent."""
    random = Random(seed)
    for _ in range(count):
        percents = random.sample(range(-60, 200), random.randint(2, 5))
        flows = [random.choice([1, -1])]
        for each in percents:
            flows = [(100 + each) * one - 100 * other for one, other in zip([0, *flows], [*flows, 0], strict=True)]
        for each in percents:
            assert verifier.verify_irr(flows, f"{each}%").verified, (percents, flows)
            assert verifier.verify_irr(flows, f"{each}.01%").status is CheckStatus.FAILED, (percents, flows)
    return count


CHECKS = {
    "loans": check_loans,
    "cash flows": check_flows,
    "growth": check_growth,
    "rates": check_rates,
    "several rates": check_several,
}


@pytest.mark.parametrize("name", CHECKS)
def test_what_the_oracle_computes_is_verified_and_a_cent_more_or_less_is_not(name: str) -> None:
    CHECKS[name](1, FEW)


@pytest.mark.drill
@campaign("packs", "loans, cash flows, growth and rates against an oracle")
@pytest.mark.parametrize("name", CHECKS)
def test_ten_thousand_are_judged_as_the_oracle_judges_them(name: str, figure: Figure) -> None:
    figure(name, CHECKS[name](100, ALL))
