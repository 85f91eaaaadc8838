"""TaxVerifier: right taxes are verified, wrong ones refused, and what no table says is unverifiable."""

import json
from decimal import Context, Decimal, localcontext
from itertools import pairwise
from typing import Any

import pytest

from qwed.engines.pack_adapter import to_json
from qwed.packs.result import CheckStatus, Result
from qwed_tax import TaxVerifier
from qwed_tax.tables.federal import FEDERAL, STATUSES, WITHHOLDING_YEARS, YEARS, schedule, withholding
from qwed_tax.tables.gst import GST
from qwed_tax.tables.payroll import WAGE_BASE
from qwed_tax.tables.sales import RATES, STATES
from qwed_tax.tax_checks import CHECKS
from tests.support.case_tables import each, rows


def name(row: dict[str, Any]) -> str:
    return str(row["name"])


def asked(row: dict[str, Any]) -> Result:
    return CHECKS[row["check"]].ask(**row["values"])


@each("row", rows("tax_true.jsonl"), ids=name)
def test_a_right_tax_is_verified_with_what_it_comes_to(row):
    found = asked(row)
    assert found.status is CheckStatus.VERIFIED, found.message
    assert found.verified
    assert found.rule
    assert found.by_hand
    assert {field: to_json(found[field]) for field in row["has"]} == row["has"]


@each("row", rows("tax_false.jsonl"), ids=name)
def test_a_wrong_tax_is_refused_with_what_it_comes_to(row):
    found = asked(row)
    assert found.status is CheckStatus.FAILED, found.message
    assert not found.verified
    assert row["says"] in found.message
    assert found.rule
    assert found.by_hand


@each("row", rows("tax_hostile.jsonl"), ids=name)
def test_what_cannot_be_known_is_unverifiable_and_says_what_to_write(row):
    found = asked(row)
    assert found.status is CheckStatus.UNVERIFIABLE, found.message
    assert row["says"] in found.message
    assert len(found.message) < 600
    assert not found.message.endswith(".")


NASTY = (None, True, [], {}, "", "x" * 10_000, float("nan"), 1e308, b"1", object(), 2**20_000, [[[]]], {"a": {}})


@pytest.mark.parametrize("value", NASTY, ids=lambda value: type(value).__name__)
def test_no_value_of_any_argument_raises(value):
    verifier = TaxVerifier(jurisdiction=value)
    assert isinstance(verifier.verify_gst(value, value, value, date=value, supply=value), Result)
    for question in CHECKS.values():
        assert isinstance(question.ask(**dict.fromkeys(question.takes, value)), Result)
        for place in question.takes:
            honest = {"gross_pay": 1000, "year": 2024, "claimed_fica": 76.5, "amount": 100, "rate": 0.05}
            honest |= {"claimed_tax": 5, "losses": 1, "gains": 2, "rate_percent": 5}
            given = {key: honest[key] for key in question.takes if key in honest} | {place: value}
            assert isinstance(question.ask(**given), Result)


def test_the_published_calls():
    assert TaxVerifier().verify_gst(1000, 18, 180).verified
    assert TaxVerifier(jurisdiction="IN").verify_gst(1000, 18, 180).verified
    assert not TaxVerifier(jurisdiction="IN").verify_gst(1000, 17, 170).verified
    assert TaxVerifier(jurisdiction="US").verify_sales_tax(100, 0.0825, 8.25).verified
    assert TaxVerifier().verify_india_crypto(5000, 10000).verified
    assert TaxVerifier().verify_us_payroll(100_000, claimed_fica=7650, year=2024).verified
    assert TaxVerifier().verify_us_payroll(100_000, {"fica": 7650}, year=2024)["components"]["fica"]["verified"]


def test_the_usual_other_names_of_arguments_are_known():
    found = TaxVerifier().verify_us_payroll(
        gross_wages=2000, tax_year=2025, frequency="biweekly", status="single", ytd=0, fica=153, federal_tax="161.60"
    )
    assert found.verified, found.message
    assert set(found.components) == {"fica", "federal_withholding"}


@pytest.mark.parametrize("precision", [1, 5, 28])
def test_a_context_that_rounds_changes_nothing(precision):
    with localcontext(Context(prec=precision)) as context:
        assert (
            TaxVerifier()
            .verify_us_payroll(
                Decimal("123456.78"), claimed_fica=Decimal("9444.44"), claimed_income_tax="19168.13", year=2024
            )
            .verified
        )
        assert TaxVerifier().verify_sales_tax("123456789.99", "8.375%", "10339506.16").verified
        assert not any(context.flags.values())


def test_every_bracket_that_takes_part_is_shown():
    found = TaxVerifier().verify_us_payroll(0, year=2024, taxable_income=700_000, claimed_income_tax="217187.75")
    assert found.verified
    assert found.by_hand == (
        "10 % of 11600.00 (from 0 to 11600.00) = 1160.00",
        "12 % of 35550.00 (from 11,600 to 47150.00) = 4266.00",
        "22 % of 53375.00 (from 47,150 to 100525.00) = 11742.50",
        "24 % of 91425.00 (from 100,525 to 191950.00) = 21942.00",
        "32 % of 51775.00 (from 191,950 to 243725.00) = 16568.00",
        "35 % of 365625.00 (from 243,725 to 609350.00) = 127968.75",
        "37 % of 90650.00 (from 609,350 to 700000.00) = 33540.50",
        "the brackets together: 217187.75",
    )


# Publication 15-T, section 1, as printed: where each line starts, and its base.
PRINTED = {
    (2026, "single", False): "0 7500 19900/1240 57900/5800 113200/17966 209275/41024 263725/58448 648100/192979.25",
    (2026, "married_filing_jointly", False): (
        "0 19300 44100/2480 120100/11600 230700/35932 422850/82048 531750/116896 788000/206583.5"
    ),
    (2026, "head_of_household", False): (
        "0 15550 33250/1770 83000/7740 121250/16155 217300/39207 271750/56631 656150/191171"
    ),
    (2026, "single", True): "0 8050 14250/620 33250/2900 60900/8983 108938/20512 136163/29224 328350/96489.63",
    (2026, "married_filing_jointly", True): (
        "0 16100 28500/1240 66500/5800 121800/17966 217875/41024 272325/58448 400450/103291.75"
    ),
    (2026, "head_of_household", True): (
        "0 12075 20925/885 45800/3870 64925/8077.5 112950/19603.5 140175/28315.5 332375/95585.5"
    ),
    (2025, "single", False): "0 6400 18325/1192.5 54875/5578.5 109750/17651 203700/40199 256925/57231 632750/188769.75",
    (2025, "married_filing_jointly", False): (
        "0 17100 40950/2385 114050/11157 223800/35302 411700/80398 518150/114462 768700/202154.5"
    ),
    (2025, "head_of_household", False): (
        "0 13900 30900/1700 78750/7442 117250/15912 211200/38460 264400/55484 640250/187031.5"
    ),
    (2023, "single", False): "0 5250 16250/1100 49975/5147 100625/16290 187350/37104 236500/52832 583375/174238.25",
    (
        2020,
        "single",
        False,
    ): "0 3800 13675/987.5 43925/4617.5 89325/14605.5 167100/33271.5 211150/47367.5 522200/156235",
}


@pytest.mark.parametrize(("which", "lines"), PRINTED.items(), ids=str)
def test_the_withholding_schedules_are_those_that_are_printed(which, lines):
    printed = [(int(line.split("/")[0]), Decimal(line.partition("/")[2] or 0)) for line in lines.split()]
    assert [(step.start, step.base) for step in withholding(*which)] == printed


def test_the_tables_have_every_year_and_status_and_rise():
    for year in YEARS:
        for status in STATUSES:
            steps = schedule(year, status)
            assert [step.start for step in steps] == sorted(step.start for step in steps)
            assert len(steps) == 7
    assert {year for year, _ in FEDERAL} == set(YEARS)
    assert set(WITHHOLDING_YEARS) < set(YEARS) < set(WAGE_BASE)
    assert list(WAGE_BASE.values()) == sorted(WAGE_BASE.values())


def test_the_rates_of_a_place_follow_each_other_without_a_gap():
    assert len(STATES) == 51
    for rates in RATES.values():
        assert all(rate.until == following.since for rate, following in pairwise(rates))
        assert all(0 <= rate.rate < 1 for rate in rates)
    for country in GST.values():
        assert all(row.until == following.since for row, following in pairwise(country))


def test_every_result_is_plain_json_at_the_edge():
    for row in rows("tax_true.jsonl"):
        assert json.loads(json.dumps(to_json(asked(row))))["status"] == "VERIFIED"


def test_what_to_claim_is_said_as_it_is_asked_and_a_misspelt_claim_with_what_is_near():
    nothing = TaxVerifier().verify_us_payroll(5000, year=2024)
    assert "at least one of claimed_social_security, claimed_medicare" in nothing.message
    assert set(nothing.known) <= set(CHECKS["us_payroll"].takes)
    misspelt = TaxVerifier().verify_us_payroll(5000, year=2024, claimed_fcia=1)
    assert "unknown claim `claimed_fcia`: did you mean `claimed_fica`" in misspelt.message


def test_a_rate_that_is_not_charged_is_told_before_a_tax_that_is_right():
    found = CHECKS["sales_tax"].ask(amount=100, rate=0.05, claimed_tax=5, place="TX")
    assert found.status is CheckStatus.FAILED
    assert found.message.startswith("the general rate of Texas is 6.25 %: 5 % is not charged there, ")
