"""What is assumed of the variables of a claim: read from `assumptions`, used to choose points and symbols."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from qwed.engines._math.syntax import parse
from qwed.engines._math.tree import CONSTANT_NAMES, SMALL, Claim, Node, Refused, clip, names_in


class Fact(NamedTuple):
    """What is known of one variable; without more it is any real number."""

    integer: bool = False
    complex: bool = False
    nonzero: bool = False
    low: Fraction | None = None
    above: bool = False
    """Whether `low` itself is excluded; `below` likewise for `high`."""
    high: Fraction | None = None
    below: bool = False

    def allows(self, value: Fraction) -> bool:
        """Whether the variable may have this value."""
        if self.low is not None and (value < self.low or (self.above and value == self.low)):
            return False
        if self.high is not None and (value > self.high or (self.below and value == self.high)):
            return False
        return not (self.nonzero and value == 0) and not (self.integer and value.denominator != 1)

    @property
    def sign(self) -> str:
        """positive, nonnegative, negative, nonpositive, nonzero or nothing."""
        if self.low is not None and self.low >= 0:
            return "positive" if self.low > 0 or self.above or self.nonzero else "nonnegative"
        if self.high is not None and self.high <= 0:
            return "negative" if self.high < 0 or self.below or self.nonzero else "nonpositive"
        return "nonzero" if self.nonzero else ""


class Facts(NamedTuple):
    """Everything assumed: a fact for each variable, comparisons between several, and all of it as text."""

    of: Mapping[str, Fact] = {}
    relations: tuple[Claim, ...] = ()
    text: str = ""

    def about(self, name: str) -> Fact:
        """The fact of one variable."""
        return self.of.get(name, _ANY)

    def known(self, name: str, fact: Fact, text: str) -> "Facts":
        """These facts and one more."""
        joined = text if not self.text else f"{self.text} and {text}"
        return Facts({**self.of, name: _both(self.about(name), fact)}, self.relations, joined)


_ANY = Fact()
NOTHING = Facts()
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
_SAID = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s+(?:is\s+|in\s+)?(?:an?\s+)?([A-Za-z -]+?)(?:\s+(?:number|numbers))?")
_PARTS = re.compile(r",|;|&&?|\band\b|\u2227")
_SETS = {"Z": "integer", "R": "real", "N": "natural", "C": "complex", "integers": "integer", "reals": "real"}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


def facts_from(given: object) -> Facts:
    """The facts that the `assumptions` parameter states; Refused where one cannot be read."""
    facts = NOTHING
    for text in _statements(given):
        facts = _with(facts, text.strip())
    _require_possible(facts)
    return facts


def _statements(given: object) -> Iterator[str]:
    if given is None:
        return
    if isinstance(given, str):
        yield from (part for part in _PARTS.split(given) if part.strip())
    elif isinstance(given, Mapping):
        for name, said in given.items():
            for word in said if isinstance(said, list | tuple) else (said,):
                yield f"{name} {word}"
    elif isinstance(given, list | tuple):
        for item in given:
            yield from _statements(item)
    else:
        raise _unread(given)


def _unread(given: object) -> Refused:
    hint = 'write `"x > 0"` or `{"x": "positive"}`'
    return Refused("parameters_valid", f"cannot read the assumption {clip(str(given))}: {hint}")


def _with(facts: Facts, text: str) -> Facts:
    if said := _SAID.fullmatch(text):
        word = said[2].strip().lower().replace("-", "").replace(" ", "")
        fact = _WORDS.get(_SETS.get(said[2].strip(), word))
        if fact is None or said[1] in CONSTANT_NAMES:
            raise _unread(text)
        return facts.known(said[1], fact, f"{said[1]} is {_SETS.get(said[2].strip(), said[2].strip())}")
    try:
        claim = parse(text, SMALL)
    except Refused:
        raise _unread(text) from None
    if not claim.sign:
        raise _unread(text)
    for link in (claim._replace(also=()), *claim.also):
        facts = _with_relation(facts, link)
    return facts


def _with_relation(facts: Facts, claim: Claim) -> Facts:
    shown = f"{claim.left_text} {claim.sign} {claim.right_text}"
    for left, right, sign in (
        (claim.left, claim.right, claim.sign),
        (claim.right, claim.left, _TURNED[claim.sign]),
    ):
        if left is not None and left.kind == "name" and left.name not in CONSTANT_NAMES:
            bound = _literal(right)
            fact = None if bound is None else _bounded(sign, bound)
            if fact is not None:
                return facts.known(left.name, fact, shown)
    if not names_in(claim.left, claim.right):
        raise _unread(shown)
    text = shown if not facts.text else f"{facts.text} and {shown}"
    return Facts(facts.of, (*facts.relations, claim), text)


def _literal(node: Node | None) -> Fraction | None:
    if node is None:
        return None
    if node.kind == "negative" and node.args[0].kind == "number":
        return -Fraction(node.args[0].value)
    return Fraction(node.value) if node.kind == "number" else None


def _bounded(sign: str, bound: Fraction) -> Fact | None:
    if sign in (">", ">="):
        return Fact(low=bound, above=sign == ">")
    if sign in ("<", "<="):
        return Fact(high=bound, below=sign == "<")
    if sign == "=":
        return Fact(low=bound, high=bound)
    return Fact(nonzero=True) if bound == 0 else None


def _both(one: Fact, other: Fact) -> Fact:
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
    for name, fact in facts.of.items():
        if fact.low is None or fact.high is None:
            continue
        empty = fact.low > fact.high or (fact.low == fact.high and not fact.allows(fact.low))
        if empty:
            raise Refused("parameters_valid", f"no `{name}` meets the assumptions: everything would hold")


_NUMBERS = tuple(
    Fraction(text)
    for text in ("2", "-1", "1/2", "3", "0", "1", "-3/2", "5", "7/3", "-2", "7", "-7/2", "10", "-4/3", "1/5", "-11")
)
_STEPS = tuple(Fraction(text) for text in ("1/2", "1", "3", "0", "2", "1/9", "7/2", "10", "25", "4/3", "100"))
_PARTS_OF = tuple(Fraction(text) for text in ("1/2", "1/4", "3/4", "0", "1", "1/10", "9/10", "1/3", "5/7"))


def values_for(fact: Fact) -> tuple[Fraction, ...]:
    """Values the variable may have, the most telling first."""
    if fact.low is not None and fact.high is not None:
        width = fact.high - fact.low
        found: Iterable[Fraction] = [fact.low + width * part for part in _PARTS_OF]
        if fact.integer:
            found = [Fraction(value) for value in range(-(-fact.low // 1), min(fact.high // 1, fact.low // 1 + 30) + 1)]
    elif fact.low is not None or fact.high is not None:
        start, way = (fact.low, 1) if fact.low is not None else (fact.high, -1)
        edge = Fraction(start if start is not None else 0)
        steps = range(13) if fact.integer else _STEPS
        start_at = Fraction(edge // 1) if fact.integer else edge
        found = [*_NUMBERS[:6], *(start_at + way * step for step in steps)]
    else:
        found = (*_NUMBERS, *map(Fraction, (4, -3, 6, -5, 8))) if fact.integer else _NUMBERS
    return tuple(dict.fromkeys(value for value in found if fact.allows(value)))
