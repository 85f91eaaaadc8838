"""Caps, tiers and indemnities against fractions of integers: no Decimal, no rounding, no float tolerance."""

from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from qwed.packs.result import CheckStatus
from qwed_legal import LiabilityGuard
from tests.support.campaign_table import Figure, campaign

FEW, ALL = 400, 10_000


def amount(random: Random) -> Fraction:
    return Fraction(random.randint(0, 10 ** random.choice([2, 4, 7, 12])), random.choice([1, 100, 1000]))


def written(exact: Fraction, random: Random) -> Any:
    """Return one of the forms of an amount with finite decimals."""
    text = format(Decimal(exact.numerator) / Decimal(exact.denominator), "f")
    whole, _, rest = text.partition(".")
    grouped = f"{int(whole):,}" + (f".{rest}" if rest else "")
    ways: list[Any] = [text, f"${grouped}", grouped, f"USD {grouped}", Decimal(text)]
    if Fraction(repr(float(text))) == exact and "e" not in repr(float(text)):
        ways.append(float(text))
    if exact.denominator == 1:
        ways.append(int(exact))
    return random.choice(ways)


def cents(exact: Fraction) -> Fraction:
    return Fraction(round(exact * 100), 100)


def claims(computed: Fraction, random: Random) -> Fraction:
    """Return a claim that is right, right to the cent, a little off, or wrong in a usual way."""
    near = cents(computed)
    little = Fraction(random.randint(1, 300), 100)
    ways = [near, near, near, near + Fraction(1, 100), near - Fraction(1, 100), near + little, near * 10, near / 10]
    ways += [computed + computed * Fraction(random.randint(-20, 20), 100_000), near * 2, -near]
    return cents(random.choice(ways))


def judged(computed: Fraction, claimed: Fraction, percent: Fraction) -> bool:
    off = abs(claimed - computed)
    return off <= Fraction(1, 200) or off <= computed * percent / 100


def compare(seed: int, count: int) -> tuple[int, int]:
    random = Random(seed)
    right = 0
    for _ in range(count):
        tolerance = random.choice([Fraction(0), Fraction(1, 100), Fraction(1, 10), Fraction(1)])
        guard = LiabilityGuard(str(Decimal(tolerance.numerator) / Decimal(tolerance.denominator)))
        base, percent = amount(random), Fraction(random.randint(0, 40_000), 100)
        times = Fraction(random.randint(0, 100), random.choice([1, 2, 4]))
        tiers = [(amount(random), Fraction(random.randint(0, 400))) for _ in range(random.randint(1, 5))]
        asked = (
            (base * percent / 100, guard.verify_cap, (written(base, random), float(percent))),
            (base * times, guard.verify_indemnity_limit, (written(base, random), float(times))),
            (
                sum((each * share / 100 for each, share in tiers), Fraction(0)),
                guard.verify_tiered_liability,
                ([{"base": written(each, random), "percentage": int(share)} for each, share in tiers],),
            ),
        )
        for computed, verb, values in asked:
            claimed = claims(computed, random)
            result = verb(*values, format(Decimal(claimed.numerator) / Decimal(claimed.denominator), "f"))
            expected = judged(computed, claimed, tolerance)
            assert result.verified is expected, (values, claimed, result)
            assert result.status is not CheckStatus.UNVERIFIABLE
            assert Fraction(result.difference) == claimed - computed
            right += expected
    return right, count * 3 - right


def test_amounts_are_judged_as_fractions_judge_them():
    right, wrong = compare(seed=1, count=FEW)
    # Both outcomes must be frequent enough to compare.
    assert min(right, wrong) > FEW / 2


@pytest.mark.drill
@campaign("packs", "liabilities against fractions")
def test_ten_thousand_amounts_of_each_kind_are_judged_as_fractions_judge_them(figure: Figure):
    right, wrong = compare(seed=2, count=ALL)
    figure("right", right)
    figure("wrong", wrong)
