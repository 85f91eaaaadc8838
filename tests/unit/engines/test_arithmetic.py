"""Exact arithmetic on literals: the quick path of the math engine."""

import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.engines._math.claims import compute, decide_claim
from qwed.engines._math.parser import parse
from qwed.engines.arithmetic import verify_quick
from qwed.engines.math import verify
from qwed.engines.protocol import EngineRequest
from qwed.model import Status, Verdict

PARSE_CHECKS = ("syntax_valid", "within_limits")


def test_a_true_claim_is_verified_in_full():
    assert verify_quick("2+2=4") == Verdict(
        status=Status.VERIFIED,
        engine="math",
        message="`2+2=4` holds: both sides are 4",
        checks_passed=(*PARSE_CHECKS, "claim_holds"),
        result={"left": "4", "right": "4"},
    )


def test_a_false_result_is_failed_with_the_right_one():
    assert verify_quick("2+2=5") == Verdict(
        status=Status.FAILED,
        engine="math",
        message="`2+2` is 4, not 5",
        checks_passed=PARSE_CHECKS,
        checks_failed=("claim_holds",),
        corrected={"query": "2+2 = 4"},
        result={"left": "4", "right": "5", "expected": "4"},
    )


def test_a_bare_expression_is_computed():
    assert verify_quick("15.5*2") == Verdict(
        status=Status.SIMPLIFIED,
        engine="math",
        message="`15.5*2` is 31",
        checks_passed=PARSE_CHECKS,
        result={"value": "31"},
    )


def test_division_by_zero_is_blocked_and_no_attack():
    assert verify_quick("1/0") == Verdict(
        status=Status.BLOCKED,
        engine="math",
        message="division by zero: the expression has no value",
        checks_passed=PARSE_CHECKS,
        checks_failed=("defined",),
    )


@pytest.mark.parametrize(
    ("query", "corrected"),
    [
        ("5 = 2+2", "4 = 2+2"),
        ("10/4 = 2", "10/4 = 2.5"),
        ("1+1/3 = 1.33", "1+1/3 = 4/3"),
        ("2-5 = -2", "2-5 = -3"),
        ("0.1+0.2 == 0.4", "0.1+0.2 = 0.3"),
        ("15% of 200 = 35", "15% of 200 = 30"),
    ],
)
def test_the_repair_puts_the_one_right_value_beside_the_expression(query, corrected):
    verdict = verify_quick(query)
    assert verdict is not None
    assert verdict.corrected == {"query": corrected}
    repaired = verify_quick(corrected)
    assert repaired is not None
    assert repaired.verified


@pytest.mark.parametrize("query", ["4 = 5", "2+2 = 3+3", "2 > 3", "4 != 4", "1/3 = 0.33"])
def test_nothing_is_repaired_where_either_side_may_be_wrong_or_the_repair_says_nothing(query):
    verdict = verify_quick(query)
    assert verdict is not None
    assert verdict.status is Status.FAILED
    assert verdict.corrected is None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("4 = 5", "`4` is not 5"),
        ("2+2 < 4", "`2+2` is 4, not less than 4"),
        ("2 >= 3", "`2` is not at least 3"),
        ("2+2 != 4", "both sides of `2+2 != 4` are 4"),
        ("2+2 < 5", "`2+2 < 5` holds: 4 is less than 5"),
        ("1/3", "`1/3` is 1/3 (about 0.333333333333333)"),
    ],
)
def test_the_message_reads_as_a_sentence(query, message):
    verdict = verify_quick(query)
    assert verdict is not None
    assert verdict.message == message


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("-2^2", "-4"),
        ("2^3^2", "512"),
        ("2^-1", "0.5"),
        ("8/4/2", "1"),
        ("2 - -3", "5"),
        ("--2", "2"),
        ("2(3)", "6"),
        ("(2)(3)", "6"),
        ("1e3", "1000"),
        (".5 + 1.", "1.5"),
        ("1/3", "1/3"),
        ("-1/8", "-0.125"),
        ("1-1", "0"),
    ],
)
def test_the_usual_rules_of_precedence_hold(query, value):
    verdict = verify_quick(query)
    assert verdict is not None
    assert verdict.result["value"] == value


@pytest.mark.parametrize("query", ["2/3(4)", "6/2(1+2)", "2^3(4)", "5!=120", "10 % 3", "200 + 10%", "0^0", "0^-1"])
def test_what_has_two_readings_or_no_value_is_blocked(query):
    verdict = verify_quick(query)
    assert verdict is not None
    assert verdict.status is Status.BLOCKED
    assert verdict.violations == ()


@pytest.mark.parametrize(
    "query",
    [
        *("", "x", "2+", "sqrt(4)", "5!", "pi", "2 3", "1 = 2 = 3", "1 < 2 < 3", "two", "\uff12+\uff12=4", "2+2=4\x00"),
        *("9**9**9**9", "2^5000", "1e999", "1" * 201, "(" * 30 + "1" + ")" * 30, "1+" * 99 + "1", "2^0.5", "0x10"),
        *("(2^500)^500", "*".join(["2^500"] * 30), "1/2^400/3^400/5^400/7^400/11^400"),
    ],
)
def test_what_is_not_small_plain_arithmetic_is_left_to_the_full_engine(query):
    assert verify_quick(query) is None


def test_the_request_process_does_not_import_the_symbolic_library():
    program = "import sys, qwed.engines.arithmetic as a; a.verify_quick('2+2=4'); print('sympy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


literals = st.one_of(
    st.integers(0, 10**6).map(str),
    st.tuples(st.integers(0, 999), st.integers(0, 99)).map(lambda pair: f"{pair[0]}.{pair[1]:02}"),
)
# Every operand is in parentheses, so that Python with Fractions parses the text as the engine does.
expressions = st.recursive(
    literals.map(lambda text: (text, Fraction(text))),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner),
        st.tuples(inner, st.just("^"), st.integers(-3, 3)),
        st.tuples(st.just("-"), inner),
    ).map(lambda parts: _combine(*parts)),
    max_leaves=6,
)


def _combine(*parts):
    """Return the text, and its value by Fractions; None stands for no value."""
    if parts[0] == "-":
        text, value = parts[1]
        return f"(-{text})", None if value is None else -value
    (left, a), operator, right = parts
    if operator == "^":
        undefined = a is None or (a == 0 and right <= 0)
        return f"({left}^{right})", None if undefined else a**right
    text, b = right
    if a is None or b is None or (operator == "/" and b == 0):
        return f"({left}{operator}{text})", None
    return f"({left}{operator}{text})", {"+": a + b, "-": a - b, "*": a * b, "/": b and a / b}[operator]


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_values_are_those_of_fractions(expression):
    text, value = expression
    verdict = verify_quick(text)
    if verdict is None:
        return
    if value is None:
        assert verdict.status is Status.BLOCKED
    else:
        assert Fraction(verdict.result["value"]) == value


@settings(max_examples=200, deadline=None)
@given(expressions, expressions, st.sampled_from(["=", "==", "!=", "<", "<=", ">", ">="]))
def test_comparisons_are_those_of_fractions(left, right, sign):
    verdict = verify_quick(f"{left[0]} {sign} {right[0]}")
    if verdict is None:
        return
    if left[1] is None or right[1] is None:
        assert verdict.status is Status.BLOCKED
        return
    a, b = left[1], right[1]
    truth = {"=": a == b, "==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]
    assert verdict.verified is truth
    assert verdict.status is (Status.VERIFIED if truth else Status.FAILED)


@settings(max_examples=100, deadline=None)
@given(expressions, expressions, st.sampled_from(["", "=", "!=", "<", ">="]))
def test_quick_says_the_very_same_as_the_symbolic_path(left, right, sign):
    query = f"{left[0]} {sign} {right[0]}" if sign else left[0]
    quick = verify_quick(query)
    assert quick is None or verify(EngineRequest(query=query)) == quick
    if quick is None or quick.status is Status.BLOCKED:
        return
    claim = parse(query)
    assert quick == (compute(claim) if claim.right is None else decide_claim(claim))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789.+-*/^()=<>!% eExo", max_size=40) | st.text(max_size=30))
def test_no_text_raises(text):
    verdict = verify_quick(text)
    assert verdict is None or verdict.engine == "math"
