"""The math engine: exact claims and computations. Runs in a worker; whatever it cannot decide is INCONCLUSIVE.

Decimals are exact, `^` and `**` are powers, `log` and `ln` are natural, `e`, `pi` and `i` are the constants, every
other name is a real variable. An equality with variables claims that it holds at all of their values.
"""

import re
from collections.abc import Mapping
from typing import Any

from mpmath.libmp import NoConvergence
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math_answers import refused
from qwed.engines._math_claims import compute, settle, undecided
from qwed.engines._math_operations import OPERATIONS
from qwed.engines._math_syntax import ARITY, Refused, clip, parse
from qwed.engines.arithmetic import verify_quick
from qwed.engines.protocol import EngineRequest
from qwed.words import Verdict

_SURPRISES = (
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
"""What the symbolic library raises where it gives up; none of it decides a claim."""

_ASKED_OF_US = ("operation", "claimed_result", "tolerance")
_SENTENCE = re.compile(r"[A-Za-z0-9 .,?!'%$+*/^=()<>\n-]+")
_WORD = re.compile(r"[A-Za-z]{2,}")
_SMALL_WORDS = frozenset(
    {"what", "is", "are", "the", "plus", "minus", "times", "equals", "equal", "divided", "squared", "sum", "of", "and"}
)


def verify(request: EngineRequest) -> Verdict:
    """The verdict on a claim, or the value of a bare expression."""
    query = request.query
    if not isinstance(query, str):
        return refused(Refused("syntax_valid", "the query must be text"))
    try:
        return _answer(query, request.parameters)
    except Refused as refusal:
        return refused(_or_sentence(query, refusal))
    except _SURPRISES:
        return refused(undecided(query))


def _answer(query: str, parameters: Mapping[str, Any]) -> Verdict:
    if all(parameters.get(key) is None for key in _ASKED_OF_US):
        quick = verify_quick(query)
        if quick is not None:
            return quick
    if parameters.get("operation") is not None:
        return _operate(parameters["operation"], query, parameters)
    if parameters.get("claimed_result") is not None:
        return OPERATIONS["simplify"](query, parameters)
    claim = parse(query)
    if claim.right is None:
        return compute(claim)
    return settle(claim, parameters.get("tolerance"))


def _operate(operation: object, query: str, parameters: Mapping[str, Any]) -> Verdict:
    run = OPERATIONS.get(operation) if isinstance(operation, str) else None
    if run is None:
        shown = clip(operation) if isinstance(operation, str) else "that is no text"
        raise Refused("parameters_valid", f"unknown operation {shown}: use one of {', '.join(OPERATIONS)}")
    return run(query, parameters)


def _or_sentence(query: str, refusal: Refused) -> Refused:
    """The refusal, or where the text is a sentence rather than a broken formula, one that says so."""
    if refusal.check not in ("syntax_valid", "unambiguous") or not _SENTENCE.fullmatch(query):
        return refusal
    words = [word.lower() for word in _WORD.findall(query) if word.lower() not in ARITY]
    if len(words) < 2 and not _SMALL_WORDS.intersection(words):
        return refusal
    hint = "write it as a formula such as `2+2 = 4`"
    return Refused("is_formal", f"{clip(query)} reads like a sentence, which is not decided here: {hint}")
