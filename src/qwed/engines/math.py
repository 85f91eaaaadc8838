"""Math engine: exact claims and computations. Runs in a worker; undecided claims are INCONCLUSIVE.

Decimals are exact, `^` and `**` are powers, `log` and `ln` are natural, `e`, `pi` and `i` are the constants, every
other name is a real variable. An equality with variables claims that it holds at all of their values.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpmath.libmp import NoConvergence
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math.assumptions import parse_assumptions
from qwed.engines._math.claims import undecided
from qwed.engines._math.messages import refused_verdict
from qwed.engines._math.notation import normalize_notation
from qwed.engines._math.operations import OPERATION_ALIASES, OPERATIONS, run_operation
from qwed.engines._math.parser import parse
from qwed.engines._math.syntax_tree import MathRefusalError, clip, free_names
from qwed.engines._math.time_limit import TimeLimitExceededError, clear_limits, run_within
from qwed.engines._math.tokens import ARITY
from qwed.engines._math.tolerance import parse_tolerance
from qwed.engines._math.units import verify_units
from qwed.engines._math.verify_claim import verify_claim
from qwed.engines.arithmetic import verify_quick
from qwed.engines.protocol import EngineRequest
from qwed.model import Record, Status, Verdict

SECONDS = 7
_LIBRARY_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BasePolynomialError,
    LookupError,
    MemoryError,
    NoConvergence,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Exceptions that the symbolic library raises when it gives up; none of them decides a claim."""

_FULL_ENGINE_PARAMETERS = ("operation", "claimed_result", "tolerance", "assumptions", "unit")
_SENTENCE = re.compile(r"[A-Za-z0-9 .,?!'%$+*/^=()<>\n-]+")
_WORD = re.compile(r"[A-Za-z]{2,}")
_SMALL_WORDS = frozenset(
    {"what", "is", "are", "the", "plus", "minus", "times", "equals", "equal", "divided", "squared", "sum", "of", "and"}
)
_SENTENCE_WORDS = frozenset(
    {"is", "are", "plus", "minus", "times", "equals", "divided", "squared", "cubed", "halved", "doubled", "percent"}
    | {"hundred", "thousand", "million", "billion", "trillion", "cent", "cents", "half", "twice"}
)
"""Words that mark a sentence, because they are never names of variables."""


@dataclass(frozen=True)
class MathCheck(Record):
    """Result of `verify_math_expression`; `expected` is the right result where it is known."""

    verified: bool
    message: str
    expected: str | None
    actual: str | None
    operation: str


def verify_math_expression(
    expression: str, claimed_result: Any = None, operation: str = "simplify", **parameters: Any
) -> MathCheck:
    """Check that the operation on the expression gives the claimed result.

    It runs in the caller's process, for about `SECONDS` on the main thread; a server uses a worker instead.
    """
    engine_parameters = {**parameters, "operation": operation, "claimed_result": claimed_result}
    verdict = verify(EngineRequest(query=expression, parameters=engine_parameters))
    expected = verdict.result.get("expected", verdict.result.get("value"))
    return MathCheck(
        verified=verdict.status is Status.VERIFIED,
        message=verdict.message,
        expected=None if expected is None else str(expected),
        actual=None if claimed_result is None else str(claimed_result),
        operation=str(operation),
    )


def verify(request: EngineRequest) -> Verdict:
    """Return the verdict on a claim, or the value of a bare expression."""
    query = request.query
    if not isinstance(query, str):
        return refused_verdict(MathRefusalError("syntax_valid", "the query must be text"))
    try:
        tolerance = parse_tolerance(request.parameters, request.policy.tolerances)
        parameters = {**request.parameters, "tolerance": tolerance}
        return run_within(SECONDS, _answer, query, parameters) or refused_verdict(undecided(query))
    except MathRefusalError as refusal:
        return refused_verdict(_refine_refusal(query, refusal))
    except TimeLimitExceededError:
        clear_limits()
        return refused_verdict(undecided(query))
    except _LIBRARY_ERRORS:
        return refused_verdict(undecided(query))


def _answer(query: str, parameters: Mapping[str, Any]) -> Verdict:
    if all(parameters.get(key) is None for key in _FULL_ENGINE_PARAMETERS):
        quick = verify_quick(query)
        if quick is not None:
            return quick
    facts = parse_assumptions(parameters.get("assumptions"))
    operation = parameters.get("operation")
    if operation is None and parameters.get("claimed_result") is not None and parameters.get("unit") is None:
        operation = "simplify"
    if operation is not None:
        return run_operation(_operation_name(operation), query, parameters, facts)
    text = normalize_notation(query)
    in_units = verify_units(text, parameters)
    if in_units is not None:
        return in_units
    if parameters.get("unit") is not None:
        raise MathRefusalError("parameters_valid", "a `unit` is given, but nothing in the expression has one")
    claim = parse(text)
    sides = [side for link in (claim, *claim.also) for side in (link.left, link.right)]
    if _SENTENCE_WORDS.intersection(name.lower() for name in free_names(*sides)):
        raise _sentence_refusal(query)
    shown_claim = claim if claim.also else claim._replace(text=query.strip())
    return verify_claim(shown_claim, parameters.get("tolerance"), facts)


def _operation_name(operation: object) -> str:
    name = OPERATION_ALIASES.get(operation, operation) if isinstance(operation, str) else None
    if name not in OPERATIONS:
        label = clip(operation) if isinstance(operation, str) else "that is not text"
        raise MathRefusalError("parameters_valid", f"unknown operation {label}: use one of {', '.join(OPERATIONS)}")
    return str(name)


def _refine_refusal(query: str, refusal: MathRefusalError) -> MathRefusalError:
    """Return the refusal, or a clearer one if the text is a sentence rather than a broken formula."""
    if refusal.check not in ("syntax_valid", "unambiguous") or not _SENTENCE.fullmatch(query):
        return refusal
    words = [word.lower() for word in _WORD.findall(query) if word.lower() not in ARITY]
    if len(words) < 2 and not _SMALL_WORDS.intersection(words):
        return refusal
    return _sentence_refusal(query)


def _sentence_refusal(query: str) -> MathRefusalError:
    hint = "write it as a formula such as `2+2 = 4`"
    return MathRefusalError("is_formal", f"{clip(query)} reads like a sentence, which is not decided here: {hint}")
