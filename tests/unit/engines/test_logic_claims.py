"""Consistency of claims in the logic engine: their classification, and contradictions between them."""

from typing import Any

import pytest

from qwed.engines.logic import verify
from qwed.engines.protocol import EngineRequest
from qwed.model import Status, Verdict


def ask(*claims: Any, **parameters: Any) -> Verdict:
    return verify(EngineRequest(parameters={"claims": list(claims), **parameters}))


def negated_claim(text: str) -> dict[str, Any]:
    return {"claim": text, "negated": True}


def test_claims_that_can_all_be_true_are_verified():
    verdict = ask("x > 5", "a -> b", "not b", {"claim": "a", "negated": True})
    assert (verdict.status, verdict.checks_passed[-1], verdict.checks_failed) == (Status.VERIFIED, "consistent", ())
    assert verdict.result == {"formula": [0, 1, 2, 3], "sentence": [], "unclear": [], "text": []}


def test_claims_that_contradict_each_other_fail_and_the_core_has_no_other():
    verdict = ask("y > 0", "x > 5", "prose outside the grammar, mostly", "x < 3")
    assert (verdict.status, verdict.checks_failed) == (Status.FAILED, ("consistent",))
    assert (verdict.result["contradictory"], verdict.result["unsat_core"]) == (True, [1, 3])
    assert (verdict.result["formula"], verdict.result["text"]) == ([0, 1, 3], [2])


@pytest.mark.parametrize(
    "claims", [("p", negated_claim("p")), (negated_claim("true -> p"), "p"), (negated_claim("x > 5"), "x > 6")]
)
def test_a_claim_may_be_denied(claims):
    assert ask(*claims).status is Status.FAILED


def test_what_is_no_formula_is_never_verified():
    for claims in (("x > 5", "most things are fine"), ("most things are fine",), ("The door is open",), ("",)):
        verdict = ask(*claims)
        assert (verdict.status, verdict.result["reason"]) == (Status.INCONCLUSIVE, "text")


def test_sentences_are_held_against_formulas_and_against_each_other():
    assert ask("x is greater than 5", "x < 3").result["unsat_core"] == [0, 1]
    assert ask("No dogs bark", "Rex is a dog", "p", "Rex barks").result["unsat_core"] == [0, 1, 3]


def test_a_formula_that_cannot_be_read_leaves_all_of_it_open():
    verdict = ask("x > 5", "1 < x < 3", "x < 2")
    assert (verdict.status, verdict.result["claim"], verdict.result["reason"]) == (Status.INCONCLUSIVE, 1, "unclear")
    assert "parentheses" in verdict.result["why"]


@pytest.mark.parametrize(
    "text",
    [
        *("yes/no", "TCP/IP", "state-of-the-art", "(see appendix)", "(unverified) sales grew", "True", "42"),
        *("due = 2024-01-31", "start > 10:30", "version = 1.2.3", "x > 007", "growth > 5%", "~5 < x", "x = 2y"),
        *("Revenue > $5M", "Sales in Q1 > 5", "A/B test > control", "x in {1, 2}", "step 1 -> step 2"),
    ],
)
def test_what_people_write_with_signs_is_text(text):
    assert ask(text).result["text"] == [0]


@pytest.mark.parametrize(
    "text",
    [
        *("p <-> q <-> r", "x > ", "5! = 120", "(GT x 5", "(GT x 5) (LT x 3)", "(AND (FOO x) p)", "2^3^2 = x"),
        *("(" * 201 + "p" + ")" * 201, "(" * 201 + "x > 1" + ")" * 201, "x > " + "9" * 401),
    ],
    ids=lambda text: text[:12],
)
def test_what_can_only_be_meant_as_a_formula_is_unclear(text):
    assert ask(text).result["unclear"] == [0]


def test_names_in_another_case_are_one_unless_they_are_letters_of_one_claim():
    assert ask("Price > 5", "price < 3").status is Status.FAILED
    assert ask("X > 5", "x < 3").status is Status.FAILED
    assert ask("x < X", "X > 5", "x < 3").status is Status.VERIFIED
    assert ask("Price < price").status is Status.FAILED
    assert ask('s = "Open"', 'S = "open"').status is Status.VERIFIED
    assert ask("P(x)", "p", "not P(y)").status is Status.VERIFIED


def test_a_word_that_is_also_a_number_is_a_word():
    assert ask("profit", "profit > 5", "profit < 3").result["unsat_core"] == [1, 2]
    assert ask("profit", "profit > 5").result["text"] == [0]


def test_what_depends_on_a_division_by_zero_is_open():
    verdict = ask("1/x > 0", "1/x < 0")
    assert (verdict.status, verdict.result["reason"]) == (Status.INCONCLUSIVE, "division_by_zero")


def test_formulas_that_have_no_sort_together_are_open():
    verdict = ask('x = "a"', "x > y")
    assert (verdict.status, verdict.result["reason"]) == (Status.INCONCLUSIVE, "unclear")


@pytest.mark.parametrize(
    "claims", [[], ["p"] * 101, "p", {"claim": "p"}, [5], [None], [{"claim": 5}], [["p"]]], ids=str
)
def test_claims_of_another_shape_are_blocked(claims):
    verdict = verify(EngineRequest(parameters={"claims": claims}))
    assert (verdict.status, verdict.result["error"]) == (Status.BLOCKED, "PARSE_ERROR")


def test_a_claim_is_denied_by_true_or_false_only():
    assert ask({"claim": "p", "negated": 1}).status is Status.BLOCKED


def test_more_than_the_engine_looks_at_is_blocked():
    assert ask(*["a" * 250] * 81).status is Status.BLOCKED


def test_a_query_or_an_argument_is_answered_as_before():
    assert verify(EngineRequest(query="x > 1", parameters={"claims": ["p", "not p"]})).status is Status.VERIFIED
    assert ask("p", "not p", premises=["q"], conclusion="q").status is Status.VERIFIED
