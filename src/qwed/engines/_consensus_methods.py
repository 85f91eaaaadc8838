"""Independent methods to decide one claim; they share only the text."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from qwed.engines import logic, math
from qwed.engines._logic.arguments import argument_of
from qwed.engines._logic.notation import parse_text
from qwed.engines._logic.predicate_names import unify_vocabulary
from qwed.engines._logic.sexpr import LogicRefusalError, NotFormalError
from qwed.engines._logic.trampoline import Step, run, run_all
from qwed.engines._logic.type_inference import TypeInference
from qwed.engines._logic.types import Term, TermKind
from qwed.engines._math.assumptions import Fact, values_for
from qwed.engines._math.interval import QUICK_PRECISIONS, THOROUGH_PRECISIONS, sign_of
from qwed.engines._math.notation import normalize_notation
from qwed.engines._math.parser import parse
from qwed.engines._math.smt import is_theorem
from qwed.engines._math.syntax_tree import BINDERS, Claim, MathNode, MathRefusalError, free_names, subtract
from qwed.engines._math.syntax_tree import iter_nodes as nodes
from qwed.engines._math.units import verify_units
from qwed.engines.arithmetic import verify_quick
from qwed.engines.protocol import EngineRequest
from qwed.model import Status, Verdict

CERTAIN = 1.0
HIGH_PRECISION = 0.99
"""Confidence for two numbers equal to thousands of bits; no proof."""
SAMPLED = 0.9
"""Confidence for an identity that holds at every sampled point."""
MAX_NAMES = 14
MAX_POINTS = 24


class Opinion(NamedTuple):
    """Result of one method; `holds` is None if it cannot decide."""

    holds: bool | None
    confidence: float = 0.0
    answer: str = ""


UNSURE = Opinion(None)


class Method(NamedTuple):
    """A method: engine, name and function."""

    engine: str
    name: str
    ask: Callable[[str], Opinion]


def _opinion_from_verdict(verdict: Verdict) -> Opinion:
    if verdict.status is Status.SIMPLIFIED:
        return Opinion(None, CERTAIN, str(verdict.result.get("value", "")))
    if verdict.status in (Status.VERIFIED, Status.FAILED):
        return Opinion(verdict.verified, CERTAIN)
    return UNSURE


def _exact(text: str) -> Opinion:
    quick = verify_quick(text)
    return UNSURE if quick is None else _opinion_from_verdict(quick)


def _symbolic(text: str) -> Opinion:
    # An empty `assumptions` makes the engine skip its plain arithmetic.
    return _opinion_from_verdict(math.verify(EngineRequest(query=text, parameters={"assumptions": {}})))


def _claim(text: str) -> Claim | None:
    """Parse the text as one numeric comparison, or return None for units, matrices and operators of analysis."""
    try:
        written = normalize_notation(text)
        claim = None if verify_units(written, {}) is not None else parse(written)
    except MathRefusalError:
        return None
    if claim is None or not claim.sign or claim.right is None or claim.also:
        return None
    numeric = not any(_is_beyond_numbers(part) for side in (claim.left, claim.right) for part in nodes(side))
    return claim if numeric else None


def _is_beyond_numbers(node: MathNode) -> bool:
    return node.kind in ("list", "set", "tuple", "infinity") or node.name in BINDERS


def _smt(text: str) -> Opinion:
    claim = _claim(text)
    if claim is None:
        return UNSURE
    if is_theorem(claim):
        return Opinion(True, CERTAIN)
    closed = not free_names(claim.left, claim.right)
    return Opinion(False, CERTAIN) if closed and is_theorem(claim._replace(sign=_AGAINST[claim.sign])) else UNSURE


_AGAINST = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _interval(text: str) -> Opinion:
    """Decide by interval bounds of the difference: exactly for constants, otherwise at many points."""
    claim = _claim(text)
    if claim is None or claim.right is None:
        return UNSURE
    if not _is_tame(claim.left) or not _is_tame(claim.right):
        return UNSURE
    difference, agrees = subtract(claim.left, claim.right), _SIGNS[claim.sign]
    names = free_names(difference)
    looks = QUICK_PRECISIONS if names else THOROUGH_PRECISIONS
    seen = [sign for point in _points(names) if (sign := sign_of(difference, point, looks)) is not None]
    if any(sign and not agrees(sign) for sign in seen):
        return Opinion(False, CERTAIN)
    # Bounds around zero decide no strict order, and too few points prove nothing.
    if not all(agrees(sign) for sign in seen) or len(seen) < (MAX_POINTS // 2 if names else 1):
        return UNSURE
    if names:
        return Opinion(True, SAMPLED)
    return Opinion(True, HIGH_PRECISION if 0 in seen else CERTAIN)


_GROWS = frozenset({"exp", "factorial", "gamma", "binomial", "sinh", "cosh", "tanh"})
_LARGEST = 1000


def _is_tame(node: MathNode) -> bool:
    """Return True if nothing grows beyond what bounds can be computed for, as a power of a power may."""
    growing = [part for part in nodes(node) if part.kind == "power" or part.name in _GROWS]
    return not any(_is_large(part) for grown in growing for part in _exponents(grown))


def _exponents(node: MathNode) -> Iterator[MathNode]:
    for argument in node.args[1:] if node.kind == "power" else node.args:
        yield from nodes(argument)


def _is_large(node: MathNode) -> bool:
    if node.kind == "number":
        return not -_LARGEST <= node.value <= _LARGEST
    return node.kind in ("power", "infinity") or node.name in _GROWS


_SIGNS: dict[str, Callable[[int], bool]] = {
    "=": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


def _points(names: tuple[str, ...]) -> Iterator[dict[str, Fraction]]:
    """Yield the empty point, or points spread over the most telling values."""
    values = values_for(Fact())
    for step in range(MAX_POINTS if names else 1):
        yield {name: values[(step * (2 * index + 1) + index) % len(values)] for index, name in enumerate(names)}


def _solver(text: str) -> Opinion:
    return _opinion_from_verdict(logic.verify(EngineRequest(query=text)))


def _truth_table(text: str) -> Opinion:
    """Decide by enumerating all truth assignments."""
    try:
        argument = argument_of(text, {})
        texts = [text] if argument is None else [*argument.premises, argument.conclusion]
        readings = [parse_text(part) for part in texts]
        elaborator = TypeInference()
        terms = elaborator.statements(unify_vocabulary(readings).trees)
    except (LogicRefusalError, NotFormalError):
        return UNSURE
    names = tuple(sorted(elaborator.symbols))
    # An English sentence may imply more than its form shows; it is left to the logic engine.
    if any(reading.english for reading in readings) or len(names) > MAX_NAMES or elaborator.relations:
        return UNSURE
    if not all(_is_boolean(term) for term in terms):
        return UNSURE
    rows = [dict(zip(names, row, strict=True)) for row in itertools.product((False, True), repeat=len(names))]
    if argument is None:
        return Opinion(any(run(_truth(terms[-1], row)) for row in rows), CERTAIN)
    return _entailed(terms, rows)


def _entailed(terms: list[Term], rows: list[dict[str, bool]]) -> Opinion:
    models = [row for row in rows if all(run(_truth(term, row)) for term in terms[:-1])]
    return Opinion(bool(models) and all(run(_truth(terms[-1], row)) for row in models), CERTAIN)


def _is_boolean(term: Term) -> bool:
    waiting = [term]
    while waiting:
        here = waiting.pop()
        if (
            here.kind is not TermKind.TRUTH
            or (here.operator not in _TRUTH and here.operator not in _LEAVES)
            or here.names
        ):
            return False
        waiting.extend(here.arguments)
    return True


_LEAVES = ("NAME", "TRUTH")
_TRUTH: dict[str, Callable[[list[bool]], bool]] = {
    "AND": all,
    "OR": any,
    "NOT": lambda parts: not parts[0],
    "IMPLIES": lambda parts: not parts[0] or parts[1],
    "IFF": lambda parts: parts[0] == parts[1],
    "EQ": lambda parts: parts[0] == parts[1],
    "NE": lambda parts: parts[0] != parts[1],
    "XOR": lambda parts: parts[0] != parts[1],
    "IF": lambda parts: parts[1] if parts[0] else parts[2],
}


def _truth(term: Term, row: Mapping[str, bool]) -> Step[bool]:
    if term.operator in _TRUTH:
        parts = yield run_all(_truth(part, row) for part in term.arguments)
        return _TRUTH[term.operator](parts)
    return row[term.symbol.name] if term.symbol is not None else term.text == "true"


MATH = (
    Method("arithmetic", "exact_rational", _exact),
    Method("math", "symbolic", _symbolic),
    Method("interval", "interval_arithmetic", _interval),
    Method("z3", "smt_reals", _smt),
)
LOGIC = (Method("logic", "smt", _solver), Method("truth_table", "enumeration", _truth_table))
