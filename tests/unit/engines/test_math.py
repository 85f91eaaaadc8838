"""The math engine: what is proven, refuted, computed, refused, and what it will not be fooled by."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.engines.math import verify
from qwed.engines.protocol import EngineRequest
from qwed.words import Status

DATA = Path(__file__).parents[2] / "data"


def rows(name):
    return [json.loads(line) for line in (DATA / f"math_{name}.jsonl").read_text().splitlines()]


def ask(query, **parameters):
    return verify(EngineRequest(query=query, parameters=parameters))


@pytest.mark.parametrize("row", rows("true"), ids=lambda row: row["query"])
def test_a_true_claim_is_verified(row):
    verdict = ask(row["query"])
    assert verdict.status is Status.VERIFIED, verdict.message
    assert verdict.checks_passed == ("syntax_valid", "within_limits", "claim_holds")
    assert verdict.checks_failed == verdict.effects == verdict.violations == ()


@pytest.mark.parametrize("row", rows("false"), ids=lambda row: row["query"])
def test_a_false_claim_is_never_verified(row):
    verdict = ask(row["query"])
    assert verdict.status == row.get("status", "FAILED"), verdict.message
    assert len(verdict.checks_failed) == 1
    assert verdict.effects == verdict.violations == ()


@pytest.mark.parametrize("row", rows("hostile"), ids=lambda row: ascii(row["query"])[:40])
def test_a_hostile_text_is_answered_and_never_verified(row):
    verdict = ask(row["query"])
    assert verdict.status not in (Status.VERIFIED, Status.ERROR)
    assert verdict.message.isprintable()
    assert len(verdict.message) < 400
    json.dumps([dict(verdict.result), verdict.message]).encode()


@pytest.mark.parametrize("row", rows("false"), ids=lambda row: row["query"])
def test_every_offered_repair_is_itself_verified(row):
    corrected = ask(row["query"]).corrected
    assert corrected is None or ask(corrected["query"]).verified


@pytest.mark.parametrize("row", rows("true"), ids=lambda row: row["query"])
def test_an_answer_does_not_change_when_asked_again(row):
    assert ask(row["query"]) == ask(row["query"])


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("x^2/x = x", "x != 0"),
        ("(x^2-1)/(x-1) = x+1", "x - 1 != 0"),
        ("x^0 = 1", "x != 0"),
        ("0*log(x) = 0", "x != 0"),
        ("tan(x) = sin(x)/cos(x)", "cos(x) != 0"),
        ("1/(1/(1/x)) = 1/x", "x != 0"),
        ("sqrt(x^2) = abs(x)", "x is real"),
        ("x^2 >= 0", "x is real"),
        ("n!/(n-1)! = n", "factorial(n) is defined and factorial(n - 1) is defined"),
    ],
)
def test_an_identity_says_where_it_holds(query, where):
    verdict = ask(query)
    assert verdict.status is Status.VERIFIED
    assert verdict.result == {"holds_where": where}
    assert verdict.message == f"`{query}` holds where {where}"


def test_an_identity_without_conditions_holds_for_all_values():
    verdict = ask("(x+1)^2 = x^2+2x+1")
    assert verdict.result == {}
    assert verdict.message == "`(x+1)^2 = x^2+2x+1` holds for all values of its variables"


def test_a_false_identity_comes_with_a_point_and_without_a_repair():
    verdict = ask("sqrt(x^2) = x")
    assert verdict.status is Status.FAILED
    assert verdict.result == {"counterexample": {"x": "-1"}, "left": "1", "right": "-1"}
    assert verdict.corrected is None
    expected = "`sqrt(x^2) = x` does not always hold: at x = -1 the left side is 1 and the right side is -1"
    assert verdict.message == expected


@pytest.mark.parametrize(
    ("query", "expected", "corrected"),
    [
        ("sqrt(16) = 5", "4", "sqrt(16) = 4"),
        ("7 = 3!", "6", "6 = 3!"),
        ("sin(pi/6) = 0.6", "0.5", "sin(pi/6) = 0.5"),
        ("(1+sqrt(2))*(1-sqrt(2)) = 5", "-1", "(1+sqrt(2))*(1-sqrt(2)) = -1"),
        ("sqrt(2) = 1.414", "sqrt(2)", None),
        ("2^100 = 1", str(2**100), f"2^100 = {2**100}"),
    ],
)
def test_a_wrong_result_is_told_the_right_one(query, expected, corrected):
    verdict = ask(query)
    assert verdict.status is Status.FAILED
    assert verdict.result["expected"] == expected
    assert verdict.corrected == (None if corrected is None else {"query": corrected})


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("2^200", str(2**200)),
        ("sqrt(8)", "2*sqrt(2)"),
        ("sqrt(-4)", "2*I"),
        ("x + x", "2*x"),
        ("sin(x)^2 + cos(x)^2", "1"),
        ("x", "x"),
        ("1+" * 150 + "1", "151"),
        ("binomial(1000, 500) / binomial(1000, 500)", "1"),
    ],
)
def test_a_bare_expression_is_computed(query, value):
    verdict = ask(query)
    assert verdict.status is Status.SIMPLIFIED
    assert verdict.result["value"] == value
    assert verdict.checks_passed == ("syntax_valid", "within_limits")
    assert not verdict.verified


@pytest.mark.parametrize(
    ("query", "check"),
    [
        ("", "syntax_valid"),
        ("2 +", "syntax_valid"),
        ("(1", "syntax_valid"),
        ("foo(2)", "syntax_valid"),
        ("sin x", "syntax_valid"),
        ("1 = 2 = 3", "syntax_valid"),
        ("9**9**9**9", "within_limits"),
        ("1" * 5000, "within_limits"),
        ("2/3(4)", "unambiguous"),
        ("(-8)^(1/3)", "unambiguous"),
        ("1/(x-x)", "defined"),
        ("log(0)", "defined"),
        ("1/(sqrt(5+2*sqrt(6)) - sqrt(2) - sqrt(3))", "defined"),
        ("i > 1", "defined"),
    ],
)
def test_what_cannot_be_answered_is_blocked_and_says_which_check(query, check):
    verdict = ask(query)
    assert verdict.status is Status.BLOCKED
    assert verdict.checks_failed == (check,)
    assert verdict.violations == ()


@pytest.mark.parametrize(
    ("query", "position", "part"),
    [
        ("2 + ", 4, "unexpected end of the text at position 4"),
        ("2 + )", 5, "unexpected `)` at position 5"),
        ("1,000 = 1000", 2, "without thousands separators"),
        ("|x| = x", 1, "write `abs(x)`"),
        ("2+2 = \uff14", 7, "cannot read `\uff14` at position 7"),
        ("2 2", 3, "put an operator before it"),
    ],
)
def test_a_syntax_error_says_where_and_what_to_change(query, position, part):
    verdict = ask(query)
    assert verdict.status is Status.BLOCKED
    assert part in verdict.message
    assert verdict.result == {"position": position}


@pytest.mark.parametrize("query", ["what is two plus two", "What is 2 + 2?", "2 plus 2 equals 4", "hello", "x is big"])
def test_a_sentence_is_inconclusive_and_told_how_to_ask(query):
    verdict = ask(query)
    assert verdict.status is Status.INCONCLUSIVE
    assert verdict.checks_failed == ("is_formal",)
    assert "write" in verdict.message


@pytest.mark.parametrize("query", ["(x^3)^(1/3) = x", "abs(abs(x)-abs(y)) <= abs(x-y)", "gcd(x, 2) = 2"])
def test_what_is_neither_proven_nor_refuted_is_inconclusive(query):
    assert ask(query).status is Status.INCONCLUSIVE


def test_a_tolerance_relaxes_the_equality_of_constants_and_is_stated():
    verdict = ask("10000*(1+0.075/4)**20 = 14499.48", tolerance=0.01)
    assert verdict.status is Status.VERIFIED
    assert verdict.result["tolerance"] == "0.01"
    assert verdict.checks_passed[-1] == "equal_within_tolerance"
    assert "holds within 0.01, not exactly" in verdict.message


def test_a_tolerance_does_not_cover_what_lies_outside_it():
    verdict = ask("10000*(1+0.075/4)**20 = 14490.97", tolerance="0.01")
    assert verdict.status is Status.FAILED
    assert verdict.result["tolerance"] == "0.01"


def test_the_edge_of_a_tolerance_is_exact():
    assert ask("0.1 = 0.2", tolerance="0.1").verified
    assert not ask("0.1 = 0.2", tolerance="0.09999999999999999999").verified
    assert ask("pi = 3.14", tolerance="0.002").verified
    assert not ask("pi = 3.14", tolerance="0.0015").verified


def test_an_exact_claim_with_a_tolerance_is_still_exact():
    assert ask("2+2 = 4", tolerance=1).checks_passed[-1] == "claim_holds"


@pytest.mark.parametrize("query", ["x = x + 0.001", "2 < 1", "sqrt(x^2) = x"])
def test_a_tolerance_relaxes_nothing_else(query):
    assert ask(query, tolerance=100).status is Status.FAILED


@pytest.mark.parametrize("tolerance", [-1, "nan", "inf", "abc", True, [], "1e9999999", "9" * 500, float("nan")])
def test_a_tolerance_that_is_no_number_is_blocked(tolerance):
    verdict = ask("2 = 3", tolerance=tolerance)
    assert verdict.status is Status.BLOCKED
    assert verdict.checks_failed == ("parameters_valid",)


@pytest.mark.parametrize(
    ("operation", "query", "claimed", "status"),
    [
        ("derivative", "x^2", "2x", "VERIFIED"),
        ("derivative", "x^2", "3x", "FAILED"),
        ("derivative", "x^x", "x^x*(ln(x)+1)", "VERIFIED"),
        ("derivative", "sin(x^2)", "2x*cos(x^2)", "VERIFIED"),
        ("derivative", "sin(x^2)", "cos(x^2)", "FAILED"),
        ("derivative", "1/x", "-1/x^2", "VERIFIED"),
        ("derivative", "tan(x)", "1/cos(x)^2", "VERIFIED"),
        ("derivative", "5", "0", "VERIFIED"),
        ("derivative", "1/0", "0", "BLOCKED"),
        ("derivative", "floor(x)", "0", "INCONCLUSIVE"),
        ("derivative", "1/((x+1)^2-x^2-2*x-1)", "0", "INCONCLUSIVE"),
        ("integral", "2x", "x^2 + C", "VERIFIED"),
        ("integral", "2x", "x^2", "VERIFIED"),
        ("integral", "x", "x^2", "FAILED"),
        ("integral", "1/x", "ln(abs(x))", "VERIFIED"),
        ("integral", "sin(x)^2", "x/2 - sin(2x)/4", "VERIFIED"),
        ("integral", "2x", None, "INCONCLUSIVE"),
        ("simplify", "(x^2-1)/(x-1)", "x+1", "VERIFIED"),
        ("simplify", "(x+1)^2", "x^2+1", "FAILED"),
        ("simplify", "x + x", None, "SIMPLIFIED"),
        ("solve", "x^2 = 4", "2, -2", "VERIFIED"),
        ("solve", "x^2 = 4", "[2, -2]", "VERIFIED"),
        ("solve", "x^2 = 4", "x = 2 or x = -2", "VERIFIED"),
        ("solve", "x^2 = 4", "2", "FAILED"),
        ("solve", "x^2 = 4", "2, 2", "FAILED"),
        ("solve", "x^2 = 4", "2, 3", "FAILED"),
        ("solve", "x^2 = 2", "sqrt(2), -sqrt(2)", "VERIFIED"),
        ("solve", "x^2 = 2", "1.414, -1.414", "FAILED"),
        ("solve", "x^3 = 1", "1", "VERIFIED"),
        ("solve", "x^2 + 1 = 0", "i, -i", "VERIFIED"),
        ("solve", "2x + 1 = 7", 3, "VERIFIED"),
        ("solve", "2x + 1 = 7", None, "SIMPLIFIED"),
        ("solve", "x^2*(x-1)/x = 0", "0, 1", "INCONCLUSIVE"),
        ("solve", "sin(x) = 0", "0", "INCONCLUSIVE"),
        ("solve", "x = x", "1", "INCONCLUSIVE"),
        ("solve", "x > 1", "2", "INCONCLUSIVE"),
        ("solve", "x^2 = 4", "y", "BLOCKED"),
        ("evaluate", "2+2", 4, "VERIFIED"),
        ("evaluate", "2+2", "5", "FAILED"),
        ("evaluate", "0.1+0.2", 0.3, "VERIFIED"),
        ("evaluate", "x+2", "5", "BLOCKED"),
        ("evaluate", "2+2", True, "BLOCKED"),
        ("evaluate", "2+2=4", "4", "BLOCKED"),
    ],
)
def test_an_operation_is_checked_against_its_claimed_result(operation, query, claimed, status):
    verdict = ask(query, operation=operation, claimed_result=claimed)
    assert verdict.status == status, verdict.message
    assert verdict.corrected is None
    if status in ("VERIFIED", "FAILED", "SIMPLIFIED"):
        assert verdict.result["operation"] == operation


def test_a_failed_operation_tells_what_was_expected():
    verdict = ask("x^2", operation="derivative", claimed_result="3x")
    assert verdict.result["expected"] == "2*x"
    assert verdict.result["actual"] == "3x"


def test_an_operation_computes_where_nothing_is_claimed():
    assert ask("x^3", operation="derivative").message == "`the derivative of x^3` is 3*x**2"
    assert ask("x^2 = 4", operation="solve").message == "`x^2 = 4` is solved by -2, 2"


def test_the_variable_must_be_said_where_there_are_several():
    assert ask("x*y", operation="derivative", claimed_result="y").status is Status.BLOCKED
    assert ask("x*y", operation="derivative", claimed_result="y", variable="x").verified
    assert not ask("x*y", operation="derivative", claimed_result="y", variable="y").verified
    assert ask("x", operation="derivative", variable="pi").status is Status.BLOCKED


@pytest.mark.parametrize("operation", ["frobnicate", "", 7, ["derivative"], "Derivative", "__class__"])
def test_an_unknown_operation_is_blocked_and_the_known_ones_are_named(operation):
    verdict = ask("2+2", operation=operation)
    assert verdict.status is Status.BLOCKED
    assert "derivative, integral, simplify, solve, evaluate" in verdict.message


def test_a_claimed_result_alone_is_compared_with_the_expression():
    assert ask("2+2", claimed_result="4").verified
    assert ask("(x+1)^2", claimed_result="x^2+2x+1").verified
    assert ask("2+2", claimed_result="5").status is Status.FAILED


def test_unknown_parameters_change_nothing():
    assert ask("2+2=5", colour="blue", verified=True) == ask("2+2=5")


def test_a_query_that_is_no_text_is_blocked():
    assert verify(EngineRequest(query=None)).status is Status.BLOCKED  # type: ignore[arg-type]


PI = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899"


@pytest.mark.parametrize("places", range(2, 80, 7))
def test_an_order_is_read_off_bounds_however_close_the_sides_are(places):
    below = PI[: places + 2]
    assert ask(f"pi > {below}").verified
    assert ask(f"pi < {below} + 10^-{places}").verified
    assert ask(f"pi < {below}").status is Status.FAILED
    assert ask(f"pi = {below}").status is Status.FAILED


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["sin", "cos", "atan", "sinh", "cosh", "tanh", "exp", "abs", "floor"]),
    st.fractions(min_value=-3, max_value=3, max_denominator=50),
)
def test_a_function_at_a_number_lies_where_floating_point_says_it_does(name, number):
    near = getattr(math, name, abs)(float(number))
    call = f"{name}({number.numerator}/{number.denominator})"
    assert ask(f"{call} < {near + 1e-9:.15f}").verified
    assert ask(f"{call} > {near - 1e-9:.15f}").verified


coefficients = st.lists(st.integers(-9, 9), min_size=1, max_size=4)


def polynomial(numbers):
    return " + ".join(f"({number})*x^{power}" if power else f"({number})" for power, number in enumerate(numbers))


@settings(max_examples=40, deadline=None)
@given(coefficients, coefficients, st.integers(-2, 2), st.integers(0, 6))
def test_a_product_of_polynomials_is_verified_exactly_where_it_is_right(left, right, slip, place):
    product = [0] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            product[i + j] += a * b
    product[place % len(product)] += slip
    verdict = ask(f"({polynomial(left)})*({polynomial(right)}) = {polynomial(product)}")
    assert verdict.status is (Status.FAILED if slip else Status.VERIFIED)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="0123456789xy.+-*/^()=<>!%, sincoqrtlgea", max_size=25) | st.text(max_size=20))
def test_no_text_raises(text):
    verdict = ask(text)
    assert verdict.engine == "math"
    assert verdict.message
    json.dumps(dict(verdict.result)).encode()
