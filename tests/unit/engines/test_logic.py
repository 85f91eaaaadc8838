"""Verdicts of the logic engine on formulas and arguments (INTERFACES 3, DESIGN 8)."""

import inspect
import json
import re
import sys
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.engines.logic import verify, verify_logic_statement
from qwed.engines.protocol import EngineRequest
from qwed.model import Status, Verdict
from qwed_new.engines import logic_engine as published
from tests.support.case_tables import each, rows, split_for_drill


def request(row: dict[str, Any]) -> EngineRequest:
    if "repeat" in row:
        opening, times, middle, closing = row["repeat"]
        return EngineRequest(query=opening * times + middle + closing * times)
    if "query" in row:
        return EngineRequest(query=row["query"])
    return EngineRequest(parameters=row)


def ask(row: dict[str, Any]) -> Verdict:
    """Return the verdict on a row, which never has effects or violations."""
    verdict = verify(request(row))
    assert (verdict.effects, verdict.violations, verdict.engine) == ((), (), "logic")
    return verdict


def query(text: str) -> Verdict:
    return verify(EngineRequest(query=text))


def entails(premises: list[str], conclusion: str) -> Verdict:
    return verify(EngineRequest(parameters={"premises": premises, "conclusion": conclusion}))


SIGN = re.compile(
    r"\b[A-Z]{2,}\b|\b(?:forall|exists|and|or|not|if|iff|implies|all|some|no|only|every|each|unless)\b|[^\w\s]+"
)


def label(row: dict[str, Any]) -> str:
    return json.dumps(row)[:70]


def signs(row: dict[str, Any]) -> set[str]:
    """Return the keys of a row, and the operators, quantifiers and marks in it."""
    return set(row) | set(SIGN.findall(json.dumps(row, ensure_ascii=False)))


TRUE, MORE_TRUE = split_for_drill(rows("logic_true.jsonl"), 4, signs)


def require_verified(row):
    verdict = ask(row)
    assert (verdict.status, verdict.checks_failed) == (Status.VERIFIED, ())
    assert verdict.verified
    assert verdict.checks_passed[-1] == ("satisfiable" if "query" in row else "entailed")


@each("row", TRUE, ids=label)
def test_what_can_be_satisfied_or_follows_is_verified(row):
    require_verified(row)


@pytest.mark.drill
@each("row", MORE_TRUE, ids=label)
def test_the_others_that_can_be_satisfied_or_follow_are_verified_too(row):
    require_verified(row)


@each("row", rows("logic_false.jsonl"), ids=label)
def test_what_cannot_be_satisfied_or_does_not_follow_fails(row):
    verdict = ask(row)
    assert verdict.status is Status.FAILED
    assert len(verdict.checks_failed) == 1


@each("row", rows("logic_undecided.jsonl"), ids=label)
def test_what_is_ambiguous_unread_or_divided_by_zero_is_not_decided(row):
    assert ask(row).status is Status.INCONCLUSIVE


@each("row", rows("logic_hostile.jsonl"), ids=label, at_once=10)
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


def test_the_model_is_exact():
    verdict = query('(AND (EQ (TIMES 3 x) 1) (EQ y 0.1) (EQ n -7) p (EQ s "it"))')
    assert verdict.result["model"] == {"n": "-7", "p": "true", "s": "it", "x": "1/3", "y": "1/10"}


def test_an_irrational_model_is_named_and_not_rounded():
    assert "root-obj" in query("(AND (EQ (TIMES x x) 2) (GT x 0))").result["model"]["x"]


def test_the_core_names_the_members_that_contradict_each_other():
    assert query("(AND p (GT x 5) q (LT x 3))").result["unsat_core"] == [1, 3]


def test_every_member_of_a_core_is_needed():
    assert query("(AND (GT x 0) (GT y 0) (LT (+ x y) 0) (LT x -1))").result["unsat_core"] == [0, 3]


def test_an_argument_names_the_premises_it_needs_by_number_and_by_text():
    result = entails(["r", "p -> q", "s | t", "p"], "q").result
    assert (result["unsat_core"], result["core_premises"]) == ([1, 3], ["p -> q", "p"])


def test_contradictory_premises_are_named():
    result = entails(["a", "x > 2", "b", "x < 1"], "x > 1").result
    assert (result["unsat_core"], result["core_premises"]) == ([1, 3], ["x > 2", "x < 1"])


def test_a_tautology_needs_no_premise():
    assert entails(["p"], "q | ~q").result["unsat_core"] == []


def test_a_counterexample_of_things_says_what_each_predicate_is_true_of():
    counterexample = entails(["forall x. Dog(x) -> Animal(x)", "Animal(rex)"], "Dog(rex)").result["counterexample"]
    assert counterexample == {"rex": "#0", "Animal": "{#0}", "Dog": "{}"}


def test_a_declaration_may_be_a_premise_of_its_own():
    verdict = entails(["(VAR n Int)", "n > 1", "n < 3"], "n = 2")
    assert (verdict.verified, verdict.result["unsat_core"]) == (True, [1, 2])


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


def _pigeons(pigeons: int, holes: int) -> str:
    sits = [f"(OR {' '.join(f'p{one}_{hole}' for hole in range(holes))})" for one in range(pigeons)]
    pairs = [(one, other) for one in range(pigeons) for other in range(one)]
    alone = [f"(OR (NOT p{one}_{hole}) (NOT p{other}_{hole}))" for hole in range(holes) for one, other in pairs]
    return f"(AND {' '.join(sits + alone)})"


def _random_clauses(names: int, clauses: int) -> str:
    draw = Random(5)
    picked = [draw.sample(range(names), 3) for _ in range(clauses)]
    return " & ".join("(" + " | ".join(f"{draw.choice(['', '~'])}x{name}" for name in trio) + ")" for trio in picked)


@pytest.mark.parametrize(
    "hard",
    [
        _pigeons(10, 9),
        _random_clauses(150, 780),
        "(LET ((x Int) (y Int) (z Int)) (AND (EQ (+ (* x x x) (* y y y)) (* z z z)) (> x 0) (> y 0) (> z 0)))",
        "x^5*y^5 + x^3*y^4*z^2 + z^9 = 7 & x*y*z > 3 & x^2 + y^2 + z^2 < 1",
        "forall x. exists y. R(x,y) & ~R(x,x) & forall y z. (R(x,y) & R(y,z) -> R(x,z)) & (R(z,x) -> R(y,z))",
    ],
    ids=["ten pigeons", "random clauses", "cubes", "high degree", "impossible order"],
)
def test_a_hard_false_formula_ends_within_the_limit_and_is_never_verified(hard):
    assert query(hard).status in {Status.FAILED, Status.INCONCLUSIVE}


def _deeper(frames: int, formula: str) -> Verdict:
    return query(formula) if frames == 0 else _deeper(frames - 1, formula)


def test_the_depth_of_a_formula_is_no_matter_of_the_callers_stack():
    formula = "(NOT " * 198 + "(FORALL x (EQ x x))" + ")" * 198
    frames = sys.getrecursionlimit() - len(inspect.stack(0)) - 150
    assert _deeper(frames, formula).verified


ARGUMENTS = [
    ("All men are mortal. Socrates is a man. Therefore Socrates is mortal.", Status.VERIFIED),
    ("All men are mortal\nSocrates is a man\ntherefore, Socrates is mortal", Status.VERIFIED),
    ("1. p -> q\n2. p\n∴ q", Status.VERIFIED),
    ("p -> q, p |- q", Status.VERIFIED),
    ("forall x, P(x) -> Q(x), P(a) ⊢ Q(a)", Status.VERIFIED),
    (
        "Premise 1: If it rains then the street is wet\nPremise 2: It rains\nConclusion: The street is wet",
        Status.VERIFIED,
    ),
    ("No cats are dogs; Tom is a cat; so Tom is not a dog", Status.VERIFIED),
    ("|- p or not p", Status.VERIFIED),
    ("(IMPLIES p q)\np\ntherefore q", Status.VERIFIED),
    ("p -> q, q |- p", Status.FAILED),
    ("All men are mortal. Socrates is mortal. Therefore Socrates is a man.", Status.FAILED),
    ("p, ~p ⊢ q", Status.FAILED),
    ("Most men are mortal. Socrates is a man. Therefore Socrates is mortal.", Status.INCONCLUSIVE),
    ("p |- q |- r", Status.BLOCKED),
    ('(EQ s "p therefore q")', Status.VERIFIED),
]


@pytest.mark.parametrize(("text", "status"), ARGUMENTS)
def test_a_query_may_be_a_whole_argument(text, status):
    assert query(text).status is status


def test_the_published_function_returns_a_record():
    good = published.verify_logic_statement(["All humans are mortal", "Socrates is a human"], "Socrates is mortal")
    assert good["verified"] is good.verified is True
    assert dict(good) == {
        "verified": True,
        "message": "the premises entail it",
        "method": "z3 refutes the negated conclusion",
        "counterexample": None,
    }
    bad = verify_logic_statement("p | q", "p")
    assert (bad.verified, bad.method, bad.counterexample) == (False, None, {"p": "false", "q": "true"})


@pytest.mark.parametrize("premises", [[1], None, {"a": 1}, ["Most birds fly"], ["("], ["p"] * 101])
def test_the_published_function_never_raises_and_never_guesses(premises):
    result = verify_logic_statement(premises, "p")
    assert (result.verified, result.counterexample) == (False, None)
    assert result.message


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


WORDS = [
    *(
        "if",
        "then",
        "either",
        "or",
        "and",
        "not",
        "all",
        "every",
        "no",
        "some",
        "there",
        "is",
        "are",
        "a",
        "the",
        "dog",
    ),
    *("dogs", "Rex", "barks", "bark", "x", "5", "greater than", "at least", "P", "Q", ",", ".", "unless", "only if"),
    *("it rains", "neither", "nor", "both", "any", "taller", "can", "does", "but", "true", "forall", "therefore"),
]
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
@given(
    st.one_of(
        st.text(alphabet='()ANDOR NOTpqx12.=<>+-*/"; \n', max_size=60),
        st.text(alphabet="∀∃¬∧∨→↔⊕()[]xyPQ(),.:~&|<->= 12", max_size=40),  # noqa: RUF001  # the signs are the notation
        st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
        st.text(max_size=40),
    )
)
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
