"""BICs: form and country, against python-stdnum."""

from typing import Any

import stdnum.bic

from qwed.packs.result import CheckStatus
from qwed_finance.bic import check_bic
from tests.support.case_tables import each


@each(
    ("text", "standing"),
    [
        ("DEUTDEFF", "VERIFIED"),
        ("DEUTDEFF500", "VERIFIED"),
        ("BNPAFRPPXXX", "VERIFIED"),
        ("NCBVXKPR", "VERIFIED"),
        ("AGRIFRPP882", "VERIFIED"),
        ("DEUTDEFF50", "FAILED"),
        ("DEUTDEF", "FAILED"),
        ("DEUTDEFF5000", "FAILED"),
        ("DEUTZZFF", "FAILED"),
        ("DEUTUKFF", "FAILED"),
        ("DEUT1EFF", "FAILED"),
        ("deutdeff", "FAILED"),
        ("DEUT DEFF", "FAILED"),
        ("DEUTDEFF\n", "FAILED"),
        ("DEUTDE\uff26F", "FAILED"),
        ("D" * 1_000_000, "FAILED"),
        ("", "UNVERIFIABLE"),
        (None, "UNVERIFIABLE"),
        (12345678, "UNVERIFIABLE"),
    ],
)
def test_forms_of_a_bic(text: Any, standing: str) -> None:
    result = check_bic(text)
    assert result.status is CheckStatus(standing), result.message
    assert bool(result.rule and result.by_hand) == (standing != "UNVERIFIABLE")
    if result.verified:
        assert stdnum.bic.is_valid(text)


def test_the_parts_are_told() -> None:
    result = check_bic("DEUTDEFF500")
    assert (result.party, result.country, result.place, result.branch) == ("DEUT", "DE", "FF", "500")
