"""A result of a pack: verified is what was proven, and what cannot be read is an answer too."""

from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from qwed.packs.reading import number_of
from qwed.packs.result import Result, Standing, answering, standing, unknown
from qwed.words.exact import number


@dataclass(frozen=True, kw_only=True)
class Doubled(Result):
    computed: str | None = None


@answering(Doubled)
def doubled(value: Any, claimed: str) -> Doubled:
    if value == "elsewhere":
        raise unknown("place", value, ["here", "there"])
    if value == "bare":
        number([])
    computed = str(number_of("value", value) * 2)
    return Doubled(status=standing(computed == claimed), message="", computed=computed)


def test_it_reads_both_ways_and_stays_as_it_is() -> None:
    result = doubled(2, "4")
    assert result.verified is result["verified"] is True
    assert dict(result)["computed"] == "4"
    with pytest.raises(FrozenInstanceError):
        result.verified = False  # type: ignore[misc]


def test_only_what_is_verified_reads_verified() -> None:
    with pytest.raises(TypeError):
        Doubled(status=Standing.FAILED, message="", verified=True)  # type: ignore[call-arg]
    assert [Doubled(status=each, message="").verified for each in Standing] == [True, False, False]


def test_a_wrong_claim_fails() -> None:
    assert (doubled(2, "5").status, doubled(2, "5").computed) == (Standing.FAILED, "4")


def test_what_cannot_be_read_is_unverifiable_and_says_why() -> None:
    assert (doubled("x", "4").status, doubled("x", "4").computed) == (Standing.UNVERIFIABLE, None)
    assert "`value`" in doubled("x", "4").message
    assert doubled("bare", "4").status is Standing.UNVERIFIABLE
    assert doubled("elsewhere", "4").known == ("here", "there")


def test_an_unknown_name_is_told_with_those_near_it() -> None:
    assert str(unknown("country", "Germny", ["DE", "FR"], ["Germany", "France"])) == (
        "unknown country `Germny`: did you mean `Germany`? known are DE, FR, and their English names"
    )
    assert str(unknown("check", "citaton", ["deadline", "citation"])) == (
        "unknown check `citaton`: did you mean `citation`? known are deadline, citation"
    )
    assert str(unknown("year", 2031, ["2025"])) == "unknown year `2031`: known are 2025"
