"""Assumptions about the variables of a claim: parsed from `assumptions`, used to choose points and symbols."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from qwed.engines._math.parser import parse
from qwed.engines._math.syntax_tree import (
    CONSTANT_NAMES,
    SMALL_LIMITS,
    Claim,
    MathNode,
    MathRefusalError,
    clip,
    free_names,
)


class Fact(NamedTuple):
    """Assumptions about one variable; without any it is any real number."""

    integer: bool = False
    complex: bool = False
    nonzero: bool = False
    low: Fraction | None = None
    above: bool = False
    """True if `low` itself is excluded; `below` likewise for `high`."""
    high: Fraction | None = None
    below: bool = False

    def allows(self, value: Fraction) -> bool:
        """Return True if the variable may have this value."""
        if self.low is not None and (value < self.low or (self.above and value == self.low)):
            return False
        if self.high is not None and (value > self.high or (self.below and value == self.high)):
            return False
        return not (self.nonzero and value == 0) and not (self.integer and value.denominator != 1)

    @property
    def sign(self) -> str:
        """One of positive, nonnegative, negative, nonpositive, nonzero or the empty string."""
        if self.low is not None and self.low >= 0:
            return "positive" if self.low > 0 or self.above or self.nonzero else "nonnegative"
        if self.high is not None and self.high <= 0:
            return "negative" if self.high < 0 or self.below or self.nonzero else "nonpositive"
        return "nonzero" if self.nonzero else ""


class Facts(NamedTuple):
    """All assumptions: a fact for each variable, comparisons between several variables, and all of it as text."""

    by_name: Mapping[str, Fact] = {}
    relations: tuple[Claim, ...] = ()
    text: str = ""

    def about(self, name: str) -> Fact:
        """Return the fact about one variable."""
        return self.by_name.get(name, _ANY)

    def with_fact(self, name: str, fact: Fact, text: str) -> "Facts":
        """Return these facts with one more."""
        joined = text if not self.text else f"{self.text} and {text}"
        return Facts({**self.by_name, name: _merge(self.about(name), fact)}, self.relations, joined)


_ANY = Fact()
NO_FACTS = Facts()
_ZERO = Fraction(0)
_WORDS: dict[str, Fact] = {
    "positive": Fact(low=_ZERO, above=True),
    "negative": Fact(high=_ZERO, below=True),
    "nonnegative": Fact(low=_ZERO),
    "nonpositive": Fact(high=_ZERO),
    "nonzero": Fact(nonzero=True),
    "integer": Fact(integer=True),
    "int": Fact(integer=True),
    "natural": Fact(integer=True, low=_ZERO),
    "real": _ANY,
    "complex": Fact(complex=True),
    "rational": _ANY,
}
_STATEMENT = re.compile(
    r"([A-Za-z][A-Za-z0-9_]*)\s+(?:is\s+|in\s+)?(?:an?\s+)?([A-Za-z -]+?)(?:\s+(?:number|numbers))?"
)
_SEPARATORS = re.compile(r",|;|&&?|\band\b|\u2227")
_SETS = {"Z": "integer", "R": "real", "N": "natural", "C": "complex", "integers": "integer", "reals": "real"}
_REVERSED_SIGNS = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


def parse_assumptions(parameter: object) -> Facts:
    """Parse the `assumptions` parameter; raise MathRefusalError if a statement cannot be parsed."""
    facts = NO_FACTS
    for text in _statements(parameter):
        facts = _add_statement(facts, text.strip())
    _require_possible(facts)
    return facts


def _statements(parameter: object) -> Iterator[str]:
    if parameter is None:
        return
    if isinstance(parameter, str):
        yield from (part for part in _SEPARATORS.split(parameter) if part.strip())
    elif isinstance(parameter, Mapping):
        for name, words in parameter.items():
            for word in words if isinstance(words, list | tuple) else (words,):
                yield f"{name} {word}"
    elif isinstance(parameter, list | tuple):
        for item in parameter:
            yield from _statements(item)
    else:
        raise _unparsable(parameter)


def _unparsable(statement: object) -> MathRefusalError:
    hint = 'write `"x > 0"` or `{"x": "positive"}`'
    return MathRefusalError("parameters_valid", f"cannot read the assumption {clip(str(statement))}: {hint}")


def _add_statement(facts: Facts, text: str) -> Facts:
    if match := _STATEMENT.fullmatch(text):
        word = match[2].strip().lower().replace("-", "").replace(" ", "")
        fact = _WORDS.get(_SETS.get(match[2].strip(), word))
        if fact is None or match[1] in CONSTANT_NAMES:
            raise _unparsable(text)
        return facts.with_fact(match[1], fact, f"{match[1]} is {_SETS.get(match[2].strip(), match[2].strip())}")
    try:
        claim = parse(text, SMALL_LIMITS)
    except MathRefusalError:
        raise _unparsable(text) from None
    if not claim.sign:
        raise _unparsable(text)
    for link in (claim._replace(also=()), *claim.also):
        facts = _add_relation(facts, link)
    return facts


def _add_relation(facts: Facts, claim: Claim) -> Facts:
    statement = f"{claim.left_text} {claim.sign} {claim.right_text}"
    for left, right, sign in (
        (claim.left, claim.right, claim.sign),
        (claim.right, claim.left, _REVERSED_SIGNS[claim.sign]),
    ):
        if left is not None and left.kind == "name" and left.name not in CONSTANT_NAMES:
            bound = _literal(right)
            fact = None if bound is None else _fact_from_bound(sign, bound)
            if fact is not None:
                return facts.with_fact(left.name, fact, statement)
    if not free_names(claim.left, claim.right):
        raise _unparsable(statement)
    text = statement if not facts.text else f"{facts.text} and {statement}"
    return Facts(facts.by_name, (*facts.relations, claim), text)


def _literal(node: MathNode | None) -> Fraction | None:
    if node is None:
        return None
    if node.kind == "negative" and node.args[0].kind == "number":
        return -Fraction(node.args[0].value)
    return Fraction(node.value) if node.kind == "number" else None


def _fact_from_bound(sign: str, bound: Fraction) -> Fact | None:
    if sign in (">", ">="):
        return Fact(low=bound, above=sign == ">")
    if sign in ("<", "<="):
        return Fact(high=bound, below=sign == "<")
    if sign == "=":
        return Fact(low=bound, high=bound)
    return Fact(nonzero=True) if bound == 0 else None


def _merge(one: Fact, other: Fact) -> Fact:
    lows = [(fact.low, fact.above) for fact in (one, other) if fact.low is not None]
    highs = [(-fact.high, fact.below) for fact in (one, other) if fact.high is not None]
    low, above = max(lows, default=(None, False))
    high, below = max(highs, default=(None, False))
    return Fact(
        integer=one.integer or other.integer,
        complex=one.complex or other.complex,
        nonzero=one.nonzero or other.nonzero,
        low=low,
        above=above,
        high=None if high is None else -high,
        below=below,
    )


def _require_possible(facts: Facts) -> None:
    for name, fact in facts.by_name.items():
        if fact.low is None or fact.high is None:
            continue
        empty = fact.low > fact.high or (fact.low == fact.high and not fact.allows(fact.low))
        if empty:
            raise MathRefusalError("parameters_valid", f"no `{name}` meets the assumptions: everything would hold")


_NUMBERS = tuple(
    Fraction(text)
    for text in ("2", "-1", "1/2", "3", "0", "1", "-3/2", "5", "7/3", "-2", "7", "-7/2", "10", "-4/3", "1/5", "-11")
)
_STEPS = tuple(Fraction(text) for text in ("1/2", "1", "3", "0", "2", "1/9", "7/2", "10", "25", "4/3", "100"))
_FRACTIONS = tuple(Fraction(text) for text in ("1/2", "1/4", "3/4", "0", "1", "1/10", "9/10", "1/3", "5/7"))


def values_for(fact: Fact) -> tuple[Fraction, ...]:
    """Return sample values that the fact allows, those that refute most claims first."""
    if fact.low is not None and fact.high is not None:
        width = fact.high - fact.low
        candidates: Iterable[Fraction] = [fact.low + width * part for part in _FRACTIONS]
        if fact.integer:
            candidates = [
                Fraction(value) for value in range(-(-fact.low // 1), min(fact.high // 1, fact.low // 1 + 30) + 1)
            ]
    elif fact.low is not None or fact.high is not None:
        start, direction = (fact.low, 1) if fact.low is not None else (fact.high, -1)
        edge = Fraction(start if start is not None else 0)
        steps = range(13) if fact.integer else _STEPS
        start_at = Fraction(edge // 1) if fact.integer else edge
        candidates = [*_NUMBERS[:6], *(start_at + direction * step for step in steps)]
    else:
        candidates = (*_NUMBERS, *map(Fraction, (4, -3, 6, -5, 8))) if fact.integer else _NUMBERS
    return tuple(dict.fromkeys(value for value in candidates if fact.allows(value)))
