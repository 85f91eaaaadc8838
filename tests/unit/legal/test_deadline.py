"""INTERFACES 8: DeadlineGuard, the seed's example and what holds for every term."""

from datetime import date

from qwed.packs.result import Standing
from qwed_legal import DeadlineGuard


def test_the_example_of_the_seed_is_refused_with_the_day_that_holds():
    result = DeadlineGuard(country="US").verify("2026-01-15", "30 business days", "2026-02-14")
    assert not result.verified
    assert result.status is Standing.FAILED
    assert result.computed_deadline == date(2026, 3, 2)
    assert (result.signing_date, result.claimed_deadline) == (date(2026, 1, 15), date(2026, 2, 14))
    assert (result.term_parsed, result.difference_days) == ("30 business days after the signing date", -16)
