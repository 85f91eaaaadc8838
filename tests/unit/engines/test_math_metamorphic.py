"""Metamorphic tests of the math engine: changes that preserve a claim preserve its verdict."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.engines.math import verify
from qwed.engines.protocol import EngineRequest
from qwed.model import Status
from tests.support.case_tables import each, rows

_PLAIN = re.compile(r"[-a-z0-9+*/^(). =]+")
_NOT_ALGEBRA = re.compile(r"[0-9] +[a-z]|^d|mod")
"""Quantities, to which no plain number can be added, and derivatives, whose variable has a name of its own."""
_FUNCTIONS = ("sin", "cos", "tan", "exp", "ln", "log", "sqrt", "abs", "sinh", "cosh", "floor", "atan")


def status(query):
    return verify(EngineRequest(query=query)).status


def equalities(name):
    """Return the plain equalities of a table, as pairs of sides."""
    pairs = []
    for row in rows(f"math_{name}.jsonl"):
        query = row["query"]
        plain = set(row) == {"query"} and query.count("=") == 1 and _PLAIN.fullmatch(query)
        if plain and not _NOT_ALGEBRA.search(query):
            pairs.append(tuple(part.strip() for part in query.split("=")))
    return pairs


TRUE, FALSE = equalities("true")[::3], equalities("false")[::2]
CASES = [(sides, Status.VERIFIED) for sides in TRUE] + [(sides, Status.FAILED) for sides in FALSE]
cases = each(("sides", "expected"), CASES, ids=lambda part: " = ".join(part)[:50] if isinstance(part, tuple) else part)


def test_there_are_cases_to_change():
    assert len(TRUE) > 50
    assert len(FALSE) > 20


@cases
def test_swapping_the_sides_leaves_the_verdict_alone(sides, expected):
    assert status(f"{sides[1]} = {sides[0]}") == expected


@cases
def test_spacing_leaves_the_verdict_alone(sides, expected):
    wide = " = ".join(re.sub(r"([-+*/^(),])", r"  \1  ", side) for side in sides)
    # A name and its parenthesis stay together: apart they could be two factors.
    assert status(re.sub(r"([a-z0-9])\s+\(", r"\1(", wide)) == expected


@cases
def test_the_same_term_on_both_sides_leaves_the_verdict_alone(sides, expected):
    assert status(f"({sides[0]}) + 7/3 = ({sides[1]}) + 7/3") == expected
    assert status(f"({sides[0]}) - q^2 = ({sides[1]}) - q^2") == expected


@cases
def test_the_same_factor_on_both_sides_leaves_the_verdict_alone(sides, expected):
    assert status(f"3*({sides[0]}) = 3*({sides[1]})") == expected


@cases
def test_other_names_for_the_variables_leave_the_verdict_alone(sides, expected):
    query = " = ".join(sides)
    names = str.maketrans("xyab", "uvpq")
    changed = re.sub(r"(?<![a-z])[xyab]+(?![a-z])", lambda match: match[0].translate(names), query)
    assert status(changed) == expected


linear = st.tuples(st.integers(-9, 9), st.integers(-9, 9))


@settings(max_examples=60, deadline=None)
@given(linear, linear, st.sampled_from(["+", "-", "*"]), st.integers(-1, 1), st.sampled_from(_FUNCTIONS))
def test_a_function_of_equal_arguments_is_equal(one, other, sign, slip, function):
    left = f"({one[0]}*x + {one[1]}) {sign} ({other[0]}*x + {other[1]})"
    a, b, c, d = *one, *other
    values = {
        "+": f"{a + c}*x + {b + d}",
        "-": f"{a - c}*x + {b - d}",
        "*": f"{a * c}*x^2 + {a * d + b * c}*x + {b * d}",
    }
    verdict = status(f"{left} = {values[sign]} + {slip}")
    assert verdict is (Status.FAILED if slip else Status.VERIFIED)
    if not slip and function in ("sin", "cos", "exp", "abs", "atan", "cosh"):
        assert status(f"{function}({left}) = {function}({values[sign]})") is Status.VERIFIED


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=4), st.integers(-3, 3), st.integers(1, 4), st.integers(-1, 1))
def test_the_integral_of_a_polynomial_is_the_difference_of_its_antiderivative(numbers, low, width, slip):
    body = " + ".join(f"({number})*x^{power}" if power else f"({number})" for power, number in enumerate(numbers))
    inside = " + ".join(f"({number})*x^{power + 1}/{power + 1}" for power, number in enumerate(numbers))
    high = low + width
    ends = [re.sub("x", f"({end})", inside.replace("x^1/", "x/")) for end in (high, low)]
    query = f"integrate({body}, x, {low}, {high}) = ({ends[0]}) - ({ends[1]}) + {slip}"
    assert status(query) is (Status.FAILED if slip else Status.VERIFIED)
    assert status(f"integrate({body}, x) = {inside} + {slip}") is Status.VERIFIED
