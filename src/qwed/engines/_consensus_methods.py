"""Ways to decide one claim that share nothing but the text: what one of them gets wrong, another does not repeat."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from qwed.engines import logic, math
from qwed.engines._logic.arguments import argument_of
from qwed.engines._logic.elaborate import Elaborator
from qwed.engines._logic.reading import read
from qwed.engines._logic.syntax import NotFormal, Refusal
from qwed.engines._logic.types import Kind, Term
from qwed.engines._logic.vocabulary import joined
from qwed.engines._logic.walk import Step, each, walk
from qwed.engines._math.facts import Fact, values_for
from qwed.engines._math.interval import LONG_LOOK, QUICK_LOOK, sign_of
from qwed.engines._math.notation import plain
from qwed.engines._math.smt import is_theorem
from qwed.engines._math.syntax import parse
from qwed.engines._math.tree import BINDERS, Claim, Node, Refused, minus, names_in
from qwed.engines._math.tree import walk as nodes
from qwed.engines._math.units import judge_units
from qwed.engines.arithmetic import verify_quick
from qwed.engines.protocol import EngineRequest
from qwed.words import Status, Verdict

CERTAIN = 1.0
TO_MANY_BITS = 0.99
"""Two numbers that agree to thousands of bits are equal, for all anyone has seen; it is no proof."""
AT_MANY_POINTS = 0.9
"""An identity that holds wherever it was tried."""
MOST_NAMES = 14
MOST_POINTS = 24


class Opinion(NamedTuple):
    """What one method says; None where it cannot tell."""

    holds: bool | None
    confidence: float = 0.0
    answer: str = ""


UNSURE = Opinion(None)


class Method(NamedTuple):
    """One way: the engine it belongs to, what it is called, and how it is asked."""

    engine: str
    name: str
    ask: Callable[[str], Opinion]


def _of(verdict: Verdict) -> Opinion:
    if verdict.status is Status.SIMPLIFIED:
        return Opinion(None, CERTAIN, str(verdict.result.get("value", "")))
    if verdict.status in (Status.VERIFIED, Status.FAILED):
        return Opinion(verdict.verified, CERTAIN)
    return UNSURE


def _exact(text: str) -> Opinion:
    quick = verify_quick(text)
    return UNSURE if quick is None else _of(quick)


def _symbolic(text: str) -> Opinion:
    # With assumptions, though none are made, the engine leaves its own plain arithmetic aside.
    return _of(math.verify(EngineRequest(query=text, parameters={"assumptions": {}})))


def _claim(text: str) -> Claim | None:
    """The text as one comparison of numbers: units, matrices and the operators of analysis are the engine's alone."""
    try:
        written = plain(text)
        claim = None if judge_units(written, {}) is not None else parse(written)
    except Refused:
        return None
    if claim is None or not claim.sign or claim.right is None or claim.also:
        return None
    numeric = not any(_is_beyond_numbers(part) for side in (claim.left, claim.right) for part in nodes(side))
    return claim if numeric else None


def _is_beyond_numbers(node: Node) -> bool:
    return node.kind in ("list", "set", "tuple", "infinity") or node.name in BINDERS


def _smt(text: str) -> Opinion:
    claim = _claim(text)
    if claim is None:
        return UNSURE
    if is_theorem(claim):
        return Opinion(True, CERTAIN)
    closed = not names_in(claim.left, claim.right)
    return Opinion(False, CERTAIN) if closed and is_theorem(claim._replace(sign=_AGAINST[claim.sign])) else UNSURE


_AGAINST = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _interval(text: str) -> Opinion:
    """Bounds that enclose the difference of both sides: at the constants themselves, or at many points."""
    claim = _claim(text)
    if claim is None or claim.right is None:
        return UNSURE
    if not _is_tame(claim.left) or not _is_tame(claim.right):
        return UNSURE
    difference, agrees = minus(claim.left, claim.right), _SIGNS[claim.sign]
    names = names_in(difference)
    looks = QUICK_LOOK if names else LONG_LOOK
    seen = [sign for point in _points(names) if (sign := sign_of(difference, point, looks)) is not None]
    if any(sign and not agrees(sign) for sign in seen):
        return Opinion(False, CERTAIN)
    # Bounds around zero decide no strict order, and too few points tell nothing.
    if not all(agrees(sign) for sign in seen) or len(seen) < (MOST_POINTS // 2 if names else 1):
        return UNSURE
    if names:
        return Opinion(True, AT_MANY_POINTS)
    return Opinion(True, TO_MANY_BITS if 0 in seen else CERTAIN)


_GROWS = frozenset({"exp", "factorial", "gamma", "binomial", "sinh", "cosh", "tanh"})
_LARGEST = 1000


def _is_tame(node: Node) -> bool:
    """Whether nothing in it grows beyond what bounds can be computed for: a power of a power may."""
    growing = [part for part in nodes(node) if part.kind == "power" or part.name in _GROWS]
    return not any(_is_large(part) for grown in growing for part in _exponents(grown))


def _exponents(node: Node) -> Iterator[Node]:
    for argument in node.args[1:] if node.kind == "power" else node.args:
        yield from nodes(argument)


def _is_large(node: Node) -> bool:
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
    """The point without coordinates, or points spread over the values that tell most."""
    values = values_for(Fact())
    for step in range(MOST_POINTS if names else 1):
        yield {name: values[(step * (2 * place + 1) + place) % len(values)] for place, name in enumerate(names)}


def _solver(text: str) -> Opinion:
    return _of(logic.verify(EngineRequest(query=text)))


def _truth_table(text: str) -> Opinion:
    """Every assignment of truth values, one after the other."""
    try:
        argument = argument_of(text, {})
        texts = [text] if argument is None else [*argument.premises, argument.conclusion]
        readings = [read(part) for part in texts]
        elaborator = Elaborator()
        terms = elaborator.statements(joined(readings).trees)
    except (Refusal, NotFormal):
        return UNSURE
    names = tuple(sorted(elaborator.symbols))
    # A sentence may say more than its letters show, so it is left to the engine that knows its words.
    if any(reading.english for reading in readings) or len(names) > MOST_NAMES or elaborator.relations:
        return UNSURE
    if not all(_is_boolean(term) for term in terms):
        return UNSURE
    rows = [dict(zip(names, row, strict=True)) for row in itertools.product((False, True), repeat=len(names))]
    if argument is None:
        return Opinion(any(walk(_truth(terms[-1], row)) for row in rows), CERTAIN)
    return _entailed(terms, rows)


def _entailed(terms: list[Term], rows: list[dict[str, bool]]) -> Opinion:
    given = [row for row in rows if all(walk(_truth(term, row)) for term in terms[:-1])]
    return Opinion(bool(given) and all(walk(_truth(terms[-1], row)) for row in given), CERTAIN)


def _is_boolean(term: Term) -> bool:
    waiting = [term]
    while waiting:
        here = waiting.pop()
        if here.kind is not Kind.TRUTH or (here.operator not in _TRUTH and here.operator not in _LEAVES) or here.names:
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
        parts = yield each(_truth(part, row) for part in term.arguments)
        return _TRUTH[term.operator](parts)
    return row[term.symbol.name] if term.symbol is not None else term.text == "true"


MATH = (
    Method("arithmetic", "exact_rational", _exact),
    Method("math", "symbolic", _symbolic),
    Method("interval", "interval_arithmetic", _interval),
    Method("z3", "smt_reals", _smt),
)
LOGIC = (Method("logic", "smt", _solver), Method("truth_table", "enumeration", _truth_table))
