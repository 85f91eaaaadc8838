"""JurisdictionGuard: choices of law and forum, and conventions before and after their entry into force."""

from datetime import date
from typing import Any

import pytest

from qwed.packs.countries import COUNTRIES
from qwed.packs.result import CheckStatus, Result
from qwed_legal import JurisdictionGuard
from qwed_legal._jurisdiction.conventions import conventions
from qwed_legal.jurisdiction import CHECKS
from tests.support.case_tables import each, rows

GUARD = JurisdictionGuard(clock=lambda: date(2026, 11, 16))


def require_explained(result: Result) -> None:
    if result.status is not CheckStatus.UNVERIFIABLE:
        assert result.rule
        assert len(result.by_hand) > 1


def ask(row: dict[str, Any]) -> Any:
    options = {name: row[name] for name in ("contract_type", "weaker_party") if name in row}
    return GUARD.verify_choice_of_law(row["parties"], row["law"], row.get("forum"), **options)


@each("row", rows("jurisdiction_true.jsonl"))
def test_a_choice_that_holds_is_verified_with_its_warnings(row: dict[str, Any]) -> None:
    result = ask(row)
    require_explained(result)
    assert result.verified, result.message
    assert result.conflicts == []
    assert len(result.warnings) == row["warnings"], result.warnings
    assert row["read"] in (None, result.governing_law)


@each("row", rows("jurisdiction_false.jsonl"))
def test_a_choice_with_a_conflict_fails(row: dict[str, Any]) -> None:
    result = ask(row)
    require_explained(result)
    assert result.status is CheckStatus.FAILED
    assert result.conflicts


@each("row", rows("jurisdiction_hostile.jsonl"))
def test_what_names_no_place_is_unverifiable(row: dict[str, Any]) -> None:
    assert ask(row).status is CheckStatus.UNVERIFIABLE


@each("row", rows("jurisdiction_conventions.jsonl"))
def test_a_convention_applies_where_and_when_it_does(row: dict[str, Any]) -> None:
    result = GUARD.check_convention_applicability(
        row["parties"], row["convention"], as_of=row["as_of"], governing_law=row.get("governing_law")
    )
    require_explained(result)
    assert result.status is (CheckStatus.VERIFIED if row["applies"] else CheckStatus.FAILED), result.message
    assert result.applicable is row["applies"]


def test_an_unknown_country_law_or_convention_comes_with_those_that_are_known() -> None:
    assert "Delaware" in GUARD.verify_choice_of_law(["US"], "Martian law").known
    assert "US" in GUARD.verify_choice_of_law(["Atlantis"], "Delaware").known
    assert "CISG" in GUARD.check_convention_applicability(["US", "DE"], "Warsaw").known


OPEN = [
    (["US", "MO"], "CISG", "2024-01-01"),
    (["US", "DE"], "New York", "1961-05-01"),
    (["GB", "MK"], "Hague", "2026-01-01"),
    (["US"], "CISG", "2024-01-01"),
    (["US", "DE"], "CISG", "2024-02-30"),
    (["US", "DE"], 5, None),
    (None, "CISG", None),
]


@each(("parties", "convention", "as_of"), OPEN)
def test_what_is_not_in_the_table_is_unverifiable(parties: Any, convention: Any, as_of: Any) -> None:
    result = GUARD.check_convention_applicability(parties, convention, as_of=as_of)
    assert result.status is CheckStatus.UNVERIFIABLE
    assert result.applicable is None


def test_today_is_asked_of_the_clock() -> None:
    before = JurisdictionGuard(clock=lambda: date(2021, 9, 30))
    after = JurisdictionGuard(clock=lambda: date(2021, 10, 1))
    assert not before.check_convention_applicability(["PT", "FR"], "CISG").applicable
    assert after.check_convention_applicability(["PT", "FR"], "CISG").applicable


@pytest.mark.parametrize(("name", "many"), [("CISG", 98), ("New York 1958", 160), ("Hague Choice of Court 2005", 35)])
def test_the_members_are_countries_and_as_many_as_there_are(name: str, many: int) -> None:
    members = conventions()[name].members
    assert members.keys() <= COUNTRIES.keys()
    assert len(members) >= many
    assert all(date(1958, 1, 1) < first <= sure < date(2026, 1, 1) for first, sure in members.values())


def test_the_days_of_the_sales_convention_are_the_first_of_a_month_unless_a_state_succeeded_to_it() -> None:
    odd = {code for code, (day, _) in conventions()["CISG"].members.items() if day.day != 1}
    assert odd == {"BA", "HR", "ME", "MK", "RS", "SI"}


def test_the_questions_are_asked_by_name() -> None:
    checks = {check.name: check for check in CHECKS}
    assert checks["choice_of_law"].ask(parties_countries=["US", "DE"], governing_law="New York").verified
    assert checks["convention"].ask(parties=["US", "DE"], convention="CISG").verified


def test_parties_in_one_text_are_told_how_to_write_them() -> None:
    result = JurisdictionGuard().verify_choice_of_law("US,DE", "Germany")
    assert (result.status, '["US", "DE"]' in result.message) == (CheckStatus.UNVERIFIABLE, True)
