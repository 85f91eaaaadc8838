"""CitationGuard: right citations in every usual notation, plausible wrong ones, and hostile input."""

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from qwed.packs.result import CheckStatus
from qwed_legal import CitationGuard
from qwed_legal.citation import CHECKS, EXISTENCE_NOT_CHECKED, MAX_CITATIONS, CitationResult
from tests.support.case_tables import each, rows

GUARD = CitationGuard(clock=lambda: date(2026, 11, 16))


def require_explained(result: CitationResult) -> None:
    assert result.valid is result.verified
    assert EXISTENCE_NOT_CHECKED in result.message or result.status is CheckStatus.UNVERIFIABLE
    if result.status is not CheckStatus.UNVERIFIABLE:
        assert result.rule
        assert result.by_hand
    assert bool(result.issues) is (result.status is CheckStatus.FAILED)


@each(("citation", "kind"), [(row["citation"], row["kind"]) for row in rows("citation_true.jsonl")])
def test_a_right_citation_is_valid(citation: str, kind: str) -> None:
    result = GUARD.verify(citation)
    require_explained(result)
    assert result.valid, result.message
    assert result.parsed_components["kind"] == kind


@each(("why", "citation"), [(row["why"], row["citation"]) for row in rows("citation_false.jsonl")])
def test_a_wrong_citation_is_not(why: str, citation: str) -> None:
    result = GUARD.verify(citation)
    require_explained(result)
    assert not result.valid, why


def hostile() -> Iterator[tuple[str, Any]]:
    for row in rows("citation_hostile.jsonl"):
        yield row["why"], (row["part"] * row["times"])[:2_000] if "part" in row else row["value"]


@each(("why", "citation"), hostile())
def test_a_nasty_citation_is_answered_and_not_valid(why: str, citation: Any) -> None:
    result = GUARD.verify(citation)
    require_explained(result)
    assert not result.valid, why


ALIKE = """
Brown v. Board of Education, 347 U.S. 483 (1954)
Brown v. Board of Education, 347 U. S. 483 (1954)
Brown v. Board of Education, 347 US 483 (1954)
Brown v. Board of Education, 347\u00a0U.S.\u00a0483 (1954).
Brown v. Board of Education, 347 U.S. 483  (1954)
See Brown v. Board of Education, 347 U.S. 483 (1954)
""".strip().splitlines()


@each("citation", ALIKE)
def test_what_is_written_in_another_way_is_read_alike(citation: str) -> None:
    components = GUARD.verify(citation).parsed_components
    parts = {name: components[name] for name in ("volume", "reporter", "page", "year", "parties")}
    assert parts == {
        "volume": "347",
        "reporter": "U.S.",
        "page": "483",
        "year": "1954",
        "parties": "Brown v. Board of Education",
    }


PARSED = [
    ("347 U.S. 483, 495-96 (1954)", {"pin_cite": "495-96"}),
    ("5 U.S. (1 Cranch) 137", {"reporter_nominative": "Cranch", "volume_nominative": "1"}),
    ("630 F.2d 876 (2d Cir. 1980)", {"court": "2d Cir.", "year": "1980"}),
    ("42 U.S.C. § 2000e-2(a)(1)", {"kind": "statute", "title": "42", "section": "2000e-2(a)(1)"}),
    ("U.S. Const. amend. XIV, § 1", {"kind": "constitution", "amendment": "XIV", "section": "1"}),
    ("[2005] EWHC 1234 (Admin)", {"kind": "neutral", "court": "EWHC", "number": "1234", "division": "Admin"}),
    ("ECLI:EU:C:2014:317", {"kind": "ecli", "country": "EU", "court": "C", "year": "2014", "ordinal": "317"}),
    ("(1854) 9 Exch 341", {"kind": "report", "volume": "9", "reporter": "Exch", "page": "341", "year": "1854"}),
    ("347 U.S. at 495", {"kind": "short", "volume": "347", "pin_cite": "495"}),
    ("2015-Ohio-1234", {"volume": "2015", "reporter": "Ohio", "page": "1234"}),
    ("Fed. R. Civ. P. 12(b)(6)", {"kind": "rule", "rule": "12"}),
]


@each(("citation", "parts"), PARSED)
def test_the_parts_are_named(citation: str, parts: dict[str, str]) -> None:
    assert parts.items() <= GUARD.verify(citation).parsed_components.items()


def test_parallels_and_what_became_of_the_case_are_read() -> None:
    components = GUARD.verify(
        "Zeran v. America Online, Inc., 129 F.3d 327 (4th Cir. 1997), cert. denied, 524 U.S. 937 (1998)"
    ).parsed_components
    assert components["history"][0]["action"] == "cert. denied"
    assert components["history"][0]["volume"] == "524"
    parallel = GUARD.verify("347 U.S. 483, 74 S. Ct. 686, 98 L. Ed. 873 (1954)").parsed_components["parallel"]
    assert [core["reporter"] for core in parallel] == ["S. Ct.", "L. Ed."]


def test_an_error_in_what_became_of_the_case_is_found() -> None:
    assert not GUARD.verify("Roe v. Wade, 410 U.S. 113 (1973), overruled by X v. Y, 597 U.S. 215 (1922)").valid


def test_an_unknown_reporter_is_named_with_those_that_are_near() -> None:
    result = GUARD.verify("999 F.9th 1")
    assert result.status is CheckStatus.FAILED
    assert "F.4th" in result.issues[0]


UNKNOWN = [
    "BGH, Urteil vom 12. März 2015 - I ZR 84/13",
    "最高裁判所平成10年1月1日判決",
    "Id. at 5",
    "Smith, supra note 3",
]


@each("citation", UNKNOWN)
def test_an_unknown_system_is_unverifiable_with_those_that_are_known(citation: str) -> None:
    result = GUARD.verify(citation)
    assert result.status is CheckStatus.UNVERIFIABLE
    assert "ECLI" in result.known


def test_a_year_that_has_not_come_yet_comes() -> None:
    later = CitationGuard(clock=lambda: date(2031, 1, 1))
    assert not GUARD.verify("2030 WL 12345").valid
    assert later.verify("2030 WL 12345").valid


def test_a_batch_has_a_result_for_each_and_counts() -> None:
    batch = GUARD.verify_batch(["347 U.S. 483", "999 F.9th 1", "nothing"])
    assert (batch.total, batch.valid, batch.invalid, batch.unknown) == (3, 1, 2, 1)
    assert [item.valid for item in batch] == [True, False, False]
    assert batch[0].valid
    assert len(batch) == 3
    assert batch["total"] == dict(batch)["total"] == 3
    assert batch.status is CheckStatus.FAILED
    assert GUARD.verify_batch(["347 U.S. 483"]).verified
    assert GUARD.verify_batch(["347 U.S. 483", "nothing"]).status is CheckStatus.UNVERIFIABLE


@pytest.mark.parametrize("citations", [None, 5, "347 U.S. 483", {}, [], [None] * (MAX_CITATIONS + 1)])
def test_what_is_no_list_is_unverifiable(citations: Any) -> None:
    assert GUARD.verify_batch(citations).status is CheckStatus.UNVERIFIABLE


def test_the_citations_of_a_text_are_found_with_those_that_are_only_shaped_so() -> None:
    text = "In Brown, 347 U.S. 483 (1954), unlike 999 F.9th 1, 42 U.S.C. § 1983 and [2019] UKSC 41 were not at issue."
    validity = {item.citation: item.valid for item in GUARD.find(text)}
    assert validity["999 F.9th 1"] is False
    assert sum(validity.values()) == 3
    assert GUARD.find("nothing here").status is CheckStatus.UNVERIFIABLE
    assert GUARD.find(None).status is CheckStatus.UNVERIFIABLE
    assert GUARD.find("1 U.S. 1; " * (MAX_CITATIONS + 1)).status is CheckStatus.UNVERIFIABLE


def test_the_questions_are_asked_by_name() -> None:
    checks = {check.name: check for check in CHECKS}
    assert checks["citation"].ask(citation="347 U.S. 483").verified
    assert checks["citation_batch"].ask(citations=["347 U.S. 483"]).verified


@pytest.mark.parametrize("digits", ["19554", "195"])
def test_a_year_has_four_digits(digits: str) -> None:
    for court in ("", "D. Mass. "):
        result = CitationGuard().verify(f"347 U.S. 483 ({court}{digits})")
        assert result.issues == [f"`{digits}` is not a year: a year has 4 digits, this has {len(digits)}"]


@pytest.mark.parametrize("sign", ["-", "_", "\u00a7", "\u3042"])
def test_a_long_run_of_signs_in_a_text_is_gone_through_once(sign: str) -> None:
    batch = CitationGuard().find(sign * 40_000 + " see 347 U.S. 483 (1954), " + sign * 40_000)
    assert [item.citation for item in batch] == ["347 U.S. 483 (1954)"]
