"""INTERFACES 3 and DESIGN 8: what the logic engine says of formulas and of arguments."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.engines.logic import verify
from qwed.engines.protocol import EngineRequest
from qwed.words import Status, Verdict

DATA = Path(__file__).parents[2] / "data"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def ask(row: dict[str, Any]) -> Verdict:
    if "repeat" in row:
        opening, times, middle, closing = row["repeat"]
        return verify(EngineRequest(query=opening * times + middle + closing * times))
    if "query" in row:
        return verify(EngineRequest(query=row["query"]))
    return verify(EngineRequest(parameters=row))


def query(text: str) -> Verdict:
    return verify(EngineRequest(query=text))


def entails(premises: list[str], conclusion: str) -> Verdict:
    return verify(EngineRequest(parameters={"premises": premises, "conclusion": conclusion}))


def label(row: dict[str, Any]) -> str:
    return json.dumps(row)[:70]


@pytest.mark.parametrize("row", rows("logic_true.jsonl"), ids=label)
def test_what_can_be_satisfied_or_follows_is_verified(row):
    verdict = ask(row)
    assert (verdict.status, verdict.checks_failed) == (Status.VERIFIED, ())
    assert verdict.verified
    assert verdict.checks_passed[-1] == ("satisfiable" if "query" in row else "entailed")


@pytest.mark.parametrize("row", rows("logic_false.jsonl"), ids=label)
def test_what_cannot_be_satisfied_or_does_not_follow_fails(row):
    verdict = ask(row)
    assert verdict.status is Status.FAILED
    assert len(verdict.checks_failed) == 1


@pytest.mark.parametrize("row", rows("logic_undecided.jsonl"), ids=label)
def test_english_and_division_by_zero_are_never_decided(row):
    assert ask(row).status is Status.INCONCLUSIVE


@pytest.mark.parametrize("row", rows("logic_hostile.jsonl"), ids=label)
def test_what_is_wrong_is_blocked_with_its_error_and_place(row):
    verdict = ask(row)
    assert (verdict.status, verdict.result["error"]) == (Status.BLOCKED, row["error"])
    assert isinstance(verdict.result["position"], int)
    assert verdict.message
    assert not verdict.message.endswith(".")


@pytest.mark.parametrize("name", ["logic_true.jsonl", "logic_false.jsonl"])
def test_no_answer_depends_on_the_answers_before_it(name):
    some = rows(name)[::6]
    first = [ask(row) for row in some]
    assert [ask(row) for row in reversed(some)] == first[::-1]


def test_logic_does_nothing_to_the_world():
    for row in rows("logic_true.jsonl") + rows("logic_hostile.jsonl"):
        verdict = ask(row)
        assert (verdict.effects, verdict.violations, verdict.engine) == ((), (), "logic")


def test_the_model_is_exact():
    verdict = query('(AND (EQ (TIMES 3 x) 1) (EQ y 0.1) (EQ n -7) p (EQ s "it"))')
    assert verdict.result["model"] == {"n": "-7", "p": "true", "s": "it", "x": "1/3", "y": "1/10"}


def test_an_irrational_model_is_named_and_not_rounded():
    assert "root-obj" in query("(AND (EQ (TIMES x x) 2) (GT x 0))").result["model"]["x"]


def test_the_core_names_the_members_that_contradict_each_other():
    assert query("(AND p (GT x 5) q (LT x 3))").result["unsat_core"] == [1, 3]


def test_a_false_argument_comes_with_a_counterexample():
    assert entails(["(IMPLIES p q)", "q"], "p").result["counterexample"] == {"p": "false", "q": "true"}


def test_contradictory_premises_prove_nothing():
    verdict = entails(["x > 2", "x < 1"], "x > 1")
    assert (verdict.status, verdict.checks_failed) == (Status.FAILED, ("premises_consistent",))
    assert verdict.result["contradictory"] is True


def test_a_guarded_denominator_is_no_obstacle():
    assert entails(["x / y = 2"], "x = 2*y").result == {"reason": "division_by_zero"}
    assert entails(["x / y = 2", "y > 0"], "x = 2*y").verified


def test_declarations_hold_for_all_premises():
    assert entails(["x > 1", "(VAR x Int) (LT x 3)"], "x = 2").verified
    assert not entails(["x > 1", "x < 3"], "x = 2").verified


def test_what_the_solver_cannot_finish_is_a_timeout_and_not_an_answer():
    hard = "(LET ((x Int) (y Int) (z Int)) (AND (EQ (+ (* x x x) (* y y y) (* z z z)) 114) (> x 1000) (< y -1000)))"
    verdict = query(hard)
    assert (verdict.status, verdict.result["error"]) == (Status.INCONCLUSIVE, "TIMEOUT")


@pytest.mark.parametrize(
    "parameters",
    [
        {"premises": [1], "conclusion": "p"},
        {"premises": ["p"]},
        {"conclusion": "p"},
        {"premises": {"a": 1}, "conclusion": "p"},
        {"premises": ["p"] * 101, "conclusion": "p"},
        {"premises": ["p " * 9000, "q " * 9000], "conclusion": "p"},
    ],
)
def test_an_argument_of_the_wrong_shape_is_blocked(parameters):
    verdict = verify(EngineRequest(parameters=parameters))
    assert (verdict.status, verdict.result["error"]) == (Status.BLOCKED, "PARSE_ERROR")


numbers = st.fractions(min_value=-50, max_value=50, max_denominator=20)


@settings(max_examples=60, deadline=None)
@given(numbers, numbers, st.sampled_from("+-*/"))
def test_arithmetic_agrees_with_exact_fractions(one, other, sign):
    if sign == "/" and other == 0:
        expected = Status.INCONCLUSIVE
        value = Fraction(0)
    else:
        expected = Status.VERIFIED
        value = {"+": one + other, "-": one - other, "*": one * other, "/": one / (other or 1)}[sign]
    text = f"({one}) {sign} ({other}) = {value.numerator} / {value.denominator}"
    assert query(text).status is expected


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet='()ANDOR NOTpqx12.=<>+-*/"; \n', max_size=60))
def test_any_text_gets_an_answer(text):
    assert query(text).status in {Status.VERIFIED, Status.FAILED, Status.INCONCLUSIVE, Status.BLOCKED}


formulas = st.recursive(
    st.sampled_from(["p", "q", "r", "true", "false"]),
    lambda inner: st.one_of(
        inner.map(lambda a: f"(NOT {a})"),
        st.tuples(st.sampled_from(["AND", "OR", "IMPLIES", "IFF", "XOR"]), inner, inner).map(
            lambda t: "({} {} {})".format(*t)
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(formulas)
def test_a_formula_or_its_negation_can_be_satisfied_and_both_only_if_neither_is_certain(formula):
    holds, fails = query(formula).verified, query(f"(NOT {formula})").verified
    assert holds or fails
    assert entails([], formula).verified is (not fails)
