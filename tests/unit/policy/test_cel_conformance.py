"""Conformance cases of the Common Expression Language in the environment of conditions.

Each case is checked with our types and, where they accept it, evaluated as a condition is. The counts are exact, so a
new version of the runtime that accepts or refuses other expressions is noticed.
"""

from collections import Counter
from typing import Any

import pytest

from qwed.policy.cel_environment import evaluation_environment, rule_checker
from tests.support.cel_conformance import ConformanceCase, file_names, plain, read_cases

COUNTS = {
    "basic": (35, 0, 8),
    "comparisons": (118, 214, 74),
    "conversions": (78, 8, 23),
    "fields": (30, 15, 14),
    "fp_math": (29, 0, 1),
    "integer_math": (56, 5, 3),
    "lists": (19, 20, 0),
    "logic": (21, 0, 9),
    "macros": (44, 0, 0),
    "parse": (175, 6, 38),
    "plumbing": (3, 0, 2),
    "string": (51, 0, 0),
    "timestamps": (73, 2, 3),
}
"""Cases that pass, that our stricter types refuse, and that need variables, containers or messages of their own."""
DIVERGENT = {"qualified_identifier_resolution/map_value_repeat_key_heterogeneous"}
"""Cases that the runtime answers otherwise: a map literal with the equal keys `0` and `0u` is no error there."""


def _outcome(case: ConformanceCase) -> str:
    if case.needs:
        return "skipped"
    try:
        rule_checker({}).compile(case.expression)
    except RuntimeError:
        return "refused"
    is_error, value = _evaluate(case.expression)
    matches = is_error == case.is_error and (is_error or repr(value) == repr(case.value) or value == case.value)
    return "passed" if matches else f"{case.name}: {case.expression}"


def _evaluate(expression: str) -> tuple[bool, Any]:
    try:
        value = evaluation_environment().compile(expression, disable_check=True).eval(data={})
        return (True, None) if str(value.type()) == "ERROR" else (False, plain(value.plain_value()))
    except RuntimeError:
        return True, None


@pytest.mark.parametrize("name", file_names())
def test_the_cases_of_a_file_have_the_value_that_they_state(name: str) -> None:
    outcomes = Counter(_outcome(case) for case in read_cases(name) if case.name not in DIVERGENT)
    expected = dict(zip(("passed", "refused", "skipped"), COUNTS[name], strict=True))
    assert outcomes == Counter({outcome: count for outcome, count in expected.items() if count})
