"""Pack results: only proven claims are verified, and unreadable input is UNVERIFIABLE."""

from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from qwed.model.decimals import parse_number
from qwed.packs.result import CheckStatus, Result, status_of, unknown_name_error, unverifiable_on_error
from qwed.packs.value_parsing import number_of


@dataclass(frozen=True, kw_only=True)
class Doubled(Result):
    computed: str | None = None


@unverifiable_on_error(Doubled)
def doubled(value: Any, claimed: str) -> Doubled:
    if value == "elsewhere":
        raise unknown_name_error("place", value, ["here", "there"])
    if value == "bare":
        parse_number([])
    computed = str(number_of("value", value) * 2)
    return Doubled(status=status_of(computed == claimed), message="", computed=computed)


def test_it_reads_both_ways_and_stays_as_it_is() -> None:
    result = doubled(2, "4")
    assert result.verified is result["verified"] is True
    assert dict(result)["computed"] == "4"
    with pytest.raises(FrozenInstanceError):
        result.verified = False  # type: ignore[misc]


def test_only_what_is_verified_reads_verified() -> None:
    with pytest.raises(TypeError):
        Doubled(status=CheckStatus.FAILED, message="", verified=True)  # type: ignore[call-arg]
    assert [Doubled(status=status, message="").verified for status in CheckStatus] == [True, False, False]


def test_a_wrong_claim_fails() -> None:
    assert (doubled(2, "5").status, doubled(2, "5").computed) == (CheckStatus.FAILED, "4")


def test_what_cannot_be_read_is_unverifiable_and_says_why() -> None:
    assert (doubled("x", "4").status, doubled("x", "4").computed) == (CheckStatus.UNVERIFIABLE, None)
    assert "`value`" in doubled("x", "4").message
    assert doubled("bare", "4").status is CheckStatus.UNVERIFIABLE
    assert doubled("elsewhere", "4").known == ("here", "there")


def test_an_unknown_name_is_told_with_those_near_it() -> None:
    assert str(unknown_name_error("country", "Germny", ["DE", "FR"], ["Germany", "France"])) == (
        "unknown country `Germny`: did you mean `Germany`? known are DE, FR, and their English names"
    )
    assert str(unknown_name_error("check", "citaton", ["deadline", "citation"])) == (
        "unknown check `citaton`: did you mean `citation`? known are deadline, citation"
    )
    assert str(unknown_name_error("year", 2031, ["2025"])) == "unknown year `2031`: known are 2025"
