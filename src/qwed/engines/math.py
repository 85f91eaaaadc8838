"""The math engine: exact claims and computations. Runs in a worker; whatever it cannot decide is INCONCLUSIVE.

Decimals are exact, `^` and `**` are powers, `log` and `ln` are natural, `e`, `pi` and `i` are the constants, every
other name is a real variable. An equality with variables claims that it holds at all of their values.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpmath.libmp import NoConvergence
from sympy.polys.polyerrors import BasePolynomialError

from qwed.engines._math.answers import refused
from qwed.engines._math.claims import undecided
from qwed.engines._math.clock import OutOfTime, stop, within
from qwed.engines._math.facts import facts_from
from qwed.engines._math.judge import judge
from qwed.engines._math.notation import plain
from qwed.engines._math.operations import OPERATION_ALIASES, OPERATIONS, operate
from qwed.engines._math.syntax import parse
from qwed.engines._math.tokens import ARITY
from qwed.engines._math.tree import Refused, clip, names_in
from qwed.engines._math.units import judge_units
from qwed.engines.arithmetic import verify_quick
from qwed.engines.protocol import EngineRequest
from qwed.words import Record, Status, Verdict

SECONDS = 7
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

_ASKED_OF_US = ("operation", "claimed_result", "tolerance", "assumptions", "unit")
_SENTENCE = re.compile(r"[A-Za-z0-9 .,?!'%$+*/^=()<>\n-]+")
_WORD = re.compile(r"[A-Za-z]{2,}")
_SMALL_WORDS = frozenset(
    {"what", "is", "are", "the", "plus", "minus", "times", "equals", "equal", "divided", "squared", "sum", "of", "and"}
)
_SPOKEN = frozenset(
    {"is", "are", "plus", "minus", "times", "equals", "divided", "squared", "cubed", "halved", "doubled", "percent"}
    | {"hundred", "thousand", "million", "billion", "trillion", "cent", "cents", "half", "twice"}
)
"""Words that no variable is called."""


@dataclass(frozen=True)
class MathCheck(Record):
    """What `verify_math_expression` found: `expected` is the right result where it is known."""

    verified: bool
    message: str
    expected: str | None
    actual: str | None
    operation: str


def verify_math_expression(
    expression: str, claimed_result: Any = None, operation: str = "simplify", **parameters: Any
) -> MathCheck:
    """Whether the operation on the expression gives the claimed result.

    It runs in the caller's process, for about `SECONDS` where that is the main thread; a server asks a worker.
    """
    asked = {**parameters, "operation": operation, "claimed_result": claimed_result}
    verdict = verify(EngineRequest(query=expression, parameters=asked))
    expected = verdict.result.get("expected", verdict.result.get("value"))
    return MathCheck(
        verified=verdict.status is Status.VERIFIED,
        message=verdict.message,
        expected=None if expected is None else str(expected),
        actual=None if claimed_result is None else str(claimed_result),
        operation=str(operation),
    )


def verify(request: EngineRequest) -> Verdict:
    """The verdict on a claim, or the value of a bare expression."""
    query = request.query
    if not isinstance(query, str):
        return refused(Refused("syntax_valid", "the query must be text"))
    try:
        return within(SECONDS, _answer, query, request.parameters) or refused(undecided(query))
    except Refused as refusal:
        return refused(_or_sentence(query, refusal))
    except OutOfTime:
        stop()
        return refused(undecided(query))
    except _SURPRISES:
        return refused(undecided(query))


def _answer(query: str, parameters: Mapping[str, Any]) -> Verdict:
    if all(parameters.get(key) is None for key in _ASKED_OF_US):
        quick = verify_quick(query)
        if quick is not None:
            return quick
    facts = facts_from(parameters.get("assumptions"))
    operation = parameters.get("operation")
    if operation is None and parameters.get("claimed_result") is not None and parameters.get("unit") is None:
        operation = "simplify"
    if operation is not None:
        return operate(_known(operation), query, parameters, facts)
    text = plain(query)
    in_units = judge_units(text, parameters)
    if in_units is not None:
        return in_units
    if parameters.get("unit") is not None:
        raise Refused("parameters_valid", "a `unit` is given, but nothing in the expression has one")
    claim = parse(text)
    sides = [side for link in (claim, *claim.also) for side in (link.left, link.right)]
    if _SPOKEN.intersection(name.lower() for name in names_in(*sides)):
        raise _sentence(query)
    shown = claim if claim.also else claim._replace(text=query.strip())
    return judge(shown, parameters.get("tolerance"), facts)


def _known(operation: object) -> str:
    name = OPERATION_ALIASES.get(operation, operation) if isinstance(operation, str) else None
    if name not in OPERATIONS:
        shown = clip(operation) if isinstance(operation, str) else "that is no text"
        raise Refused("parameters_valid", f"unknown operation {shown}: use one of {', '.join(OPERATIONS)}")
    return str(name)


def _or_sentence(query: str, refusal: Refused) -> Refused:
    """The refusal, or where the text is a sentence rather than a broken formula, one that says so."""
    if refusal.check not in ("syntax_valid", "unambiguous") or not _SENTENCE.fullmatch(query):
        return refusal
    words = [word.lower() for word in _WORD.findall(query) if word.lower() not in ARITY]
    if len(words) < 2 and not _SMALL_WORDS.intersection(words):
        return refusal
    return _sentence(query)


def _sentence(query: str) -> Refused:
    hint = "write it as a formula such as `2+2 = 4`"
    return Refused("is_formal", f"{clip(query)} reads like a sentence, which is not decided here: {hint}")
